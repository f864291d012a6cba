#pragma once

#include "node-runtime/collectives/schedule/broadcast.hpp"
#include "node-runtime/collectives/schedule/levels.hpp"
#include "node-runtime/collectives/schedule/schedule.hpp"

/// One rank's part in handing out or collecting a block for each rank, by the trees of all levels:
/// block r is rank r's. What goes to or comes from other hosts is in slots on its way, one for each
/// block of a rank below. Trees that split a message count as binary. O(own steps + ranks).
namespace heddle::collectives {

/// Block r of the root's input comes into the output of rank r.
[[nodiscard]] Schedule make_scatter(Rank rank, Rank root, const Levels& levels,
                                    const LevelTrees& trees);

/// Block r of the input of rank r comes into the root's output.
[[nodiscard]] Schedule make_gather(Rank rank, Rank root, const Levels& levels,
                                   const LevelTrees& trees);

}  // namespace heddle::collectives
