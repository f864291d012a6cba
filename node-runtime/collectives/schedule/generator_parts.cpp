#include "node-runtime/collectives/schedule/generator_parts.hpp"

#include <algorithm>

namespace heddle::collectives {

std::vector<Rank> ranks_below(const Levels& levels, const LevelGroup& group, Tree tree,
                              std::int32_t position) {
  const auto size = static_cast<std::int32_t>(group.members.size());
  std::vector<Rank> ranks;
  std::vector<std::int32_t> open{position};
  while (!open.empty()) {
    const std::int32_t next = open.back();
    open.pop_back();
    const std::vector<Rank> below = levels.stands_for(group.level, group.at(next));
    ranks.insert(ranks.end(), below.begin(), below.end());
    const TreeNeighbours neighbours = tree_neighbours(tree, next, size);
    open.insert(open.end(), neighbours.children.begin(), neighbours.children.end());
  }
  std::ranges::sort(ranks);
  return ranks;
}

}  // namespace heddle::collectives
