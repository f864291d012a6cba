#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "node-runtime/topology/cpu.hpp"

namespace heddle {

/// The hardware threads that a process may use, one bit each; numbers past the last bit are left
/// out.
using CpuMask = std::array<std::uint64_t, 16>;

[[nodiscard]] CpuMask mask_of(std::span<const CpuCore> cores);

/// How the processes of a host divide its cores. A launcher may have bound each to cores of its
/// own, or none of them, so that all see the same.
struct CoreShare {
  std::int32_t sharers = 1;   ///< processes that may use some of this one's cores, with itself
  std::int32_t position = 0;  ///< this one's number among them
  bool divisible = true;      ///< all of them may use the same cores
  /// This process's part of `cores`, all that may be used: an even share. Empty where the sets of
  /// cores overlap in parts, or where there are fewer than `wanted` for each.
  [[nodiscard]] std::vector<CpuCore> part_of(std::span<const CpuCore> cores,
                                             std::int32_t wanted) const;
};

/// Of a process's part, the first of which its workers are bound to, where its other threads may
/// run: on the cores that `workers` leave, where there is one for each of `others`; otherwise on
/// all. A thread that went to a core whose worker slept has it for a slice of some ms after that
/// worker has woken, as the worker cannot go elsewhere.
[[nodiscard]] std::span<const CpuCore> cores_beside_workers(std::span<const CpuCore> part,
                                                            std::int32_t workers,
                                                            std::int32_t others);

/// Of process `self` among those of one host, from the masks of all.
[[nodiscard]] CoreShare share_cores(std::span<const CpuMask> masks, std::size_t self);

}  // namespace heddle
