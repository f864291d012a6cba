#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/kernel.hpp"
#include "node-runtime/device/emulated/options.hpp"
#include "node-runtime/scheduling/placement_policy.hpp"
#include "node-runtime/threads/engine_options.hpp"

namespace heddle {

/// What a test makes go wrong, or late; what a benchmark pretends.
struct NodeFaults {
  MessageFaults messages;
  FaultPlan devices;  ///< of each emulated device
  /// What kernels take on emulated devices, one at a time, which then compute nothing
  /// (EmulatedOptions::kernel_seconds).
  std::function<double(const Kernel&, const KernelArguments&)> device_seconds;
  /// Set: of all kernels emulated devices run these alone (EmulatedOptions::kernel_is_run).
  std::function<bool(const Kernel&)> device_runs;
  /// What kernels take on CPU workers, which then sleep and compute nothing: what many workers
  /// would do, on a host with few cores (EngineOptions::worker_seconds).
  std::function<double(const Kernel&, const KernelArguments&)> worker_seconds;
  /// Instead of the dynamic policy, where that is configured.
  std::shared_ptr<const PlacementPolicy> placement;
  /// Most blocks of a job's pools beyond the planned minimum; 0 is the least with which a job can
  /// run.
  std::optional<std::int32_t> extra_blocks_max;
  /// The host of each node, as readers' trees see it (EngineOptions::hosts).
  std::vector<std::int32_t> hosts;
  /// Instead of what the host has.
  std::optional<std::uint64_t> host_memory_bytes;
};

}  // namespace heddle
