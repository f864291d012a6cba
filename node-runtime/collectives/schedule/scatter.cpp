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
  Blocks(Rank rank, std::int32_t ranks) : writer_(rank), held_(ranks, Held{}) {}

  [[nodiscard]] Rank rank() const { return writer_.rank(); }
  [[nodiscard]] Schedule take() { return writer_.take(); }

  /// In one message; `is_for_output` says which of them are the rank's results.
  template <class IsForOutput>
  void receive(Rank from, const std::vector<Rank>& blocks, const IsForOutput& is_for_output) {
    Joined joined = Joined::no;
    for (const Rank block : blocks) {
      const Spot to = is_for_output(block) ? Spot::in_output() : writer_.new_slot();
      held_[block] = writer_.receive(from, block.value(), to, std::exchange(joined, Joined::yes));
    }
  }
  void send(Rank to, const std::vector<Rank>& blocks) {
    Joined joined = Joined::no;
    for (const Rank block : blocks) {
      writer_.send(to, block.value(), held_[block], std::exchange(joined, Joined::yes));
    }
  }
  /// The rank's own block, from its input.
  void keep_own() { writer_.copy(rank().value(), Held{}, Spot::in_output()); }

 private:
  ScheduleWriter writer_;
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
      blocks.receive(group.at(*part.neighbours.parent),
                     ranks_below(levels, group, part.tree, part.position),
                     [rank](Rank block) { return block == rank; });
    }
    for (const std::int32_t child : part.neighbours.children) {
      blocks.send(group.at(child), ranks_below(levels, group, part.tree, child));
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
      blocks.receive(group.at(child), ranks_below(levels, group, part.tree, child),
                     [&](Rank) { return rank == root; });
    }
    if (!part.neighbours.parent) continue;
    blocks.send(group.at(*part.neighbours.parent),
                ranks_below(levels, group, part.tree, part.position));
  }
  return blocks.take();
}

}  // namespace heddle::collectives
