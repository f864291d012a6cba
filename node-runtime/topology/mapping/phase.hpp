#pragma once

#include "node-runtime/topology/links/gpu_topology.hpp"
#include "node-runtime/topology/mapping/mapping.hpp"
#include "node-runtime/topology/mapping/traffic.hpp"

namespace heddle {

/// Seconds until the last of all messages of the traffic has come, if all begin at once and share
/// the links of their routes fairly: no message could be faster without slowing one that is not
/// faster than it (max-min fairness), and none is faster than its pair alone. A pair's messages are
/// one stream; each of them adds the route's latency.
[[nodiscard]] double phase_seconds(const Traffic& traffic, const GpuTopology& topology,
                                   const Mapping& mapping);

}  // namespace heddle
