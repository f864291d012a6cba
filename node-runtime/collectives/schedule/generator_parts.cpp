#include "node-runtime/collectives/schedule/generator_parts.hpp"

#include <algorithm>
#include <span>

#include "node-runtime/collectives/schedule/bracket.hpp"

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

namespace {

/// The ranks that members [range.begin, range.end) of a group stand for.
std::vector<Rank> ranks_of(const Levels& levels, const LevelGroup& group, const RankRange& range) {
  std::vector<Rank> ranks;
  for (Rank index = range.begin; index < range.end; ++index) {
    const std::span<const Rank> below =
        levels.stands_for(group.level, group.members[static_cast<std::size_t>(index.value())]);
    ranks.insert(ranks.end(), below.begin(), below.end());
  }
  return ranks;
}

/// Down the bracket over the group's members, to the member's own value.
ReductionNeighbours bracket_neighbours(const Levels& levels, const LevelGroup& group, Rank member) {
  const auto size = static_cast<std::int32_t>(group.members.size());
  const auto index_of = [&](Rank rank) {
    return Rank{
        static_cast<std::int32_t>(std::ranges::find(group.members, rank) - group.members.begin())};
  };
  const Rank leader = index_of(group.leader);
  const Rank own = index_of(member);
  const auto owner = [&](const RankRange& range) {
    return range.contains(leader) ? leader : range.begin;
  };
  const auto rank_at = [&](Rank index) {
    return group.members[static_cast<std::size_t>(index.value())];
  };
  ReductionNeighbours found;
  RankRange range = Bracket(size).all();
  RankRange owned = range;
  while (range.size() > 1) {
    const RankRange left = Bracket::left(range);
    const RankRange right = Bracket::right(range);
    const RankRange& mine = left.contains(own) ? left : right;
    const RankRange& other = left.contains(own) ? right : left;
    if (owner(range) == own) {
      found.children.push_back({rank_at(owner(other)), ranks_of(levels, group, other)});
    } else if (owner(mine) == own) {
      found.parent = rank_at(owner(range));
      owned = mine;
    }
    range = mine;
  }
  found.ranks = ranks_of(levels, group, owned);
  return found;
}

}  // namespace

ReductionNeighbours reduction_neighbours(const Levels& levels, const LevelGroup& group, Tree tree,
                                         Order order, Rank member) {
  if (order == Order::places && tree == Tree::binomial) {
    return bracket_neighbours(levels, group, member);
  }
  const auto size = static_cast<std::int32_t>(group.members.size());
  const std::int32_t position = group.position(member);
  const TreeNeighbours near = tree_neighbours(tree, position, size);
  ReductionNeighbours found;
  if (near.parent) found.parent = group.at(*near.parent);
  for (const std::int32_t child : near.children) {
    found.children.push_back({group.at(child), ranks_below(levels, group, tree, child)});
  }
  found.ranks = ranks_below(levels, group, tree, position);
  return found;
}

}  // namespace heddle::collectives
