#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/indexed_vector.hpp"
#include "node-runtime/collectives/schedule/places.hpp"

namespace heddle::collectives {

/// What the members of a group of one level share; the last one is the network between hosts.
enum class Level : std::uint8_t { gpu, socket, host, network };

/// Ranks that exchange among themselves at one level.
struct LevelGroup {
  Level level = Level::network;
  std::vector<Rank> members;  ///< in the order of places
  Rank leader;                ///< of the members: the one that takes part in the next level

  /// The place of `rank` among the members, counted from the leader and round: where trees over the
  /// group have it (trees.hpp).
  [[nodiscard]] std::int32_t position(Rank rank) const;
  [[nodiscard]] Rank at(std::int32_t position) const;
};

/// The hierarchy of a group's ranks (000 section 5.2.1, 002 section 4.2.1): ranks of one GPU, then
/// these groups' leaders and ranks without a GPU on a host (before that on a socket, if sockets
/// count), then the leaders of hosts. A leader is the lowest rank, or the root of an operation in
/// all groups on its way.
class Levels {
 public:
  enum class Sockets : std::uint8_t { ignored, counted };
  explicit Levels(const Places& places, Sockets sockets = Sockets::ignored);

  /// The groups that `rank` takes part in, from the inside out, for an operation with that root.
  /// Groups of one member vanish. O(members of these groups).
  [[nodiscard]] std::vector<LevelGroup> groups_of(Rank rank, Rank root) const;
  /// The same where there is no root: the lowest ranks lead.
  [[nodiscard]] std::vector<LevelGroup> groups_of(Rank rank) const;

  /// The ranks, ascending, whose part a member of a group of that level has there: those that it
  /// leads, itself included.
  [[nodiscard]] std::span<const Rank> stands_for(Level level, Rank member) const;
  [[nodiscard]] std::int32_t size() const { return size_; }
  /// Members of the largest group of each level, by Level; 1 where a level does not count.
  [[nodiscard]] std::array<std::int32_t, 4> largest() const;
  /// The largest group of each level, from the inside out, where it has more than one member; led
  /// by its lowest rank.
  [[nodiscard]] std::vector<LevelGroup> largest_groups() const;
  /// Whether the members of a group stand for all ranks.
  [[nodiscard]] bool is_outermost(const LevelGroup& group) const;

  /// All ranks in such an order that at each level those of a group, and those that a member of it
  /// stands for, follow each other: members in the order of their places.
  [[nodiscard]] std::span<const Rank> order() const { return order_; }
  /// The position of a rank in order().
  [[nodiscard]] Rank position(Rank rank) const { return positions_[rank]; }
  /// The levels that there are, from the inside out; ascending, where in order() the ranks begin
  /// that each member of a group of that level stands for.
  [[nodiscard]] std::size_t layers() const { return begins_.size(); }
  [[nodiscard]] std::span<const std::int32_t> begins(std::size_t layer) const {
    return begins_[layer];
  }

  /// Each rank is in one group of the first level; each group's leader, and nobody else, in one of
  /// the next; the last level is one group; positions are the
  /// inverse of order().
  [[nodiscard]] bool is_valid() const;

 private:
  struct Group {
    std::vector<Rank> members;  ///< in the order of places
    Rank leader;                ///< the lowest
    std::vector<Rank> below;    ///< all that the members stand for, ascending
  };
  /// One level: its groups, and for each rank the one that has it, or has who leads it there.
  struct Layer {
    Level level;
    std::vector<Group> groups;
    IndexedVector<Rank, std::int32_t> group_of;
  };

  void add(const Places& places, Level level);
  void put_in_order(std::size_t layer, const Group& group);
  [[nodiscard]] const Group& group(const Layer& layer, Rank rank) const {
    return layer.groups[static_cast<std::size_t>(layer.group_of[rank])];
  }
  /// The member of a layer that stands for `rank`: the leader of its group at the layer before.
  [[nodiscard]] Rank representative(std::size_t layer, Rank rank) const {
    return layer == 0 ? rank : group(layers_[layer - 1], rank).leader;
  }

  std::int32_t size_;
  std::vector<Rank> all_;  ///< ascending
  std::vector<Layer> layers_;
  std::vector<Rank> order_;
  IndexedVector<Rank, Rank> positions_;
  std::vector<std::vector<std::int32_t>> begins_;  ///< by layer
};

}  // namespace heddle::collectives
