#pragma once

#include <cstdint>

#include "node-runtime/topology/mapping/mapping.hpp"

namespace heddle {

/// What mappings cost that are drawn at random (004 section 5.1.3).
struct RandomMappings {
  std::int32_t count = 0;
  double mean = 0;       ///< cost, in units of the metric
  double deviation = 0;  ///< standard deviation of the cost
  double best = 0;       ///< least cost
};

/// Costs of `count` random mappings, each with the capacities and rules of map_traffic(). Of
/// `options` counts what says how mappings are judged; `options.seed` gives the sequence. Throws
/// Error(usage) as map_traffic(), and for a count below 1.
[[nodiscard]] RandomMappings random_mappings(const Traffic& traffic, const GpuTopology& topology,
                                             std::int32_t count, const MapOptions& options = {});

}  // namespace heddle
