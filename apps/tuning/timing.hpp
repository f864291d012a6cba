#pragma once

#include <cstdint>
#include <functional>

#include "apps/tuning/cpu.hpp"

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

/// The mean of the medians of `count` of the workers, all at work at the same time for `seconds`
/// and some runs at least. `work_of(worker)` is called by each of their threads.
[[nodiscard]] double time_on(const Workers& workers, std::int32_t count,
                             const std::function<Work(std::int32_t worker)>& work_of,
                             double seconds);

}  // namespace heddle::tuning
