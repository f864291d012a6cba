#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

namespace heddle::tuning {

/// How much time there is, and who is told what is being measured. Measurements that would not be
/// over in time are left out, the larger sizes first: tables end earlier then.
class Effort {
 public:
  using Clock = std::chrono::steady_clock;
  using Listener = std::function<void(const std::string& what, double share_done)>;

  /// With which durations are what they are said to be.
  static constexpr double seconds_full = 90;

  Effort(double seconds, Listener listener)
      : seconds_(seconds), end_(seconds), begin_(Clock::now()), listener_(std::move(listener)) {}

  /// Until which part of the whole time the measurements that follow may last.
  void until(double share) { end_ = share * seconds_; }

  [[nodiscard]] double elapsed() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  [[nodiscard]] bool allows(double seconds) const { return elapsed() + seconds <= end_; }

  /// `seconds`, or less where the whole time is less than the full one.
  [[nodiscard]] double lasting(double seconds) const {
    return seconds * std::min(1.0, seconds_ / seconds_full);
  }

  void tell(const std::string& what) const { listener_(what, elapsed() / seconds_); }

 private:
  double seconds_;
  double end_;
  Clock::time_point begin_;
  Listener listener_;
};

}  // namespace heddle::tuning
