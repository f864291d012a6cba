#include "node-runtime/topology/links/paths.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace heddle {
namespace {

/// How the best path known so far comes to a vertex.
struct Arrival {
  std::int32_t hops = -1;  ///< -1: none
  double rate = 0;         ///< of the slowest link
  TopologyLinkId link;     ///< the last one
};

}  // namespace

std::optional<std::vector<TopologyLinkId>> path(
    std::span<const TopologyLink> links, std::size_t vertices, VertexId from, VertexId to,
    const std::function<bool(const TopologyLink&)>& is_allowed,
    const std::function<bool(VertexId)>& may_pass) {
  const auto at = [](VertexId vertex) { return static_cast<std::size_t>(vertex.value()); };
  std::vector<Arrival> arrivals(vertices);
  arrivals[at(from)] = {0, std::numeric_limits<double>::infinity(), {}};
  const auto limit = static_cast<std::int32_t>(vertices);
  for (std::int32_t hops = 0; hops < limit && arrivals[at(to)].hops < 0; ++hops) {
    for (std::size_t l = 0; l < links.size(); ++l) {
      const TopologyLink& link = links[l];
      const Arrival& before = arrivals[at(link.from)];
      if (before.hops != hops || !is_allowed(link)) continue;
      if (link.from != from && !may_pass(link.from)) continue;
      const Arrival now{hops + 1, std::min(before.rate, link.rate),
                        TopologyLinkId{static_cast<std::int32_t>(l)}};
      Arrival& best = arrivals[at(link.to)];
      const bool is_first = best.hops < 0;
      const bool is_better =
          best.hops == now.hops &&
          (now.rate > best.rate ||
           (now.rate == best.rate &&
            link.from < links[static_cast<std::size_t>(best.link.value())].from));
      if (is_first || is_better) best = now;
    }
  }
  if (arrivals[at(to)].hops < 0) return std::nullopt;
  std::vector<TopologyLinkId> found;
  for (VertexId vertex = to; vertex != from;) {
    found.push_back(arrivals[at(vertex)].link);
    vertex = links[static_cast<std::size_t>(found.back().value())].from;
  }
  std::ranges::reverse(found);
  return found;
}

}  // namespace heddle
