#include "node-runtime/device/devices.hpp"

#include <algorithm>
#include <exception>
#include <fmt/core.h>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "node-runtime/device/cuda/cuda.hpp"
#include "node-runtime/device/emulated/emulated_device.hpp"
#include "node-runtime/device/gpu_share.hpp"

namespace heddle {
namespace {

DeviceSet make_emulated(const DeviceOptions& options) {
  DeviceSet set;
  set.backend = DeviceBackend::emulated;
  const std::int32_t count = options.count.value_or(1);
  try {
    for (std::int32_t index = 0; index < count; ++index) {
      set.devices.push_back(std::make_unique<EmulatedDevice>(index, options.emulated));
    }
  } catch (const Error& error) {
    // Emulated memory is host memory: on refusal only the requested amount can be at fault.
    throw Error(ErrorCode::usage,
                fmt::format("{} emulated device{} of {} cannot be made: {}; ask for less memory "
                            "(runtime.devices.memory) or fewer devices (runtime.devices.per_node)",
                            count, count == 1 ? "" : "s",
                            format_bytes(options.emulated.memory_bytes), error.what()));
  }
  set.why = fmt::format("{} emulated device{} asked for", count, count == 1 ? "" : "s");
  return set;
}

std::string describe(const GpuShare& share, std::int32_t gpus, const DeviceSet& set,
                     const std::string& which) {
  std::string text =
      fmt::format("{} of {} GPU{} ({})", share.gpus.size(), gpus, gpus == 1 ? "" : "s", which);
  text += fmt::format(", {} of memory each", format_bytes(set.devices[0]->info().memory_bytes));
  if (share.sharers > 1) text += fmt::format(", shared by {} nodes", share.sharers);
  return text;
}

/// All at once, since each takes a tenth of a second or more. Throws the first one's error.
std::vector<std::unique_ptr<Device>> open_gpus(const std::vector<std::int32_t>& gpus,
                                               const CudaOptions& options) {
  std::vector<std::unique_ptr<Device>> devices(gpus.size());
  std::vector<std::exception_ptr> errors(gpus.size());
  const auto open = [&](std::size_t d) {
    try {
      devices[d] = make_cuda_device(static_cast<std::int32_t>(d), gpus[d], options);
    } catch (...) {
      errors[d] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t d = 1; d < gpus.size(); ++d) {
      try {
        others.emplace_back(open, d);
      } catch (const std::system_error&) {
        open(d);  // no more threads: one after the other
      }
    }
    if (!gpus.empty()) open(0);
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return devices;
}

DeviceSet make_cuda(const DeviceOptions& options) {
  const CudaProbe probe = probe_cuda();
  const auto present = static_cast<std::int32_t>(probe.gpus.size());
  DeviceSet set;
  if (options.backend == DeviceBackend::automatic && present == 0) {
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
  if (present == 0) {
    throw Error(ErrorCode::usage,
                fmt::format("the cuda backend was asked for, but {}; use auto, none or emulated",
                            probe.why));
  }
  GpuShare share;
  if (!options.cuda.gpus.empty()) {
    share.gpus = options.cuda.gpus;
  } else if (options.count.value_or(0) > present) {
    throw Error(ErrorCode::usage,
                fmt::format("{} GPUs per node asked for, but there {} ({}); leave the number to "
                            "auto, or use fewer",
                            *options.count, present == 1 ? "is 1" : fmt::format("are {}", present),
                            probe.why));
  } else {
    share = share_gpus(present, options.count, options.cuda);
  }
  CudaOptions cuda = options.cuda;
  cuda.sharers = share.sharers;
  set.backend = DeviceBackend::cuda;
  set.devices = open_gpus(share.gpus, cuda);
  set.why = describe(share, present, set, probe.why);
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

std::vector<std::uint64_t> words_of_emulated(const DeviceSet& devices, std::int32_t first) {
  std::vector<std::uint64_t> words;
  for (const auto& device : devices.devices) {
    const auto& emulated = static_cast<const EmulatedDevice&>(*device);
    const auto own = emulated.presence(first + emulated.info().index).to_words();
    words.insert(words.end(), own.begin(), own.end());
  }
  return words;
}

void join_emulated(const DeviceSet& devices, std::span<const std::uint64_t> of_host,
                   std::int32_t first, std::int32_t sharer) {
  if (devices.devices.empty()) return;
  std::vector<EmulatedPresence> all;
  for (auto rest = of_host; !rest.empty(); rest = rest.subspan(EmulatedPresence::words)) {
    all.push_back(EmulatedPresence::from_words(rest.first<EmulatedPresence::words>()));
  }
  const auto& options = static_cast<EmulatedDevice&>(*devices.devices.front()).options();
  const auto host = std::make_shared<const HostGpus>(all, options.places);
  for (const auto& device : devices.devices) {
    auto& emulated = static_cast<EmulatedDevice&>(*device);
    emulated.join(host, first + emulated.info().index, sharer);
  }
}

std::string visible_gpus() {
  std::string all;
  for (const DeviceUuid& gpu : probe_cuda().gpus) all += to_string(gpu);
  return all;
}

}  // namespace heddle
