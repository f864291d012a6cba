#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "apps/tuning/cpu.hpp"
#include "node-runtime/machine/measurements.hpp"

namespace heddle::tuning {

/// Operands of a worker together: more than its own caches hold.
inline constexpr std::int64_t operand_bytes = std::int64_t{24} << 20;
inline constexpr std::int64_t operand_sets_max = 1024;

/// What one worker does again and again: `prepare` is not timed. Both are told how often they were
/// called before.
struct Work {
  std::function<void(int run)> prepare;
  std::function<void(int run)> kernel;
};

/// The medians of `count` of the workers, all at work at the same time for `seconds` and some runs
/// at least. `work_of(worker)` is called by each of their threads.
[[nodiscard]] std::vector<double> times_on(const Workers& workers, std::int32_t count,
                                           const std::function<Work(std::int32_t worker)>& work_of,
                                           double seconds);

/// The seconds of a run at the mean rate of `count` of the workers, by their medians (the harmonic
/// mean: workers take tasks as they come, so a slow one does fewer), all at work at the same time
/// for `seconds` and some runs at least. `work_of(worker)` is called by each of their threads.
[[nodiscard]] double time_on(const Workers& workers, std::int32_t count,
                             const std::function<Work(std::int32_t worker)>& work_of,
                             double seconds);

/// What kernels take, from timing them all in each of some rounds on a machine that others use
/// too: each one's place among the others in the middle of the rounds (what slows a whole round
/// slows all of them, and what disturbs a few timings does not count), at the pace of the fastest
/// round. Rounds may lack some.
[[nodiscard]] KernelTimes settled_times(std::span<const KernelTimes> rounds);

/// Pairs of timings, one of each; odd, so that one of them is in the middle.
inline constexpr int ratio_pairs = 9;

/// The median of the ratios of two timings, which are taken in pairs, each first in every other
/// one: what slows the machine for longer than a pair slows both, and what disturbs a few pairs
/// does not count.
[[nodiscard]] double ratio_by_turns(const std::function<double()>& first,
                                    const std::function<double()>& second);

}  // namespace heddle::tuning
