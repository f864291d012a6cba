#include "node-runtime/collectives/schedule/reduction_order.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"
#include "node-runtime/collectives/schedule/generator_parts.hpp"

namespace heddle::collectives {

Rank ReductionOrder::position(Rank rank) const {
  return order_ == Order::ranks ? rank : levels_.position(rank);
}

/// Where the right part of a range begins.
Rank ReductionOrder::middle(const RankRange& range) const {
  if (order_ == Order::ranks) return Bracket::right(range).begin;
  // From the outside in: the first level at which the range has several members.
  for (std::size_t layer = levels_.layers(); layer-- > 0;) {
    const std::span<const std::int32_t> begins = levels_.begins(layer);
    const auto first = std::ranges::lower_bound(begins, range.begin.value());
    const auto last = std::lower_bound(first, begins.end(), range.end.value());
    const auto members = static_cast<std::uint32_t>(last - first);
    if (members > 1) return Rank{first[std::bit_floor(members - 1)]};
  }
  HEDDLE_CHECK(false, "positions {} to {} have no parts", range.begin.value(), range.end.value());
  return range.begin;
}

RankRange ReductionOrder::left(const RankRange& range) const {
  return {range.begin, middle(range)};
}

RankRange ReductionOrder::right(const RankRange& range) const {
  return {middle(range), range.end};
}

std::vector<RankRange> ReductionOrder::whole_parts(std::span<const Rank> ranks) const {
  std::vector<Rank> positions;
  positions.reserve(ranks.size());
  for (const Rank rank : ranks) positions.push_back(position(rank));
  std::ranges::sort(positions);
  if (order_ == Order::ranks) return Bracket(levels_.size()).whole_parts(positions);
  return whole_parts_of(all(), positions, [this](const RankRange& range) { return middle(range); });
}

bool ReductionOrder::is_balanced(const RankRange& range) const {
  return range.size() == 1 || (left(range) == Bracket::left(range) && is_balanced(left(range)) &&
                               is_balanced(right(range)));
}

bool ReductionOrder::is_balanced() const {
  return order_ == Order::ranks || is_balanced(all());
}

ValuesSent values_sent(const Levels& levels, Order order) {
  ValuesSent values{};
  for (auto& of_level : values) of_level.fill(1);
  const ReductionOrder bracket(levels, order);
  for (const LevelGroup& group : levels.largest_groups()) {
    for (const Tree tree : all_trees) {
      std::int32_t& most =
          values.at(static_cast<std::size_t>(group.level)).at(static_cast<std::size_t>(tree));
      for (const GroupPart& child :
           reduction_neighbours(levels, group, unsplit(tree), order, group.leader).children) {
        most = std::max(most, static_cast<std::int32_t>(bracket.whole_parts(child.ranks).size()));
      }
    }
  }
  return values;
}

}  // namespace heddle::collectives
