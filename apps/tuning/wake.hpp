#pragma once

#include <span>
#include <vector>

#include "node-runtime/topology/cpu.hpp"

namespace heddle::tuning {

/// What waking a thread takes that sleeps on a doorbell, as CPU workers wait for tasks: seconds.
struct Waking {
  double ring_s = 0;                ///< of the one who rings, until he goes on
  double wake_s = 0;                ///< until the sleeper runs
  std::vector<double> after_long;   ///< what `wake_s` was each time
  std::vector<double> after_short;  ///< likewise, where the sleeper slept for 0.1 ms
};

/// Medians of some, in a tenth of a second; of a sleeper that slept for 1 ms, when its core has
/// gone idle: virtual machines and their hosts look for work for some tenths of a millisecond
/// before. On up to eight of the cores by turns, as one may take ten times as long as another one
/// for as long as a program runs. The caller is bound to others meanwhile.
[[nodiscard]] Waking measure_waking(std::span<const CpuCore> cores);

}  // namespace heddle::tuning
