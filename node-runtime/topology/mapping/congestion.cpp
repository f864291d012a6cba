#include "node-runtime/topology/mapping/congestion.hpp"

#include <algorithm>

#include "node-runtime/topology/mapping/routes.hpp"

namespace heddle {

double Congestion::byte_hops() const {
  double sum = 0;
  for (const LinkLoad& link : links) sum += link.bytes;
  return sum;
}

Congestion congestion(const Traffic& traffic, const GpuTopology& topology, const Mapping& mapping) {
  require_mapping(mapping, traffic, topology);
  Congestion result;
  result.links.resize(topology.links().size());
  result.levels.resize(static_cast<std::size_t>(topology.levels()));
  for_routes(traffic, topology, mapping, [&](const GpuRoute& route, const Flow& flow) {
    for (const TopologyLinkId id : route.links) {
      LinkLoad& link = result.links[static_cast<std::size_t>(id.value())];
      link.bytes += flow.bytes;
      link.messages += flow.messages;
    }
  });
  for (std::size_t l = 0; l < result.links.size(); ++l) {
    const TopologyLink& link = topology.links()[l];
    LinkLoad& own = result.links[l];
    own.load = own.bytes / link.rate;
    LevelLoad& level = result.levels[static_cast<std::size_t>(link.level)];
    level.bytes_max = std::max(level.bytes_max, own.bytes);
    level.load_max = std::max(level.load_max, own.load);
    level.bytes_sum += own.bytes;
    level.load_sum += own.load;
    if (own.load > result.largest) {
      result.largest = own.load;
      result.worst = TopologyLinkId{static_cast<std::int32_t>(l)};
    }
  }
  return result;
}

}  // namespace heddle
