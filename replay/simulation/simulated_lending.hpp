#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "node-runtime/placement/lending_choice.hpp"
#include "node-runtime/protocol/records.hpp"
#include "replay/simulation/block_copies.hpp"

namespace heddle::replay {

struct SimulatedWorld;

/// The blocks of a device's place that a task uses, each once, as threads/tile_operands.hpp has
/// them.
class BlockUses {
 public:
  struct Use {
    protocol::BlockRef block;
    protocol::AccessMode mode = protocol::AccessMode::read;
    protocol::TileId tile;
  };

  explicit BlockUses(const protocol::Task& task);
  [[nodiscard]] std::span<const Use> span() const { return {uses_.data(), count_}; }

 private:
  void add(const Use& use);

  std::array<Use, 2 * protocol::accesses_max> uses_;
  std::size_t count_ = 0;
};

/// What a node with devices lends to its CPU workers and to devices that have nothing to do, by the
/// runtime's own choice, and where the contents of devices' blocks are.
class SimulatedLending final : private LendableTasks {
 public:
  using Side = BlockCopies::Side;

  /// The world outlives it.
  explicit SimulatedLending(const SimulatedWorld& world);

  [[nodiscard]] LendingChoice& choice() { return choice_; }
  [[nodiscard]] BlockCopies& blocks() { return blocks_; }
  /// Where the task's tiles are used, of a device's place.
  [[nodiscard]] static Side side_of(const protocol::Task& task) {
    return task.is_lent_to_host() ? Side::host : Side::device;
  }
  /// A copy has to come first.
  [[nodiscard]] bool lacks(const BlockUses::Use& use, Side side) const {
    return use.mode != protocol::AccessMode::write && blocks_.lacks(use.block, side);
  }
  [[nodiscard]] bool lacks_any(const protocol::Task& task) const;
  /// Seconds until a visiting task's tiles are where it runs, and what it wrote is back.
  struct VisitSeconds {
    double there = 0;
    double back = 0;
  };
  [[nodiscard]] VisitSeconds visit_seconds(const protocol::Task& task) const;
  /// Before the protocol hears of it.
  void finished(const protocol::Task& task, std::int64_t now_ns);

 private:
  [[nodiscard]] Costs costs(const protocol::Task& task) override;
  [[nodiscard]] Lacking lacking(const protocol::Task& task) const override;
  [[nodiscard]] Visit visit(const protocol::Task& task) const override;
  [[nodiscard]] bool counts(const protocol::Task& task) const override;
  [[nodiscard]] bool may_move(const protocol::Task& task) const override;
  [[nodiscard]] bool may_visit(const protocol::Task& task, PlaceId device) const override;
  /// All blocks have room on their devices here, and stay.
  [[nodiscard]] bool claim(const protocol::Task& task) override { return !lacks_any(task); }

  const SimulatedWorld& world_;
  BlockCopies blocks_;
  std::vector<double>
      worker_s_;  ///< of a whole task on one worker, by kind; below 0: not known yet
  LendingChoice choice_;
};

}  // namespace heddle::replay
