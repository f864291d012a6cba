#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node-runtime/device/cuda/options.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/device/emulated/options.hpp"

namespace heddle {

/// Which devices a node wants.
struct DeviceOptions {
  DeviceBackend backend = DeviceBackend::automatic;
  /// Devices of this node. Unset: its share of the GPUs for cuda and auto, one device for emulated.
  std::optional<std::int32_t> count;
  EmulatedOptions emulated = {};  ///< of each device, for that backend alone
  CudaOptions cuda = {};          ///< likewise
};

/// The devices of a node and why they are these.
struct DeviceSet {
  DeviceBackend backend = DeviceBackend::none;  ///< never `automatic`
  std::vector<std::unique_ptr<Device>> devices;
  std::string why;  ///< one sentence for the plan and the report
};

/// Chooses a backend and creates its devices. `automatic` takes CUDA where it works and no device
/// otherwise; it never takes emulated ones, which are slower than the CPUs that emulate them.
/// Throws Error(usage) when what was asked for by name is not there, with the reason.
[[nodiscard]] DeviceSet make_devices(const DeviceOptions& options);

/// The identities of the GPUs that this process sees, in order; empty where there is none.
[[nodiscard]] std::string visible_gpus();

}  // namespace heddle
