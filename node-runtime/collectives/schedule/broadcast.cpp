#include "node-runtime/collectives/schedule/broadcast.hpp"

#include <algorithm>
#include <ranges>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "node-runtime/collectives/schedule/generator_parts.hpp"

namespace heddle::collectives {
namespace {

std::int32_t block_of(Half half) {
  return half == Half::first ? 0 : 1;
}

class Broadcast {
 public:
  Broadcast(Schedule so_far, std::vector<Held> held)
      : writer_(std::move(so_far)), held_(std::move(held)) {}

  /// The rank, which is not the group's leader, gets the message there and forwards it.
  void take_part(const LevelGroup& group, Tree tree) {
    const auto size = static_cast<std::int32_t>(group.members.size());
    const std::int32_t position = group.position(writer_.rank());
    const TreeNeighbours neighbours = tree_neighbours(tree, position, size);
    HEDDLE_CHECK(neighbours.parent.has_value(), "rank {} leads", writer_.rank().value());
    const Rank parent = group.at(*neighbours.parent);
    if (tree != Tree::split_binary) {
      for (std::int32_t block = 0; block < blocks(); ++block) {
        receive(parent, block);
        for (const std::int32_t child : neighbours.children) send(group.at(child), block);
      }
      return;
    }
    const std::int32_t own = block_of(half_of(position));
    receive(parent, own);
    for (const std::int32_t child : neighbours.children) send(group.at(child), own);
    if (neighbours.partner) send(group.at(*neighbours.partner), own);
    receive(group.at(neighbours.partner ? *neighbours.partner : *neighbours.giver), 1 - own);
    for (const std::int32_t taker : neighbours.takers) send(group.at(taker), own);
  }

  /// The rank leads the group and has the message, or gets it at the level before.
  void lead(const LevelGroup& group, Tree tree) {
    const auto size = static_cast<std::int32_t>(group.members.size());
    const TreeNeighbours neighbours = tree_neighbours(tree, 0, size);
    if (tree != Tree::split_binary) {
      for (std::int32_t block = 0; block < blocks(); ++block) {
        for (const std::int32_t child : neighbours.children) send(group.at(child), block);
      }
      return;
    }
    for (const std::int32_t child : neighbours.children) {
      send(group.at(child), block_of(half_of(child)));
    }
    for (const std::int32_t taker : neighbours.takers) {
      send(group.at(taker), 1 - block_of(half_of(taker)));
    }
  }

  [[nodiscard]] Schedule take() { return writer_.take(); }

 private:
  [[nodiscard]] std::int32_t blocks() const { return static_cast<std::int32_t>(held_.size()); }

  void receive(Rank from, std::int32_t block) {
    held_[static_cast<std::size_t>(block)] = writer_.receive(from, block, Spot::in_output());
  }
  void send(Rank to, std::int32_t block) {
    writer_.send(to, block, held_[static_cast<std::size_t>(block)]);
  }

  ScheduleWriter writer_;
  std::vector<Held> held_;  ///< by block
};

}  // namespace

std::int32_t broadcast_blocks(const LevelTrees& trees) {
  return std::ranges::find(trees, Tree::split_binary) == trees.end() ? 1 : 2;
}

Schedule make_broadcast(Rank rank, Rank root, const Levels& levels, const LevelTrees& trees) {
  Schedule schedule;
  schedule.rank = rank;
  std::vector<Held> held(static_cast<std::size_t>(broadcast_blocks(trees)));
  return add_broadcast(std::move(schedule), root, levels, trees, std::move(held));
}

Schedule add_broadcast(Schedule so_far, Rank root, const Levels& levels, const LevelTrees& trees,
                       std::vector<Held> held) {
  const Rank rank = so_far.rank;
  Broadcast broadcast(std::move(so_far), std::move(held));
  // From the outside in: first what is far away.
  for (const LevelGroup& group : levels.groups_of(rank, root) | std::views::reverse) {
    const Tree tree = trees.at(static_cast<std::size_t>(group.level));
    group.leader == rank ? broadcast.lead(group, tree) : broadcast.take_part(group, tree);
  }
  return broadcast.take();
}

}  // namespace heddle::collectives
