#pragma once

#include <cstdint>
#include <vector>

#include "node-runtime/topology/links/gpu_topology.hpp"
#include "node-runtime/topology/mapping/mapping.hpp"
#include "node-runtime/topology/mapping/traffic.hpp"

namespace heddle {

/// What one directed link carries (004 section 5.1.2).
struct LinkLoad {
  double bytes = 0;
  double messages = 0;
  double load = 0;  ///< bytes / rate: nanoseconds that the link is busy, rates being GB/s
};

/// What the links of one level carry.
struct LevelLoad {
  double bytes_max = 0;  ///< of one link
  double bytes_sum = 0;  ///< of all links
  double load_max = 0;
  double load_sum = 0;
};

struct Congestion {
  std::vector<LinkLoad> links;    ///< as GpuTopology::links()
  std::vector<LevelLoad> levels;  ///< 0 to GpuTopology::levels() - 1
  double largest = 0;             ///< greatest load of a link
  TopologyLinkId worst;           ///< the first link that has it

  /// Bytes times the links that they go over.
  [[nodiscard]] double byte_hops() const;
};

/// Loads of all links when the traffic goes along the topology's routes: between slots, from and to
/// the host memory of each slot (`mapping.domain_of`), and from and to other hosts over the card
/// next to its GPU, where there is one.
[[nodiscard]] Congestion congestion(const Traffic& traffic, const GpuTopology& topology,
                                    const Mapping& mapping);

}  // namespace heddle
