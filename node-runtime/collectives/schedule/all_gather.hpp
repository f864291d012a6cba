#pragma once

#include "node-runtime/collectives/schedule/broadcast.hpp"
#include "node-runtime/collectives/schedule/levels.hpp"
#include "node-runtime/collectives/schedule/order.hpp"
#include "node-runtime/collectives/schedule/schedule.hpp"

/// Operations whose result all ranks have, or a part of it each. Block r is rank r's. The lowest
/// ranks lead. Trees that split a message count as binary, where it has a block for each rank.
namespace heddle::collectives {

/// One rank's part in bringing block r of the input of each rank r into all outputs: leaders
/// collect the blocks below them, those of the outermost group pass them round a ring, each link
/// with as much as any, and hand them down again. Needs no slot. O(blocks).
[[nodiscard]] Schedule make_all_gather(Rank rank, const Levels& levels, const LevelTrees& trees);

/// One rank's part in reducing block r of all inputs to the output of rank r, each in the bracket
/// of `order`:
/// a reduction to each rank.
[[nodiscard]] Schedule make_reduce_scatter(Rank rank, const Levels& levels, const LevelTrees& trees,
                                           Order order = Order::ranks);

/// How all ranks come to have a reduction.
enum class AllReduce : std::uint8_t {
  reduce_broadcast,  ///< to the lowest rank and from there, as one block or two (broadcast_blocks)
  scatter_gather,    ///< a block to each rank, then all blocks to all: for long messages
};
/// Blocks that the message is cut into.
[[nodiscard]] std::int32_t all_reduce_blocks(AllReduce way, std::int32_t ranks,
                                             const LevelTrees& trees);
/// One rank's part in reducing all inputs to all outputs, in the bracket of `order`.
[[nodiscard]] Schedule make_all_reduce(Rank rank, const Levels& levels, const LevelTrees& trees,
                                       AllReduce way, Order order = Order::ranks);

}  // namespace heddle::collectives
