#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "node-runtime/topology/links/gpu_topology.hpp"

namespace heddle::test {

/// Parts with vertices that are named by their kind and number: g0, m0, s0, b0, c0.
class PartsBuilder {
 public:
  explicit PartsBuilder(std::int32_t gpus) {
    parts_.name = "built";
    for (std::int32_t g = 0; g < gpus; ++g) add(VertexKind::gpu, "g" + std::to_string(g));
  }

  VertexId add(VertexKind kind, std::string name) {
    parts_.vertices.push_back({kind, std::move(name), {}, {}});
    return VertexId{static_cast<std::int32_t>(parts_.vertices.size() - 1)};
  }

  void link(VertexId a, VertexId b, LinkKind kind, double rate, double latency_us = 0,
            std::int32_t count = 1) {
    parts_.links.push_back({a, b, kind, count, rate, latency_us});
  }

  TopologyParts& parts() { return parts_; }
  [[nodiscard]] GpuTopology topology() const { return GpuTopology(parts_); }

 private:
  TopologyParts parts_;
};

/// Two GPUs on a switch of domain m0, one straight on m1; a card on the switch.
inline PartsBuilder three_gpus() {
  PartsBuilder builder(3);
  const VertexId m0 = builder.add(VertexKind::domain, "m0");
  const VertexId m1 = builder.add(VertexKind::domain, "m1");
  const VertexId s0 = builder.add(VertexKind::switch_chip, "s0");
  const VertexId c0 = builder.add(VertexKind::card, "c0");
  builder.link(VertexId{0}, s0, LinkKind::pcie, 12, 4);
  builder.link(VertexId{1}, s0, LinkKind::pcie, 6, 4);
  builder.link(VertexId{2}, m1, LinkKind::pcie, 12, 4);
  builder.link(s0, m0, LinkKind::pcie, 10, 1);
  builder.link(m0, m1, LinkKind::socket, 19, 2);
  builder.link(c0, s0, LinkKind::pcie, 8, 3);
  builder.parts().peers_without_nvlink = PeerWay::pcie;
  return builder;
}

/// The vertices that a route goes through: "g0 s0 g1".
inline std::string way(const GpuTopology& topology, const GpuRoute& route) {
  if (route.links.empty()) return "";
  std::string text = topology.vertex(topology.link(route.links.front()).from).name;
  for (const TopologyLinkId id : route.links) {
    text += " " + topology.vertex(topology.link(id).to).name;
  }
  return text;
}

inline std::string way(const GpuTopology& topology, std::int32_t from, std::int32_t to) {
  return way(topology, topology.route(GpuId{from}, GpuId{to}));
}

}  // namespace heddle::test
