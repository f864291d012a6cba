#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/run.hpp"

namespace heddle::replay {

/// Operations of one kind that groups have done in one way. An operation takes as long as on the
/// member where it takes longest, from its call to its end: waiting for members that call late
/// counts.
struct CollectiveFigures {
  std::string operation;
  std::string algorithm;   ///< of that member
  std::int64_t count = 0;  ///< operations, not their members
  double bytes = 0;        ///< of all members' own elements
  double seconds = 0;      ///< total
  double median_us = 0;
  double most_us = 0;
};

/// By operation and algorithm, the longest total first. All of the run's operations: they are of no
/// job.
[[nodiscard]] std::vector<CollectiveFigures> collective_figures(const RunTrace& run);

}  // namespace heddle::replay
