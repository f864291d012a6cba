#include "node-runtime/collectives/schedule/bracket.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"
#include "base/require.hpp"

namespace heddle::collectives {
namespace {

/// Where the right part of a range begins.
Rank middle(const RankRange& range) {
  HEDDLE_CHECK(range.size() > 1, "{} ranks have no parts", range.size());
  const auto size = static_cast<std::uint32_t>(range.size());
  return range.begin + static_cast<std::int32_t>(std::bit_floor(size - 1));
}

}  // namespace

Bracket::Bracket(std::int32_t ranks) : ranks_(ranks) {
  require(ranks > 0, "Bracket: {} ranks; at least 1 is needed", ranks);
}

RankRange Bracket::left(const RankRange& range) {
  return {range.begin, middle(range)};
}

RankRange Bracket::right(const RankRange& range) {
  return {middle(range), range.end};
}

bool Bracket::has(const RankRange& range) const {
  if (range.begin < Rank{0} || range.size() < 1 || range.end > Rank{ranks_}) return false;
  RankRange at = all();
  while (at != range && at.size() > 1) {
    at = range.end <= middle(at) ? left(at) : right(at);
    if (range.begin < at.begin) return false;  // in both parts
  }
  return at == range;
}

RankRange Bracket::parent(const RankRange& range) const {
  HEDDLE_CHECK(has(range) && range != all(), "ranks {} to {} are no part of {}",
               range.begin.value(), range.end.value(), ranks_);
  RankRange at = all();
  while (left(at) != range && right(at) != range)
    at = range.end <= middle(at) ? left(at) : right(at);
  return at;
}

std::int32_t Bracket::depth() const {
  return static_cast<std::int32_t>(std::bit_width(static_cast<std::uint32_t>(ranks_ - 1)));
}

std::vector<RankRange> Bracket::whole_parts(std::span<const Rank> members) const {
  HEDDLE_EXPENSIVE(std::ranges::adjacent_find(members, std::ranges::greater_equal{}) ==
                   members.end());
  return whole_parts_of(all(), members, middle);
}

}  // namespace heddle::collectives
