#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "node-runtime/collectives/schedule/places.hpp"

namespace heddle::collectives {

/// Ranks [begin, end) whose values are reduced to one before others come in.
struct RankRange {
  Rank begin;
  Rank end;

  [[nodiscard]] std::int32_t size() const { return end - begin; }
  [[nodiscard]] bool contains(Rank rank) const { return begin <= rank && rank < end; }
  friend constexpr auto operator<=>(const RankRange&, const RankRange&) = default;
};

/// The order in which the values of a group's ranks are reduced, whoever does it, where and when:
/// value of a range := (value of its left part) op (value of its right part), the left part the
/// largest power of two of ranks that is less than all. The depth is the logarithm; all ranks, all
/// algorithms and all places have one bracket, and so the same bits.
class Bracket {
 public:
  /// Throws Error(usage) without a rank.
  explicit Bracket(std::int32_t ranks);

  [[nodiscard]] RankRange all() const { return {Rank{0}, Rank{ranks_}}; }
  /// The two parts of a range of more than one rank.
  [[nodiscard]] static RankRange left(const RankRange& range);
  [[nodiscard]] static RankRange right(const RankRange& range);
  /// The range is all() or a part, or a part of a part.
  [[nodiscard]] bool has(const RankRange& range) const;
  /// The range that `range`, which is not all(), is a part of.
  [[nodiscard]] RankRange parent(const RankRange& range) const;
  /// Steps from all ranks' values to one.
  [[nodiscard]] std::int32_t depth() const;

  /// The largest ranges of the bracket that `members` make up alone: what a host can reduce without
  /// the others. Ascending. `members`: ascending, each once. O(result · depth).
  [[nodiscard]] std::vector<RankRange> whole_parts(std::span<const Rank> members) const;

 private:
  std::int32_t ranks_;
};

/// The largest ranges of the bracket over `all`, of which `middle(range)` says where the right part
/// of one begins, that `members` make up alone. Ascending, as the members are. O(result · depth).
template <class Middle>
[[nodiscard]] std::vector<RankRange> whole_parts_of(const RankRange& all,
                                                    std::span<const Rank> members,
                                                    const Middle& middle) {
  std::vector<RankRange> parts;
  std::vector<RankRange> left_to_see{all};
  while (!left_to_see.empty()) {
    const RankRange range = left_to_see.back();
    left_to_see.pop_back();
    const auto first = std::ranges::lower_bound(members, range.begin);
    const auto last = std::ranges::lower_bound(members, range.end);
    const auto count = static_cast<std::int32_t>(last - first);
    if (count == 0) continue;
    if (count == range.size()) {
      parts.push_back(range);
      continue;
    }
    const Rank at = middle(range);
    left_to_see.push_back({at, range.end});  // seen after the left one
    left_to_see.push_back({range.begin, at});
  }
  return parts;
}

}  // namespace heddle::collectives
