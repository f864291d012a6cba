#include "node-runtime/device/devices.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.hpp"
#include "node-runtime/device/cuda/cuda.hpp"
#include "node-runtime/device/emulated/emulated_device.hpp"

namespace heddle {
namespace {

DeviceSet make_emulated(const DeviceOptions& options) {
  DeviceSet set;
  set.backend = DeviceBackend::emulated;
  const std::int32_t count = options.count.value_or(1);
  for (std::int32_t index = 0; index < count; ++index) {
    set.devices.push_back(std::make_unique<EmulatedDevice>(index, options.emulated));
  }
  set.why = fmt::format("{} emulated device{} asked for", count, count == 1 ? "" : "s");
  return set;
}

DeviceSet make_cuda(const DeviceOptions& options) {
  const CudaProbe probe = probe_cuda();
  DeviceSet set;
  if (options.backend == DeviceBackend::automatic && probe.count == 0) {
    if (options.count.value_or(0) > 0) {
      throw Error(
          ErrorCode::usage,
          fmt::format("{} devices per node asked for, but no GPU can be used: {}; leave the "
                      "number to auto, or ask for the emulated backend",
                      *options.count, probe.why));
    }
    set.why = fmt::format("no devices: {}", probe.why);
    return set;
  }
  if (probe.count == 0) {
    throw Error(ErrorCode::usage,
                fmt::format("the cuda backend was asked for, but {}; use auto, none or emulated",
                            probe.why));
  }
  const std::int32_t count = options.count.value_or(probe.count);
  if (count > probe.count) {
    throw Error(ErrorCode::usage,
                fmt::format("{} GPUs per node asked for, but there are {}", count, probe.count));
  }
  set.backend = DeviceBackend::cuda;
  for (std::int32_t index = 0; index < count; ++index) {
    set.devices.push_back(make_cuda_device(index));
  }
  set.why = fmt::format("{} of {} GPUs: {}", count, probe.count, probe.why);
  return set;
}

}  // namespace

DeviceSet make_devices(const DeviceOptions& options) {
  if (options.count.value_or(0) < 0) {
    throw Error(
        ErrorCode::usage,
        fmt::format("the number of devices per node is {}; it must be 0 or more", *options.count));
  }
  if (options.backend == DeviceBackend::none) {
    if (options.count.value_or(0) > 0) {
      throw Error(ErrorCode::usage, fmt::format("{} devices per node asked for together with the "
                                                "backend none; choose one of the two",
                                                *options.count));
    }
    return {DeviceBackend::none, {}, "no devices: asked for none"};
  }
  if (options.count == 0) return {DeviceBackend::none, {}, "no devices: asked for 0 per node"};
  if (options.backend == DeviceBackend::emulated) return make_emulated(options);
  return make_cuda(options);
}

}  // namespace heddle
