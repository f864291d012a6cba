#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "node-runtime/topology/links/topology_parts.hpp"

namespace heddle {

/// The links of a path from `from` to `to`, or nothing if there is none. Of all paths over links
/// for which `is_allowed`, whose inner vertices are `may_pass`: the fewest links, then the greatest
/// rate of the slowest link, then the lowest numbers of vertices from the end backwards.
[[nodiscard]] std::optional<std::vector<TopologyLinkId>> path(
    std::span<const TopologyLink> links, std::size_t vertices, VertexId from, VertexId to,
    const std::function<bool(const TopologyLink&)>& is_allowed,
    const std::function<bool(VertexId)>& may_pass);

}  // namespace heddle
