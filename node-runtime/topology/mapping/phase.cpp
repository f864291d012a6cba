#include "node-runtime/topology/mapping/phase.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "node-runtime/topology/mapping/routes.hpp"

namespace heddle {
namespace {

/// The messages of one route that are under way.
struct Stream {
  const GpuRoute* route = nullptr;
  double bytes = 0;      ///< still to come
  double latency_s = 0;  ///< of all its messages
  double rate = 0;       ///< now, GB/s
  bool is_settled = false;
};

/// Gives each stream its rate: again and again the link that would give its streams least settles
/// theirs, or a stream its own, if the pair alone is no faster.
void share_links(std::vector<Stream>& streams, const GpuTopology& topology) {
  const auto at = [](TopologyLinkId id) { return static_cast<std::size_t>(id.value()); };
  std::vector<double> room;
  for (const TopologyLink& link : topology.links()) room.push_back(link.rate);
  std::vector<std::int32_t> users(room.size());
  for (Stream& stream : streams) {
    stream.is_settled = false;
    for (const TopologyLinkId id : stream.route->links) ++users[at(id)];
  }
  for (std::size_t settled = 0; settled < streams.size();) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t l = 0; l < room.size(); ++l) {
      if (users[l] > 0) least = std::min(least, std::max(0.0, room[l]) / users[l]);
    }
    for (const Stream& stream : streams) {
      if (!stream.is_settled) least = std::min(least, stream.route->rate);
    }
    // All that can have no more than this share, by what the links say before any is settled.
    std::vector<Stream*> bounded;
    for (Stream& stream : streams) {
      if (stream.is_settled) continue;
      bool is_bounded = stream.route->rate <= least;
      for (const TopologyLinkId id : stream.route->links) {
        is_bounded = is_bounded || room[at(id)] / users[at(id)] <= least * (1 + 1e-12);
      }
      if (is_bounded) bounded.push_back(&stream);
    }
    for (Stream* const stream : bounded) {
      stream->rate = least;
      stream->is_settled = true;
      for (const TopologyLinkId id : stream->route->links) {
        room[at(id)] -= least;
        --users[at(id)];
      }
    }
    settled += bounded.size();
  }
}

}  // namespace

double phase_seconds(const Traffic& traffic, const GpuTopology& topology, const Mapping& mapping) {
  require_mapping(mapping, traffic, topology);
  std::vector<Stream> streams;
  double last_s = 0;
  for_routes(traffic, topology, mapping, [&](const GpuRoute& route, const Flow& flow) {
    const double latency_s = 1e-6 * route.latency_us * flow.messages;
    if (flow.bytes > 0) {
      streams.push_back({&route, flow.bytes, latency_s, 0, false});
    } else {
      last_s = std::max(last_s, latency_s);
    }
  });
  double now_s = 0;
  while (!streams.empty()) {
    share_links(streams, topology);
    double step_s = std::numeric_limits<double>::infinity();
    for (const Stream& stream : streams) {
      step_s = std::min(step_s, stream.bytes / (1e9 * stream.rate));
    }
    now_s += step_s;
    for (Stream& stream : streams) {
      const double left = stream.bytes - 1e9 * stream.rate * step_s;
      stream.bytes = left <= 1e-9 * stream.bytes ? 0 : left;
      if (stream.bytes == 0) last_s = std::max(last_s, now_s + stream.latency_s);
    }
    std::erase_if(streams, [](const Stream& stream) { return stream.bytes == 0; });
  }
  return last_s;
}

}  // namespace heddle
