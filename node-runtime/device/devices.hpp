#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "node-runtime/device/cuda/options.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/device/emulated/options.hpp"

namespace heddle {

/// Device options of a node.
struct DeviceOptions {
  DeviceBackend backend = DeviceBackend::automatic;
  /// Devices of this node. Unset: its share of the GPUs for cuda and auto, 1 for emulated.
  std::optional<std::int32_t> count;
  EmulatedOptions emulated = {};  ///< per device, only for that backend
  CudaOptions cuda = {};          ///< likewise
};

/// The devices of a node and the reason for the choice.
struct DeviceSet {
  DeviceBackend backend = DeviceBackend::none;  ///< never `automatic`
  std::vector<std::unique_ptr<Device>> devices;
  std::string why;  ///< one sentence for the plan and the report
};

/// Chooses a backend and creates its devices. `automatic` uses CUDA where available, else no
/// device; never emulated ones, which are slower than the CPUs that emulate them. Throws
/// Error(usage) with the reason if an explicitly requested device is missing.
[[nodiscard]] DeviceSet make_devices(const DeviceOptions& options);

/// How other processes of the host find a node's emulated devices, GPUs `first`, `first` + 1, ...
/// of the host.
[[nodiscard]] std::vector<std::uint64_t> words_of_emulated(const DeviceSet& devices,
                                                           std::int32_t first);
/// From now on they share what the GPUs of the host share (EmulatedDevice::join). `of_host`: the
/// words of all nodes on it, in one order. Throws Error(communication) where the system refuses.
void join_emulated(const DeviceSet& devices, std::span<const std::uint64_t> of_host,
                   std::int32_t first, std::int32_t sharer);

/// Identities of the GPUs visible to this process, in order; empty without any.
[[nodiscard]] std::string visible_gpus();

}  // namespace heddle
