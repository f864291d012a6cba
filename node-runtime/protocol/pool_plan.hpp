#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/index.hpp"
#include "base/indexed_vector.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle::protocol {

/// Computes PoolOptions::minimum: the blocks that a job needs at each place of a node so that it
/// can always advance. Fed with the same walk of the program as the protocol, it tracks which
/// copies would be alive if the tasks ran one after the other. Much cheaper than appending; runs
/// before anything is allocated. Pure.
class PoolPlan {
 public:
  PoolPlan(NodeId node, std::int32_t places);

  /// Marks a matrix whose versions take blocks of the job's pools.
  void set_temporary(MatrixId matrix);

  void append(std::span<const Access> accesses);
  void release(const Access& access);

  /// Blocks needed at each place.
  [[nodiscard]] const std::vector<std::int32_t>& minimum() const {
    return maximum_alive_.elements();
  }
  /// The matrices whose tiles take these blocks, in the order of the first ones.
  [[nodiscard]] const std::vector<MatrixId>& takers(PlaceId place) const { return takers_[place]; }
  /// The tiles whose versions take host blocks, in program order; the first host_takes_max.
  [[nodiscard]] const std::vector<TileId>& host_takes() const { return host_takes_; }
  static constexpr std::size_t host_takes_max = 4096;
  /// Tasks that run on this node.
  [[nodiscard]] std::int64_t tasks() const { return tasks_; }
  /// Calls of append and release: the cost of the walk.
  [[nodiscard]] std::int64_t walked() const { return walked_; }

 private:
  /// A tile of this node, or a version of another node's tile (count_here: the newest).
  struct Key {
    TileId tile;
    Version version = count_here;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& k) const {
      const auto tile = static_cast<std::uint64_t>(static_cast<std::uint32_t>(k.tile.index));
      const auto matrix = static_cast<std::uint64_t>(k.tile.matrix.value());
      const auto version = static_cast<std::uint64_t>(k.version.value());
      return std::hash<std::uint64_t>{}((tile | matrix << 32) ^ version * 0x9E3779B97F4A7C15ULL);
    }
  };
  /// Copies of a tile's newest version that take blocks: one bit per place.
  using Alive = std::bitset<places_max>;
  [[nodiscard]] static std::size_t bit(PlaceId place) {
    return static_cast<std::size_t>(place.value());
  }

  void use(const Access& access, PlaceId place);
  void take(Alive& alive, PlaceId place, TileId tile);
  void record_take(PlaceId place, TileId tile);
  void write(const Access& access, bool here);
  void close(const Key& key);
  [[nodiscard]] Key key(const Access& access) const {
    return {access.tile, access.home.node == node_ ? count_here : access.version};
  }
  void count_alive(PlaceId place);
  void count_transient(PlaceId place);
  [[nodiscard]] bool is_temporary(MatrixId matrix) const;

  NodeId node_;
  IndexedVector<PlaceId, std::int32_t> alive_;
  IndexedVector<PlaceId, std::int32_t> maximum_alive_;
  IndexedVector<PlaceId, std::vector<MatrixId>> takers_;
  std::vector<TileId> host_takes_;
  IndexedVector<MatrixId, bool> temporary_;
  std::unordered_map<Key, Alive, KeyHash> copies_;
  std::vector<PlaceId> transient_;
  std::int64_t tasks_ = 0;
  std::int64_t walked_ = 0;
};

}  // namespace heddle::protocol
