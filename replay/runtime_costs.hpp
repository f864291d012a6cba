#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "replay/graph.hpp"
#include "replay/run.hpp"
#include "replay/simulation/simulated_machine.hpp"

namespace heddle::replay {

/// A task that a waiting worker began first, which waited for tasks of its node, for messages, or
/// to be generated.
struct WokenTask {
  TaskId task;
  double waited_s = 0;  ///< its worker, until the task was ready
  double wake_s = 0;    ///< from then on, until it began
};

/// What a worker took to begin a task, from when it had ended the one before, and the task was
/// ready.
struct BegunTask {
  TaskId task;
  double seconds = 0;
};

/// A full window had room again, and the generation thread went on.
struct Refill {
  NodeId node;
  std::uint64_t order = 0;  ///< of the last task before
  double seconds = 0;       ///< from when there was room
};

/// What the runtime's threads took, as SimulatedMachine has it. Nothing: the run does not tell.
struct RuntimeCosts {
  /// Median over the turns of generation.
  std::optional<double> append_s;
  /// Mean over the times between two tasks of a worker that did not wait.
  std::optional<double> task_s;
  /// Mean over those in which a worker stepped aside on a core that it shares, less what the
  /// messages of that time take of the progress thread.
  std::optional<double> look_s;
  std::vector<WokenTask> woken;
  std::vector<BegunTask> begun;
  std::vector<Refill> refills;
  /// Median over these; nothing where they are fewer than 8.
  std::optional<double> refill_s;
  /// Median over these; nothing where they are fewer than 8.
  std::optional<double> wake_s;
  /// What they took, by how long the workers had waited; of classes with less than 8 nothing.
  std::vector<WakingTimes> wakings;
};

/// Of the graph's job. `machine` says whether cores are shared, and what messages take; `window` is
/// the run's.
[[nodiscard]] RuntimeCosts runtime_costs(const RunTrace& run, const Graph& graph,
                                         const SimulatedMachine& machine,
                                         std::int32_t window = 8192);

}  // namespace heddle::replay
