#pragma once

#include <cstdint>
#include <vector>

#include "node-runtime/protocol/records.hpp"
#include "node-runtime/scheduling/lending_choice.hpp"
#include "replay/simulation/simulated_memory.hpp"

namespace heddle::replay {

struct SimulatedWorld;

/// What a node with devices lends to its CPU workers, by the runtime's own choice.
class SimulatedLending final : private LendableTasks {
 public:
  /// World and memory outlive it.
  SimulatedLending(const SimulatedWorld& world, SimulatedMemory& memory);

  [[nodiscard]] LendingChoice& choice() { return choice_; }
  /// Whether the node lends at all, as is_worth_lending() (threads/lending.hpp) has it: devices
  /// lack a kernel, or the policy lends tasks of the kind with the most operations. To be asked
  /// after a walk of the job.
  [[nodiscard]] bool is_worth_lending() const;

 private:
  [[nodiscard]] const Kind& kind(const protocol::Task& task) override;
  [[nodiscard]] std::int32_t width(const protocol::Task& task) override;
  [[nodiscard]] std::uint64_t missing_on_host(const protocol::Task& task) const override;
  [[nodiscard]] bool is_cancelled(const protocol::Task& /*task*/) const override { return false; }

  const SimulatedWorld& world_;
  SimulatedMemory& memory_;
  std::vector<Kind> kinds_;  ///< by TaskKindId, as far as they were asked for
  LendingChoice choice_;
};

}  // namespace heddle::replay
