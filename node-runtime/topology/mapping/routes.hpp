#pragma once

#include <cstdint>
#include <optional>

#include "node-runtime/topology/links/gpu_topology.hpp"
#include "node-runtime/topology/mapping/mapping.hpp"
#include "node-runtime/topology/mapping/traffic.hpp"

namespace heddle {

/// Calls `visit(route, flow)` for what a slot on this GPU exchanges with host memory in the domain
/// and, over the card next to the GPU, with other hosts.
template <class Visit>
void for_outer_routes(const SlotTraffic& slot, const GpuTopology& topology, GpuId gpu,
                      DomainId domain, const Visit& visit) {
  visit(topology.route(domain, gpu), slot.from_host);
  visit(topology.route(gpu, domain), slot.to_host);
  if (const std::optional<CardId> card = topology.nearest_card(gpu)) {
    visit(topology.route(*card, gpu), slot.from_network);
    visit(topology.route(gpu, *card), slot.to_network);
  }
}

/// Calls `visit(route, flow)` for all traffic that goes over links, in a fixed order.
template <class Visit>
void for_routes(const Traffic& traffic, const GpuTopology& topology, const Mapping& mapping,
                const Visit& visit) {
  for (std::int32_t i = 0; i < traffic.slots(); ++i) {
    const SlotId slot{i};
    const GpuId gpu = mapping.gpu_of[slot];
    for (std::int32_t j = 0; j < traffic.slots(); ++j) {
      const GpuId other = mapping.gpu_of[SlotId{j}];
      if (gpu != other) visit(topology.route(gpu, other), traffic.flow(slot, SlotId{j}));
    }
    for_outer_routes(traffic.slot(slot), topology, gpu, mapping.domain_of[slot], visit);
  }
}

}  // namespace heddle
