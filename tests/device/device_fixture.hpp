#pragma once

#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/device/cuda/cuda.hpp"
#include "node-runtime/device/devices.hpp"
#include "node-runtime/device/emulated/emulated_device.hpp"
#include "tests/device/device_kernels.hpp"

namespace heddle::testing {

/// One way to make devices; the suite runs on each. A further backend joins in backends().
struct Backend {
  std::string name;
  DeviceBackend backend = DeviceBackend::emulated;
  EmulatedOptions emulated;
};

inline std::vector<Backend> backends() {
  EmulatedOptions plain;
  plain.memory_bytes = 16 << 20;
  plain.foreign_bytes = 4 << 20;
  plain.fill_allocations = true;

  // Small and slow in every way, so that orders which nothing enforces do not hold by luck.
  EmulatedOptions adverse = plain;
  adverse.host_to_device_rate = 2e9;
  adverse.device_to_host_rate = 3e9;
  adverse.peer_rate = 1e9;
  adverse.local_rate = 4e9;
  adverse.latency_us = 5;
  adverse.kernel_slowdown = 1.5;
  adverse.concurrent_kernels = 1;
  adverse.queue_capacity = 2;
  adverse.faults.delay_us_max = 300;
  adverse.faults.seed = 7;
  return {{"emulated", DeviceBackend::emulated, plain},
          {"emulated_adverse", DeviceBackend::emulated, adverse},
          {"cuda", DeviceBackend::cuda, plain}};
}

/// Devices of the backend; GPUs are dealt out in turn, so that one is enough for two devices.
inline DeviceSet make_devices_of(const Backend& backend, std::int32_t count) {
  DeviceOptions options{backend.backend, count, backend.emulated, {}};
  options.cuda.memory_bytes = backend.emulated.memory_bytes;
  const auto gpus = static_cast<std::int32_t>(probe_cuda().gpus.size());
  for (std::int32_t d = 0; gpus > 0 && d < count; ++d) options.cuda.gpus.push_back(d % gpus);
  return make_devices(options);
}

/// Why tests of the backend cannot run here; empty where they can. CTest looks for these words.
inline std::string why_not(DeviceBackend backend) {
  if (backend != DeviceBackend::cuda) return {};
  const CudaProbe probe = probe_cuda();
  return probe.gpus.empty() ? "no GPU to test on: " + probe.why : std::string();
}

/// Two devices of the backend and a few short words for what the tests do all the time.
class DeviceTest : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    const std::string why = why_not(GetParam().backend);
    if (!why.empty()) GTEST_SKIP() << why;
    set_ = make_devices_of(GetParam(), 2);
  }

  [[nodiscard]] Device& device() const { return *set_.devices[0]; }
  [[nodiscard]] Device& other() const { return *set_.devices[1]; }

 private:
  DeviceSet set_;
};

#define HEDDLE_ON_ALL_BACKENDS(suite)                                                 \
  INSTANTIATE_TEST_SUITE_P(backends, suite, ::testing::ValuesIn(testing::backends()), \
                           [](const auto& test) { return test.param.name; })

/// Memory of a device that it knows nothing of. Of the first one of make_devices_of().
class ForeignMemory {
 public:
  ForeignMemory(Device& device, std::size_t bytes)
      : emulated_(dynamic_cast<EmulatedDevice*>(&device)),
        address_(emulated_ != nullptr ? emulated_->allocate_foreign(bytes)
                                      : static_cast<std::byte*>(take_from_cuda(0, bytes))) {}
  ForeignMemory(const ForeignMemory&) = delete;
  ForeignMemory& operator=(const ForeignMemory&) = delete;
  ~ForeignMemory() {
    emulated_ != nullptr ? emulated_->free_foreign(address_) : give_back_to_cuda(address_);
  }
  [[nodiscard]] std::byte* address() const { return address_; }

 private:
  EmulatedDevice* emulated_;
  std::byte* address_;
};

/// Host memory of a device, as an array of doubles.
class HostArray {
 public:
  HostArray(Device& device, std::size_t count, double value = 0)
      : device_(device),
        data_(static_cast<double*>(device.allocate_host(count * sizeof(double)))),
        count_(count) {
    fill(value);
  }
  HostArray(const HostArray&) = delete;
  HostArray& operator=(const HostArray&) = delete;
  ~HostArray() { device_.free_host(data_); }

  void fill(double value) const {
    for (std::size_t i = 0; i < count_; ++i) data_[i] = value;
  }
  void count_up_from(double value) const {
    for (std::size_t i = 0; i < count_; ++i) data_[i] = value + static_cast<double>(i);
  }
  [[nodiscard]] double* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(double); }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] double& operator[](std::size_t i) const { return data_[i]; }
  [[nodiscard]] std::vector<double> values() const { return {data_, data_ + count_}; }

 private:
  Device& device_;
  double* data_;
  std::size_t count_;
};

/// The text of the Error that `call` throws; empty, and a test failure, when it throws none.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

/// Copies `array` to `address` of `device` and waits.
inline void upload(Device& device, std::byte* address, const HostArray& array) {
  const auto stream = device.create_stream();
  stream->copy({address, &device}, {array.data(), nullptr}, array.bytes());
  stream->synchronize();
}

/// Copies from `address` of `device` into `array` and waits.
inline void download(Device& device, const HostArray& array, const std::byte* address) {
  const auto stream = device.create_stream();
  stream->copy({array.data(), nullptr}, {address, &device}, array.bytes());
  stream->synchronize();
}

}  // namespace heddle::testing
