#pragma once

#include <cstddef>
#include <cstdint>

#include "node-runtime/residency/residency.hpp"

namespace heddle {

/// Minimum bytes per device for progress when not all blocks fit; `largest_block_bytes` is the size
/// of the largest: one task's tiles, one of them renamed, and the source tiles of copies that wait
/// for another device.
[[nodiscard]] inline std::uint64_t least_device_bytes(std::uint64_t largest_block_bytes,
                                                      std::size_t devices) {
  return Residency::minimum_bytes(largest_block_bytes, protocol::accesses_max + 1,
                                  devices > 1 ? 2 * devices : 0);
}

}  // namespace heddle
