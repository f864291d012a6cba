#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "replay/graph.hpp"
#include "replay/run.hpp"
#include "replay/simulation/simulated_machine.hpp"

namespace heddle::replay {

/// What the runtime's threads took, as SimulatedMachine has it. Nothing: the run does not tell.
struct RuntimeCosts {
  /// Median over the turns of generation.
  std::optional<double> append_s;
  /// Mean over the times between two tasks of a worker that did not wait.
  std::optional<double> task_s;
  /// Mean over those in which a worker stepped aside on a core that it shares, less what the
  /// messages of that time take of the progress thread.
  std::optional<double> look_s;
  /// Median over the tasks that a waiting worker began first, which waited for nothing but a task
  /// of its node; nothing where these are fewer than 8.
  std::optional<double> wake_s;
  /// All of them, by how long the workers had waited; of classes with less than 8 nothing.
  std::vector<Waking> wakings;
};

/// Of the graph's job. `machine` says whether cores are shared, and what messages take.
[[nodiscard]] RuntimeCosts runtime_costs(const RunTrace& run, const Graph& graph,
                                         const SimulatedMachine& machine);

}  // namespace heddle::replay
