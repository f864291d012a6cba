#include <cmath>
#include <fmt/format.h>
#include <set>
#include <tuple>

#include "node-runtime/topology/links/host_tree.hpp"
#include "node-runtime/topology/links/topology_parts.hpp"

namespace heddle {

const char* name_of(VertexKind kind) {
  switch (kind) {
    case VertexKind::gpu:
      return "GPU";
    case VertexKind::domain:
      return "NUMA domain";
    case VertexKind::switch_chip:
      return "switch";
    case VertexKind::bridge:
      return "bridge";
    case VertexKind::card:
      return "network card";
  }
  return "?";
}

const char* name_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink:
      return "nvlink";
    case LinkKind::pcie:
      return "pcie";
    case LinkKind::socket:
      return "socket";
  }
  return "?";
}

namespace {

class TopologyChecks {
 public:
  explicit TopologyChecks(const TopologyParts& parts) : parts_(parts) {}

  [[nodiscard]] std::vector<TopologyFault> all() {
    check_vertices();
    for (std::size_t l = 0; l < parts_.links.size(); ++l) check_link(l);
    for (std::size_t p = 0; p < parts_.pairs.size(); ++p) check_pair(p);
    // What follows walks along the links.
    if (faults_.empty()) check_ways();
    return std::move(faults_);
  }

 private:
  [[nodiscard]] const TopologyVertex& vertex(VertexId id) const {
    return parts_.vertices[static_cast<std::size_t>(id.value())];
  }
  [[nodiscard]] bool exists(VertexId id) const {
    return id.value() >= 0 && static_cast<std::size_t>(id.value()) < parts_.vertices.size();
  }
  [[nodiscard]] std::int32_t count_of(VertexKind kind) const {
    std::int32_t count = 0;
    for (const TopologyVertex& one : parts_.vertices) count += one.kind == kind ? 1 : 0;
    return count;
  }

  void of_whole(std::string text) { faults_.push_back({std::move(text), {}, {}, {}}); }
  void of_vertex(VertexId id, std::string text) {
    faults_.push_back({std::move(text), id, {}, {}});
  }
  void of_link(std::size_t link, std::string text) {
    faults_.push_back({std::move(text), {}, link, {}});
  }
  void of_pair(std::size_t pair, std::string text) {
    faults_.push_back({std::move(text), {}, {}, pair});
  }

  void check_vertices() {
    if (count_of(VertexKind::gpu) == 0) of_whole("there is no GPU; a topology has at least one");
    if (count_of(VertexKind::domain) == 0) {
      of_whole("there is no NUMA domain; a topology has at least one, with the GPUs next to it");
    }
    std::set<std::string> names;
    bool gpus_ended = false;
    for (std::size_t v = 0; v < parts_.vertices.size(); ++v) {
      const TopologyVertex& one = parts_.vertices[v];
      const VertexId id{static_cast<std::int32_t>(v)};
      if (!names.insert(one.name).second) {
        of_vertex(id,
                  fmt::format("the name '{}' is there twice; each vertex needs its own", one.name));
      }
      gpus_ended = gpus_ended || one.kind != VertexKind::gpu;
      if (gpus_ended && one.kind == VertexKind::gpu) {
        of_vertex(id,
                  fmt::format("the GPU '{}' comes after a vertex that is none; GPUs are the first",
                              one.name));
      }
      if (!one.uuid.empty() && !uuids_.insert(one.uuid).second) {
        of_vertex(id, fmt::format("the UUID '{}' is there twice; name each GPU once", one.uuid));
      }
    }
  }

  void check_link(std::size_t l) {
    const LinkPart& link = parts_.links[l];
    if (!exists(link.a) || !exists(link.b)) {
      of_link(l, fmt::format("it joins vertices {} and {}, and there are {}", link.a.value(),
                             link.b.value(), parts_.vertices.size()));
      return;
    }
    const TopologyVertex& a = vertex(link.a);
    const TopologyVertex& b = vertex(link.b);
    const std::string what = fmt::format("the link between '{}' and '{}'", a.name, b.name);
    if (link.a == link.b) of_link(l, what + " joins a vertex to itself; name two");
    if (!std::isfinite(link.rate) || link.rate <= 0) {
      of_link(l, fmt::format("{} has a rate of {} GB/s; it must be positive", what, link.rate));
    }
    if (!std::isfinite(link.latency_us) || link.latency_us < 0) {
      of_link(
          l, fmt::format("{} has a latency of {} us; it must be 0 or more", what, link.latency_us));
    }
    if (link.count < 1)
      of_link(l, fmt::format("{} has a count of {}; at least 1", what, link.count));
    const bool is_of_domains = a.kind == VertexKind::domain && b.kind == VertexKind::domain;
    if ((link.kind == LinkKind::socket) != is_of_domains && link.a != link.b) {
      of_link(l, fmt::format("{} is of kind {}; links between two NUMA domains are of kind socket, "
                             "and no others",
                             what, name_of(link.kind)));
    }
    if (!ends_.insert({std::min(link.a, link.b), std::max(link.a, link.b), link.kind}).second) {
      of_link(l, fmt::format("{} of kind {} is there twice; give one of them a count", what,
                             name_of(link.kind)));
    }
  }

  void check_pair(std::size_t p) {
    const MeasuredPair& pair = parts_.pairs[p];
    const std::int32_t gpus = count_of(VertexKind::gpu);
    for (const GpuId end : {pair.from, pair.to}) {
      if (end.value() >= 0 && end.value() < gpus) continue;
      of_pair(p, fmt::format("the pair names GPU {}, and there are {}", end.value(), gpus));
      return;
    }
    const std::string what =
        fmt::format("the pair from g{} to g{}", pair.from.value(), pair.to.value());
    if (pair.from == pair.to) of_pair(p, what + " is one GPU; name two");
    if (!std::isfinite(pair.rate) || pair.rate <= 0) {
      of_pair(p, fmt::format("{} has a rate of {} GB/s; it must be positive", what, pair.rate));
    }
    if (!std::isfinite(pair.latency_us) || pair.latency_us < 0) {
      of_pair(
          p, fmt::format("{} has a latency of {} us; it must be 0 or more", what, pair.latency_us));
    }
    if (!pairs_.insert({pair.from, pair.to}).second) of_pair(p, what + " is there twice; keep one");
  }

  void check_ways() {
    const HostTree tree = host_tree(parts_);
    for (const std::size_t l : tree.closing) {
      const LinkPart& link = parts_.links[l];
      of_link(l,
              fmt::format("the link between '{}' and '{}' closes a circle; outside NVLink there is "
                          "one way from each vertex to host memory",
                          vertex(link.a).name, vertex(link.b).name));
    }
    std::vector<bool> is_linked(parts_.vertices.size());
    for (const LinkPart& link : parts_.links) {
      for (const VertexId end : {link.a, link.b}) {
        is_linked[static_cast<std::size_t>(end.value())] = true;
      }
    }
    std::vector<bool> is_inner(parts_.vertices.size());
    for (const std::optional<VertexId>& parent : tree.parent) {
      if (parent) is_inner[static_cast<std::size_t>(parent->value())] = true;
    }
    for (std::size_t v = 0; v < parts_.vertices.size(); ++v) {
      const TopologyVertex& one = parts_.vertices[v];
      const VertexId id{static_cast<std::int32_t>(v)};
      const bool is_leaf = one.kind == VertexKind::gpu || one.kind == VertexKind::card;
      if (one.kind != VertexKind::domain && !is_linked[v]) {
        of_vertex(id, fmt::format("the {} '{}' has no link", name_of(one.kind), one.name));
      } else if (is_leaf && !tree.domain[v]) {
        of_vertex(id, fmt::format("the {} '{}' has no way to host memory; link it to a switch, a "
                                  "bridge or a NUMA domain",
                                  name_of(one.kind), one.name));
      } else if (is_leaf && is_inner[v]) {
        of_vertex(id,
                  fmt::format("the {} '{}' lies on another's way to host memory; only switches and "
                              "bridges may",
                              name_of(one.kind), one.name));
      }
    }
    check_sockets();
  }

  /// Every domain can be reached from the first over links between sockets.
  void check_sockets() {
    std::vector<bool> is_reached(parts_.vertices.size());
    bool is_first = true;
    for (std::size_t v = 0; v < parts_.vertices.size(); ++v) {
      if (parts_.vertices[v].kind != VertexKind::domain) continue;
      if (std::exchange(is_first, false)) is_reached[v] = true;
    }
    for (bool is_grown = true; is_grown;) {
      is_grown = false;
      for (const LinkPart& link : parts_.links) {
        if (link.kind != LinkKind::socket) continue;
        const auto a = static_cast<std::size_t>(link.a.value());
        const auto b = static_cast<std::size_t>(link.b.value());
        if (is_reached[a] == is_reached[b]) continue;
        is_reached[a] = is_reached[b] = is_grown = true;
      }
    }
    for (std::size_t v = 0; v < parts_.vertices.size(); ++v) {
      if (parts_.vertices[v].kind != VertexKind::domain || is_reached[v]) continue;
      of_vertex(
          VertexId{static_cast<std::int32_t>(v)},
          fmt::format("the NUMA domain '{}' has no way to the first one; add a link of kind socket",
                      parts_.vertices[v].name));
    }
  }

  const TopologyParts& parts_;
  std::vector<TopologyFault> faults_;
  std::set<std::string> uuids_;
  std::set<std::tuple<VertexId, VertexId, LinkKind>> ends_;
  std::set<std::pair<GpuId, GpuId>> pairs_;
};

}  // namespace

std::vector<TopologyFault> faults_of(const TopologyParts& parts) {
  return TopologyChecks(parts).all();
}

}  // namespace heddle
