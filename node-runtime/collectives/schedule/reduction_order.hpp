#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "node-runtime/collectives/schedule/bracket.hpp"
#include "node-runtime/collectives/schedule/levels.hpp"
#include "node-runtime/collectives/schedule/order.hpp"
#include "node-runtime/collectives/schedule/trees.hpp"

namespace heddle::collectives {

/// The bracket of a reduction in a given Order. Ranks are named by their positions in that order,
/// so that the ranks of each value are a range.
///
/// - ranks: the position is the rank, and the bracket is Bracket.
/// - places: positions are those of Levels::order(). The members of each group of the levels are
///   reduced, in their order, in the Bracket over their number; a member's value is that of the
///   group that it leads at the level before. So the value of a GPU, and that of a host, are values
///   of the bracket. It depends on the places only, not on root, trees or size of the message.
class ReductionOrder {
 public:
  /// Refers to `levels`.
  ReductionOrder(const Levels& levels, Order order) : levels_(levels), order_(order) {}

  [[nodiscard]] Order order() const { return order_; }
  [[nodiscard]] RankRange all() const { return {Rank{0}, Rank{levels_.size()}}; }
  [[nodiscard]] Rank position(Rank rank) const;
  /// The two parts of a range of the bracket, of more than one rank.
  [[nodiscard]] RankRange left(const RankRange& range) const;
  [[nodiscard]] RankRange right(const RankRange& range) const;
  /// The largest ranges of the bracket that `ranks`, in any order and each once, make up without
  /// others. Ascending. O(ranks · log ranks + result · depth).
  [[nodiscard]] std::vector<RankRange> whole_parts(std::span<const Rank> ranks) const;
  /// The parts of each range are those of Bracket. O(ranks).
  [[nodiscard]] bool is_balanced() const;

 private:
  [[nodiscard]] Rank middle(const RankRange& range) const;
  [[nodiscard]] bool is_balanced(const RankRange& range) const;

  const Levels& levels_;
  Order order_;
};

/// Values of each element that a child of the leader sends it in a reduction, at most: by Level, in
/// the largest group, and by Tree. 1 where there is no such group.
using ValuesSent = std::array<std::array<std::int32_t, std::size(all_trees)>, 4>;
/// O(ranks · log ranks) for each level and tree.
[[nodiscard]] ValuesSent values_sent(const Levels& levels, Order order);

}  // namespace heddle::collectives
