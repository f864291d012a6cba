#pragma once

#include <algorithm>
#include <cstdint>

namespace heddle {

/// How long a process has waited and was awake, by its own looks at the clock. A gap between two
/// looks counts as `gap_ns_max` at most: in a longer one the process was stopped (SIGSTOP, a paused
/// container, a suspended machine), and so, perhaps, were those it waits for. By the clock on the
/// wall all of them would seem lost.
class WakingTime {
 public:
  static constexpr std::int64_t gap_ns_max = 1'000'000'000;

  /// `now_ns` as now_ns() says.
  explicit WakingTime(std::int64_t now_ns) : last_ns_(now_ns) {}

  /// Nanoseconds awake until now; never less than before. A look at the clock.
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
