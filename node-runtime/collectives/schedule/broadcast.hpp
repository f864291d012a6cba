#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "node-runtime/collectives/schedule/generator_parts.hpp"
#include "node-runtime/collectives/schedule/levels.hpp"
#include "node-runtime/collectives/schedule/schedule.hpp"
#include "node-runtime/collectives/schedule/trees.hpp"

namespace heddle::collectives {

/// The tree of each level, by Level.
using LevelTrees = std::array<Tree, 4>;

/// Blocks that a broadcast's message is cut into: two halves if a tree splits it.
[[nodiscard]] std::int32_t broadcast_blocks(const LevelTrees& trees);

/// One rank's part in sending the root's input into all other ranks' outputs, by the trees of all
/// levels at once (000 section 5.2.3): a leader forwards a fragment within its host, socket or GPU
/// when it has come, beside what it forwards between hosts. Needs no slot. O(own steps).
[[nodiscard]] Schedule make_broadcast(Rank rank, Rank root, const Levels& levels,
                                      const LevelTrees& trees);

/// The same behind other steps of the rank; `held`: where the root has each block.
[[nodiscard]] Schedule add_broadcast(Schedule so_far, Rank root, const Levels& levels,
                                     const LevelTrees& trees, std::vector<Held> held);

}  // namespace heddle::collectives
