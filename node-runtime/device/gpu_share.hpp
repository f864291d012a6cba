#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "node-runtime/device/cuda/options.hpp"

namespace heddle {

/// The GPUs of one of several nodes that see the same GPUs.
struct GpuShare {
  std::vector<std::int32_t> gpus;
  std::int32_t sharers = 1;  ///< largest number of nodes on one of this node's GPUs
};

/// Gives each node its own GPUs if there are enough, otherwise assigns them round-robin. `each`:
/// GPUs per node, at most `gpus`; unset: an equal share, at least 1.
[[nodiscard]] inline GpuShare share_gpus(std::int32_t gpus, std::optional<std::int32_t> each,
                                         const CudaOptions& options) {
  const std::int32_t nodes = std::max(1, options.nodes);
  const std::int32_t count = each.value_or(std::max(1, gpus / nodes));
  GpuShare share;
  for (std::int32_t d = 0; d < count; ++d) {
    const std::int32_t gpu = (options.node * count + d) % gpus;
    share.gpus.push_back(gpu);
    // Round-robin: of nodes * count uses this GPU gets every `gpus`-th.
    share.sharers = std::max(share.sharers, (nodes * count - gpu + gpus - 1) / gpus);
  }
  return share;
}

}  // namespace heddle
