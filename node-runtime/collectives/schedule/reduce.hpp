#pragma once

#include "node-runtime/collectives/schedule/broadcast.hpp"
#include "node-runtime/collectives/schedule/levels.hpp"
#include "node-runtime/collectives/schedule/order.hpp"
#include "node-runtime/collectives/schedule/schedule.hpp"

namespace heddle::collectives {

/// One rank's part in reducing the inputs of all ranks to the root's output, up the trees of all
/// levels at once. Each element is reduced in the bracket of `order` (ReductionOrder), whatever
/// trees: a rank reduces what of the bracket has come together below it, and sends on the fewest
/// values that this leaves. In Order::ranks that is one where neighbours in number are neighbours
/// in place; in Order::places it is one in flat and binomial trees, whatever numbers the ranks
/// have. Trees that split a message count as binary. The message is one block.
///
/// O(own steps + ranks): which values there are follows from who is below.
[[nodiscard]] Schedule make_reduce(Rank rank, Rank root, const Levels& levels,
                                   const LevelTrees& trees, Order order = Order::ranks);

}  // namespace heddle::collectives
