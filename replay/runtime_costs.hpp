#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "replay/graph.hpp"
#include "replay/run.hpp"
#include "replay/simulation/simulated_machine.hpp"

namespace heddle::replay {

/// The first task of a waiting worker, which had waited for tasks of its node, for messages, or for
/// generation.
struct WokenTask {
  TaskId task;
  double waited_s = 0;  ///< idle time of the worker before the task was ready
  double wake_s = 0;    ///< from ready to start
};

/// Time of a worker from the later of its previous task's end and the task being ready, to the
/// start.
struct BegunTask {
  TaskId task;
  double seconds = 0;
};

/// Wake-up of the generation thread after a full window had room again.
struct Refill {
  NodeId node;
  std::uint64_t order = 0;  ///< of the last task before
  double seconds = 0;       ///< since there was room
};

/// Costs of the runtime's threads, as in SimulatedMachine. Empty: unknown from this run.
struct RuntimeCosts {
  /// Median over generation turns.
  std::optional<double> append_s;
  /// Mean over gaps of workers without waiting.
  std::optional<double> task_s;
  /// Mean over gaps in which a worker yielded its shared core, less the progress thread's cost for
  /// messages of that time.
  std::optional<double> look_s;
  std::vector<WokenTask> woken;
  std::vector<BegunTask> begun;
  std::vector<Refill> refills;
  /// Median; empty for fewer than 8.
  std::optional<double> refill_s;
  /// Median; empty for fewer than 8.
  std::optional<double> wake_s;
  /// By idle time of the workers before; without classes of fewer than 8.
  std::vector<WakingTimes> wakings;
};

/// Costs in the graph's job. `machine` says whether cores are shared, and the cost of messages;
/// `window` is the run's.
[[nodiscard]] RuntimeCosts runtime_costs(const RunTrace& run, const Graph& graph,
                                         const SimulatedMachine& machine,
                                         std::int32_t window = 8192);

}  // namespace heddle::replay
