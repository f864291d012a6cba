#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "node-runtime/placement/lending_choice.hpp"
#include "node-runtime/protocol/records.hpp"
#include "replay/simulation/simulated_memory.hpp"

namespace heddle::replay {

struct SimulatedWorld;

/// What a node with devices lends to its CPU workers and to devices that have nothing to do, by the
/// runtime's own choice.
class SimulatedLending final : private LendableTasks {
 public:
  /// World and memory outlive it.
  SimulatedLending(const SimulatedWorld& world, SimulatedMemory& memory);

  [[nodiscard]] LendingChoice& choice() { return choice_; }
  /// Seconds until a visiting task's tiles are where it runs, and what it wrote is back.
  struct VisitSeconds {
    double there = 0;
    double back = 0;
  };
  [[nodiscard]] VisitSeconds visit_seconds(const protocol::Task& task) const;

 private:
  [[nodiscard]] const Kind& kind(const protocol::Task& task) override;
  [[nodiscard]] std::int32_t width(const protocol::Task& task) override;
  [[nodiscard]] Lacking lacking(const protocol::Task& task) const override;
  [[nodiscard]] Visit visit(const protocol::Task& task) const override;
  [[nodiscard]] bool may_move(const protocol::Task& task) const override;
  /// A factorization's: no others are simulated.
  [[nodiscard]] bool is_dividable(const protocol::Task& /*task*/) const override { return true; }
  [[nodiscard]] bool may_visit(const protocol::Task& task, PlaceId device) override;
  /// The simulated host's memory has no end.
  [[nodiscard]] bool back(const protocol::Task& /*task*/) override { return true; }
  [[nodiscard]] bool claim(const protocol::Task& task) override;

  const SimulatedWorld& world_;
  SimulatedMemory& memory_;
  std::deque<std::optional<Kind>> kinds_;  ///< as far as they were asked for
  LendingChoice choice_;
};

}  // namespace heddle::replay
