#pragma once

#include <cstdint>
#include <vector>

#include "node-runtime/collectives/schedule/levels.hpp"
#include "node-runtime/collectives/schedule/schedule.hpp"
#include "node-runtime/collectives/schedule/trees.hpp"

/// What the generators of schedules are made of.
namespace heddle::collectives {

/// Where a rank has a block or a value, and the step that brings it.
struct Held {
  static constexpr std::int32_t no_step = -1;  ///< it is in the input

  Spot spot = Spot::in_input();
  std::int32_t step = no_step;

  /// Appends what a step that reads it comes after.
  void precede(std::vector<std::int32_t>& after) const {
    if (step != no_step) after.push_back(step);
  }
};

/// The ranks, ascending, that are below a position of a group in a tree that does not split
/// messages, itself and all that its ranks stand for included. O(all ranks + subtree).
[[nodiscard]] std::vector<Rank> ranks_below(const Levels& levels, const LevelGroup& group,
                                            Tree tree, std::int32_t position);

/// The tree that is walked where a message cannot be split.
[[nodiscard]] constexpr Tree unsplit(Tree tree) {
  return tree == Tree::split_binary ? Tree::binary : tree;
}

}  // namespace heddle::collectives
