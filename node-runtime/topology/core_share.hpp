#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "node-runtime/topology/cpu.hpp"

namespace heddle {

/// Bit mask of the hardware threads that a process may use; higher numbers are ignored.
using CpuMask = std::array<std::uint64_t, 16>;

[[nodiscard]] CpuMask mask_of(std::span<const CpuCore> cores);

/// How the processes of a host divide its cores, whether the launcher has bound them or not.
struct CoreShare {
  std::int32_t sharers = 1;   ///< processes that share any core with this one, including itself
  std::int32_t position = 0;  ///< index of this process among them
  bool divisible = true;      ///< all of them may use the same cores
  /// This process's even share of `cores`, all usable ones. Empty if the processes' sets of cores
  /// overlap partially, or if a share has fewer than `wanted` cores.
  [[nodiscard]] std::vector<CpuCore> part_of(std::span<const CpuCore> cores,
                                             std::int32_t wanted) const;
};

/// Cores for the other threads of a process whose first `workers` cores of `part` have workers
/// bound to them: the remaining cores if there is one for each of `others`, else all. A thread that
/// moved to a sleeping worker's core would keep it for a scheduler slice of some ms after the
/// worker wakes, since a bound worker cannot migrate.
[[nodiscard]] std::span<const CpuCore> cores_beside_workers(std::span<const CpuCore> part,
                                                            std::int32_t workers,
                                                            std::int32_t others);

/// Share of process `self`, from the masks of all processes of the host.
[[nodiscard]] CoreShare share_cores(std::span<const CpuMask> masks, std::size_t self);

}  // namespace heddle
