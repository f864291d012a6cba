#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.hpp"

namespace heddle {

/// Detects that the process that exported an event has died, cheaply enough for polling. Thread:
/// any.
class ExporterWatch {
 public:
  /// Calls `is_gone` at intervals: a death may stay unnoticed for 10 ms.
  template <class IsGone>
  [[nodiscard]] bool look(const IsGone& is_gone) {
    // Relaxed: both words only cache results.
    if (gone_.load(std::memory_order_relaxed)) return true;
    const std::int64_t now = now_ns();
    if (now < next_look_ns_.load(std::memory_order_relaxed)) return false;
    next_look_ns_.store(now + look_interval_ns, std::memory_order_relaxed);
    if (!is_gone()) return false;
    note_gone();
    return true;
  }

  /// Records a death that was detected elsewhere.
  void note_gone() { gone_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool found_gone() const { return gone_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::int64_t look_interval_ns = 10'000'000;

  std::atomic<bool> gone_{false};
  std::atomic<std::int64_t> next_look_ns_{0};
};

}  // namespace heddle
