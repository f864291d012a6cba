#pragma once

namespace heddle::tuning {

/// What waking a thread takes that sleeps on a doorbell, as CPU workers wait for tasks: seconds.
struct Waking {
  double ring_s = 0;  ///< of the one who rings, until he goes on
  double wake_s = 0;  ///< until the sleeper runs
};

/// Medians of some, in some tens of milliseconds.
[[nodiscard]] Waking measure_waking();

}  // namespace heddle::tuning
