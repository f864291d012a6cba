#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "node-runtime/topology/links/topology_parts.hpp"

namespace heddle {

/// Which links are NVLinks between GPUs, directly or over NVLink switches. All others lead to host
/// memory: PCI Express, links between sockets, and NVLinks of processors.
[[nodiscard]] std::vector<bool> fabric_links(const TopologyParts& parts);

/// The links that lead to host memory as a forest: a tree below each NUMA domain.
/// Invariant: a vertex that no domain reaches has neither parent nor domain.
struct HostTree {
  std::vector<std::optional<VertexId>> parent;  ///< of each vertex; none for a domain
  std::vector<std::optional<VertexId>> domain;  ///< of each vertex; a domain is its own
  std::vector<std::int32_t> height;             ///< of each vertex above its farthest leaf
  std::vector<std::size_t> closing;             ///< links that close a circle, in order

  /// Height of the highest domain.
  [[nodiscard]] std::int32_t domain_height(const TopologyParts& parts) const;
};

/// `parts.links` have ends that exist.
[[nodiscard]] HostTree host_tree(const TopologyParts& parts);

}  // namespace heddle
