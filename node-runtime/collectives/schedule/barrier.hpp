#pragma once

#include "node-runtime/collectives/schedule/broadcast.hpp"
#include "node-runtime/collectives/schedule/levels.hpp"
#include "node-runtime/collectives/schedule/schedule.hpp"

namespace heddle::collectives {

/// One rank's part in messages after which each rank knows that all have come: up the trees of the
/// inner levels; round the members of the outermost one in as many rounds as the logarithm of their
/// number, each time twice as far; and down the trees. They carry one block, of nothing.
[[nodiscard]] Schedule make_barrier(Rank rank, const Levels& levels, const LevelTrees& trees);

}  // namespace heddle::collectives
