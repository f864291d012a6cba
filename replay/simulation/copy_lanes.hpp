#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "node-runtime/protocol/actions.hpp"
#include "replay/simulation/block_uses.hpp"
#include "replay/simulation/simulated_memory.hpp"
#include "replay/simulation/simulated_records.hpp"
#include "replay/simulation/simulated_world.hpp"

namespace heddle::replay {

/// A copy of a tile between two places of a node.
struct SimulatedCopy {
  protocol::CopyAction action;
  std::int64_t posted_ns = 0;
  std::int64_t start_ns = 0;
  bool is_transfer = false;  ///< between a device's block and its host copy
  std::size_t acquired = 0;  ///< number of acquired ends
};

/// What waits for blocks on a device or the host; SimulatedMemory names it by its number.
struct MemoryWait {
  enum class Kind : std::uint8_t { lent, kernel, copy };
  Kind kind = Kind::lent;
  protocol::Task* task = nullptr;
  std::int32_t copy = 0;  ///< copy record
};

/// The copies of a node's devices: two lanes per device, one to the device and one to the host; the
/// simulated counterpart of threads/copy_thread.cpp. Copies in a lane are serial, by priority.
/// Transfers (between a device's block and its host copy) precede all copies, by priority: chosen
/// tasks wait for them. Where blocks move, a copy acquires its ends while the previous copy is in
/// progress.
///
/// Invariant, per lane: `waiting` is a heap by priority, 0 <= acquiring, and
/// acquired + acquiring <= 1 without moving blocks, 2 with them.
class CopyLanes {
 public:
  /// World and waits outlive it. The waits are shared with the node's tasks.
  CopyLanes(SimulatedWorld& world, NodeId node, Records<MemoryWait>& waits);

  /// Blocks move by `memory`, which outlives it; null: they stay. Before the first copy.
  void use(SimulatedMemory* memory) { memory_ = memory; }

  void post(const protocol::CopyAction& action);
  void post(const SimulatedMemory::Transfer& transfer);
  /// Event: starts the lane's next copy.
  void lane_is_free(std::int32_t lane);
  /// The block that the copy waited for is there: acquires the next end, or starts.
  void block_came(std::int32_t copy);
  /// Event: the copy has ended, and its record is free.
  [[nodiscard]] SimulatedCopy take_ended(std::int32_t copy);
  /// Before the protocol learns of a copy's end; not for transfers.
  void release_ends(const protocol::CopyAction& action);

  [[nodiscard]] const SimulatedCopy& at(std::int32_t copy) const { return copies_.at(copy); }
  [[nodiscard]] bool is_valid() const;

 private:
  struct Lane {
    std::vector<std::int32_t> waiting;    ///< copy records, a heap
    std::deque<std::int32_t> acquired;    ///< copy records with acquired ends; next
    std::int32_t acquiring = 0;           ///< number between the two
    std::vector<std::int32_t> transfers;  ///< copy records
    std::int64_t free_ns = 0;
    bool is_awaited = false;  ///< a lane_is_free is scheduled
  };
  /// A copy's ends on devices, in the order of places.
  struct Ends {
    struct End {
      PlaceId place;
      BlockUse use;
    };
    std::array<End, 2> all;
    std::size_t count = 0;
  };

  [[nodiscard]] static std::int32_t lane_of(const protocol::CopyAction& action);
  [[nodiscard]] static Ends ends_of(const protocol::CopyAction& action);
  /// Orders copy records by priority.
  [[nodiscard]] auto priority() const {
    return [this](std::int32_t copy) { return copies_.at(copy).action.priority; };
  }
  /// Copies of a lane that may have blocks at a time.
  [[nodiscard]] std::size_t at_a_time() const { return memory_ != nullptr ? 2 : 1; }
  void acquire_for_next(Lane& lane);
  void acquire_ends(std::int32_t copy);
  [[nodiscard]] std::int32_t take_transfer(Lane& lane);
  void start(std::int32_t number);
  void count(const SimulatedCopy& copy, std::uint64_t bytes);

  SimulatedWorld& world_;
  NodeId node_;
  Records<MemoryWait>& waits_;
  SimulatedMemory* memory_ = nullptr;
  std::vector<Lane> lanes_;
  Records<SimulatedCopy> copies_;
};

}  // namespace heddle::replay
