#pragma once

#include <algorithm>
#include <cstdint>

namespace heddle {

/// Time that a process has waited while running, summed over its readings of the clock. A gap
/// between two readings counts at most `gap_ns_max`: in a longer one the process was stopped
/// (SIGSTOP, a paused container, a suspended machine), and perhaps those it waits for too.
class WakingTime {
 public:
  static constexpr std::int64_t gap_ns_max = 1'000'000'000;

  /// `now_ns`: from now_ns().
  explicit WakingTime(std::int64_t now_ns) : last_ns_(now_ns) {}

  /// Nanoseconds so far; never decreases.
  std::int64_t at(std::int64_t now_ns) {
    elapsed_ns_ += std::clamp<std::int64_t>(now_ns - last_ns_, 0, gap_ns_max);
    last_ns_ = now_ns;
    return elapsed_ns_;
  }

 private:
  std::int64_t last_ns_;
  std::int64_t elapsed_ns_ = 0;
};

}  // namespace heddle
