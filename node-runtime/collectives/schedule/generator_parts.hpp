#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "node-runtime/collectives/schedule/levels.hpp"
#include "node-runtime/collectives/schedule/order.hpp"
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

/// Whether a send or receive travels in the message of the one before.
enum class Joined : std::uint8_t { no, yes };

/// Writes down the steps of a rank.
class ScheduleWriter {
 public:
  explicit ScheduleWriter(Rank rank) { schedule_.rank = rank; }
  /// Behind other steps of the rank.
  explicit ScheduleWriter(Schedule so_far) : schedule_(std::move(so_far)) {}

  [[nodiscard]] Rank rank() const { return schedule_.rank; }
  [[nodiscard]] Schedule take() { return std::move(schedule_); }
  [[nodiscard]] Spot new_slot() { return Spot::in_slot(schedule_.slots++); }

  Held receive(Rank from, std::int32_t block, const Spot& to, Joined joined = Joined::no);
  void send(Rank to, std::int32_t block, const Held& what, Joined joined = Joined::no);
  Held copy(std::int32_t block, const Held& from, const Spot& to);
  Held reduce(std::int32_t block, const Held& left, const Held& right, const Spot& to);

 private:
  Held add(Step step);

  Schedule schedule_;
};

/// The ranks, ascending, that are below a position of a group in a tree that does not split
/// messages, itself and all that its ranks stand for included. O(result).
[[nodiscard]] std::vector<Rank> ranks_below(const Levels& levels, const LevelGroup& group,
                                            Tree tree, std::int32_t position);

/// A member of a group, and the ranks that are below it in a tree, itself included.
struct GroupPart {
  Rank member;
  std::vector<Rank> ranks;
};
/// With whom a member exchanges when a group reduces to its leader.
struct ReductionNeighbours {
  std::optional<Rank> parent;
  std::vector<GroupPart> children;
  std::vector<Rank> ranks;  ///< below the member, itself included
};
/// The neighbours of `member` in a tree that does not split messages. In Order::places a binomial
/// tree is that of the group's bracket, wherever its leader stands in the order: the value of each
/// part is computed by the leader if it is one of them, otherwise by the first, so that each member
/// sends one value. O(ranks below).
[[nodiscard]] ReductionNeighbours reduction_neighbours(const Levels& levels,
                                                       const LevelGroup& group, Tree tree,
                                                       Order order, Rank member);

/// The tree that is walked where a message cannot be split.
[[nodiscard]] constexpr Tree unsplit(Tree tree) {
  return tree == Tree::split_binary ? Tree::binary : tree;
}

}  // namespace heddle::collectives
