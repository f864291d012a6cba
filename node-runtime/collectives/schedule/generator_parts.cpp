#include "node-runtime/collectives/schedule/generator_parts.hpp"

#include <algorithm>
#include <span>

namespace heddle::collectives {

Held ScheduleWriter::add(Step step) {
  const Spot to = step.to;
  schedule_.steps.push_back(std::move(step));
  return {to, static_cast<std::int32_t>(schedule_.steps.size()) - 1};
}

Held ScheduleWriter::receive(Rank from, std::int32_t block, const Spot& to, Joined joined) {
  return add({Step::Kind::receive, block, from, {}, to, {}, joined == Joined::yes});
}

void ScheduleWriter::send(Rank to, std::int32_t block, const Held& what, Joined joined) {
  Step step{Step::Kind::send, block, to, {what.spot}, {}, {}, joined == Joined::yes};
  what.precede(step.after);
  add(std::move(step));
}

Held ScheduleWriter::copy(std::int32_t block, const Held& from, const Spot& to) {
  Step step{Step::Kind::copy, block, Rank{-1}, {from.spot}, to, {}};
  from.precede(step.after);
  return add(std::move(step));
}

Held ScheduleWriter::reduce(std::int32_t block, const Held& left, const Held& right,
                            const Spot& to) {
  Step step{Step::Kind::reduce, block, Rank{-1}, {left.spot, right.spot}, to, {}};
  left.precede(step.after);
  right.precede(step.after);
  return add(std::move(step));
}

std::vector<Rank> ranks_below(const Levels& levels, const LevelGroup& group, Tree tree,
                              std::int32_t position) {
  const auto size = static_cast<std::int32_t>(group.members.size());
  std::vector<Rank> ranks;
  std::vector<std::int32_t> open{position};
  while (!open.empty()) {
    const std::int32_t next = open.back();
    open.pop_back();
    const std::span<const Rank> below = levels.stands_for(group.level, group.at(next));
    ranks.insert(ranks.end(), below.begin(), below.end());
    const TreeNeighbours neighbours = tree_neighbours(tree, next, size);
    open.insert(open.end(), neighbours.children.begin(), neighbours.children.end());
  }
  std::ranges::sort(ranks);
  return ranks;
}

}  // namespace heddle::collectives
