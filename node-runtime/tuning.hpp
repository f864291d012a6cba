#pragma once

#include <cstdint>

#include "algorithms/matrix/layout.hpp"
#include "config/config.hpp"

namespace heddle {

struct NodeFacts;

/// Tile, strip and small size for a matrix: what the configuration says, and measured choices where
/// it says `auto`. Throws Error(usage) when a wanted combination is impossible (strip no multiple
/// of small).
[[nodiscard]] TileLayout choose_layout(std::int64_t rows, std::int64_t columns,
                                       const config::Layout& wanted, const NodeFacts& facts);

}  // namespace heddle
