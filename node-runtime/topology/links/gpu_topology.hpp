#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "node-runtime/topology/links/topology_parts.hpp"

namespace heddle {

/// The way that data take, always the same one.
struct GpuRoute {
  std::vector<TopologyLinkId> links;  ///< from the first to the last; none within one GPU
  double rate = 0;                    ///< GB/s: as measured, or that of the slowest link
  double latency_us = 0;              ///< as measured, or the sum over the links
  std::int32_t level = 0;             ///< the highest of its links
};

/// The GPUs of one host and what joins them (004 section 3).
///
/// Routes: GPUs that NVLink joins, directly or over its switches, use it, with the fewest links.
/// All other ways go along the tree from each vertex to host memory: GPU to GPU as `PeerWay` says;
/// GPU and domain; GPU and card by their nearest common vertex.
///
/// Levels: the level of a link is the height of its lower end above the GPUs, and a route has the
/// level of its highest link. So GPUs of one board have level 0, of one switch 1, of one socket 2,
/// others 3, on a machine with these parts. Where there are NVLinks between GPUs they are level 0,
/// and all others begin at 1.
class GpuTopology {
 public:
  /// Throws Error(usage) with a line for each of faults_of(parts).
  explicit GpuTopology(TopologyParts parts);

  [[nodiscard]] const std::string& name() const { return parts_.name; }
  [[nodiscard]] const TopologyParts& parts() const { return parts_; }
  [[nodiscard]] std::int32_t gpus() const { return gpus_; }
  [[nodiscard]] std::int32_t domains() const { return static_cast<std::int32_t>(domains_.size()); }
  [[nodiscard]] std::int32_t cards() const { return static_cast<std::int32_t>(cards_.size()); }

  [[nodiscard]] const TopologyVertex& vertex(VertexId id) const;
  [[nodiscard]] VertexId vertex_of(GpuId gpu) const;
  [[nodiscard]] VertexId vertex_of(DomainId domain) const;
  [[nodiscard]] VertexId vertex_of(CardId card) const;

  /// Two for each LinkPart, one after the other: from a to b, from b to a.
  [[nodiscard]] std::span<const TopologyLink> links() const { return links_; }
  [[nodiscard]] const TopologyLink& link(TopologyLinkId id) const;
  /// "g0 -> s0", for messages and tables.
  [[nodiscard]] std::string name_of(TopologyLinkId id) const;

  [[nodiscard]] const GpuRoute& route(GpuId from, GpuId to) const;
  [[nodiscard]] const GpuRoute& route(GpuId from, DomainId to) const;
  [[nodiscard]] const GpuRoute& route(DomainId from, GpuId to) const;
  [[nodiscard]] const GpuRoute& route(GpuId from, CardId to) const;
  [[nodiscard]] const GpuRoute& route(CardId from, GpuId to) const;

  /// The NUMA domain whose tree the GPU hangs in.
  [[nodiscard]] DomainId domain_of(GpuId gpu) const;
  /// The card with the lowest level, then the greatest rate, then the lowest number, if there is
  /// one.
  [[nodiscard]] std::optional<CardId> nearest_card(GpuId gpu) const;

  /// Levels are 0 to levels() - 1.
  [[nodiscard]] std::int32_t levels() const { return levels_; }
  /// Whether all ordered pairs of GPUs are alike: rates and latencies each within `tolerance` of
  /// their greatest.
  [[nodiscard]] bool is_uniform(double tolerance = 0.05) const;

  /// Routes begin and end where they should, are without gaps and circles, and have the level and,
  /// unless measured, the rate and latency of their links.
  [[nodiscard]] bool is_valid() const;

 private:
  void add_links();
  void add_routes();
  [[nodiscard]] GpuRoute route_over(std::vector<TopologyLinkId> links) const;
  [[nodiscard]] std::vector<TopologyLinkId> host_path(VertexId from, VertexId to) const;
  [[nodiscard]] GpuRoute peer_route(GpuId from, GpuId to) const;
  [[nodiscard]] bool is_route(const GpuRoute& route, VertexId from, VertexId to) const;

  TopologyParts parts_;
  std::int32_t gpus_ = 0;
  std::int32_t levels_ = 1;
  std::vector<VertexId> domains_;
  std::vector<VertexId> cards_;
  std::vector<DomainId> domain_of_gpu_;
  std::vector<TopologyLink> links_;
  // Row by row: from each GPU (or to it) to all others.
  std::vector<GpuRoute> between_gpus_;
  std::vector<GpuRoute> to_domains_;
  std::vector<GpuRoute> from_domains_;
  std::vector<GpuRoute> to_cards_;
  std::vector<GpuRoute> from_cards_;
};

}  // namespace heddle
