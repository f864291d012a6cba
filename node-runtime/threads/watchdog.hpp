#pragma once

#include <cstdint>

namespace heddle {

/// Tells from what a node counts whether it advances. Pure: the caller brings the time, of a clock
/// that stops while the process is stopped.
///
/// Invariant: idle_since <= now of the last look, quiet_since likewise.
class Watchdog {
 public:
  /// `seconds` <= 0: never says that nothing advances.
  Watchdog(double seconds, std::int64_t now_ns, std::uint64_t events)
      : seconds_(seconds), events_(events), idle_since_ns_(now_ns), quiet_since_ns_(now_ns) {}

  enum class Finding : std::uint8_t {
    advances,
    runs,   ///< no event since the last look, but kernels run
    quiet,  ///< they have run for `seconds` without any event; said once in as long
    stands  ///< no event for `seconds`, and nothing runs
  };
  Finding look(std::int64_t now_ns, std::uint64_t events, std::int32_t running) {
    if (events != events_) {
      events_ = events;
      idle_since_ns_ = quiet_since_ns_ = now_ns;
      return Finding::advances;
    }
    if (running <= 0) return is_long(idle_since_ns_, now_ns) ? Finding::stands : Finding::advances;
    idle_since_ns_ = now_ns;
    if (!is_long(quiet_since_ns_, now_ns)) return Finding::runs;
    quiet_since_ns_ = now_ns;
    return Finding::quiet;
  }

 private:
  [[nodiscard]] bool is_long(std::int64_t since_ns, std::int64_t now_ns) const {
    return seconds_ > 0 && static_cast<double>(now_ns - since_ns) * 1e-9 > seconds_;
  }

  double seconds_;
  std::uint64_t events_;
  std::int64_t idle_since_ns_;   ///< no event, and nothing runs
  std::int64_t quiet_since_ns_;  ///< no event, and nothing was said
};

}  // namespace heddle
