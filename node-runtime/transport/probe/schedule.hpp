#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace heddle {

/// Two nodes that probe the paths between their places, or one node that probes its own.
using NodePair = std::pair<std::int32_t, std::int32_t>;

/// Every node with itself, then every two nodes, in rounds. The pairs of a round work at the same
/// time, so no host is in two of them: they would measure each other.
[[nodiscard]] std::vector<std::vector<NodePair>> probing_rounds(std::span<const std::string> hosts);

}  // namespace heddle
