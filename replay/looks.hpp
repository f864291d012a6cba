#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "replay/run.hpp"
#include "replay/simulation/simulated_machine.hpp"

namespace heddle::replay {

/// The time between two consecutive tasks of a worker.
struct Gap {
  TaskId before;
  Interval time;
  bool waited = false;  ///< no task was available meanwhile
  /// It yielded its core to the threads that share it: by the rule (step_aside_ns), since traces do
  /// not record it.
  bool stepped_aside = false;
};
/// Gaps of a worker in order. `shares_cores` as in the machine.
[[nodiscard]] std::vector<Gap> gaps_of(const RunTrace& run, const Thread& thread,
                                       bool shares_cores);

/// Times at which the progress threads of a run had a core to poll for messages.
class Looks {
 public:
  Looks(const RunTrace& run, const SimulatedMachine& machine);

  /// The node's first poll from `time_ns` on; `time_ns` if it has its own core (pauses are not
  /// recorded) or without records.
  [[nodiscard]] std::int64_t first(NodeId node, std::int64_t time_ns) const;

 private:
  std::unordered_map<std::int32_t, std::vector<Interval>> by_node_;  ///< in order, disjoint
};

}  // namespace heddle::replay
