#include "node-runtime/collectives/schedule/scatter.hpp"

#include <ranges>
#include <utility>
#include <vector>

#include "base/indexed_vector.hpp"
#include "node-runtime/collectives/schedule/generator_parts.hpp"

namespace heddle::collectives {
namespace {

/// A rank's blocks on their way.
class Blocks {
 public:
  Blocks(Rank rank, std::int32_t ranks) : held_(ranks, Held{}) { schedule_.rank = rank; }

  [[nodiscard]] Rank rank() const { return schedule_.rank; }
  [[nodiscard]] Schedule take() { return std::move(schedule_); }

  void receive(Rank from, Rank block, bool is_for_output) {
    const Spot to = is_for_output ? Spot::in_output() : Spot::in_slot(schedule_.slots++);
    schedule_.steps.push_back({Step::Kind::receive, block.value(), from, {}, to, {}});
    held_[block] = {to, static_cast<std::int32_t>(schedule_.steps.size()) - 1};
  }
  void send(Rank to, Rank block) {
    const Held& held = held_[block];
    std::vector<std::int32_t> after;
    held.precede(after);
    schedule_.steps.push_back(
        {Step::Kind::send, block.value(), to, {held.spot}, {}, std::move(after)});
  }
  /// The rank's own block, from its input.
  void keep_own() {
    schedule_.steps.push_back(
        {Step::Kind::copy, rank().value(), Rank{-1}, {Spot::in_input()}, Spot::in_output(), {}});
  }

 private:
  Schedule schedule_;
  IndexedVector<Rank, Held> held_;
};

/// What a rank has to do with one group.
struct Part {
  const LevelGroup& group;
  Tree tree;
  std::int32_t position;
  TreeNeighbours neighbours;

  Part(const LevelGroup& of, Rank rank, const LevelTrees& trees)
      : group(of),
        tree(unsplit(trees.at(static_cast<std::size_t>(of.level)))),
        position(of.position(rank)),
        neighbours(tree_neighbours(tree, position, static_cast<std::int32_t>(of.members.size()))) {}
};

}  // namespace

Schedule make_scatter(Rank rank, Rank root, const Levels& levels, const LevelTrees& trees) {
  Blocks blocks(rank, levels.size());
  for (const LevelGroup& group : levels.groups_of(rank, root) | std::views::reverse) {
    const Part part(group, rank, trees);
    if (part.neighbours.parent) {
      for (const Rank block : ranks_below(levels, group, part.tree, part.position)) {
        blocks.receive(group.at(*part.neighbours.parent), block, block == rank);
      }
    }
    for (const std::int32_t child : part.neighbours.children) {
      for (const Rank block : ranks_below(levels, group, part.tree, child)) {
        blocks.send(group.at(child), block);
      }
    }
  }
  if (rank == root) blocks.keep_own();
  return blocks.take();
}

Schedule make_gather(Rank rank, Rank root, const Levels& levels, const LevelTrees& trees) {
  Blocks blocks(rank, levels.size());
  if (rank == root) blocks.keep_own();
  for (const LevelGroup& group : levels.groups_of(rank, root)) {
    const Part part(group, rank, trees);
    for (const std::int32_t child : part.neighbours.children) {
      for (const Rank block : ranks_below(levels, group, part.tree, child)) {
        blocks.receive(group.at(child), block, rank == root);
      }
    }
    if (!part.neighbours.parent) continue;
    for (const Rank block : ranks_below(levels, group, part.tree, part.position)) {
      blocks.send(group.at(*part.neighbours.parent), block);
    }
  }
  return blocks.take();
}

}  // namespace heddle::collectives
