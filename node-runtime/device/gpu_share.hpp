#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "node-runtime/device/cuda/options.hpp"

namespace heddle {

/// The GPUs of one of several nodes that see the same ones.
struct GpuShare {
  std::vector<std::int32_t> gpus;
  std::int32_t sharers = 1;  ///< nodes that use the most used GPU of this node
};

/// Each node gets GPUs of its own where they suffice, otherwise they are dealt out in turn. `each`:
/// how many every node wants, at most `gpus`; unset: its part of them, at least one.
[[nodiscard]] inline GpuShare share_gpus(std::int32_t gpus, std::optional<std::int32_t> each,
                                         const CudaOptions& options) {
  const std::int32_t nodes = std::max(1, options.nodes);
  const std::int32_t count = each.value_or(std::max(1, gpus / nodes));
  GpuShare share;
  for (std::int32_t d = 0; d < count; ++d) {
    const std::int32_t gpu = (options.node * count + d) % gpus;
    share.gpus.push_back(gpu);
    // Of the nodes * count uses, dealt out in turn, this GPU gets every `gpus`-th.
    share.sharers = std::max(share.sharers, (nodes * count - gpu + gpus - 1) / gpus);
  }
  return share;
}

}  // namespace heddle
