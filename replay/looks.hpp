#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "replay/run.hpp"
#include "replay/simulation/simulated_machine.hpp"

namespace heddle::replay {

/// The time between two tasks of a worker, one after the other.
struct Gap {
  TaskId before;
  Interval time;
  bool waited = false;  ///< there was no task for it in between
  /// It stepped aside for the threads that share its core: as the rule has it, since a trace does
  /// not say so (step_aside_ns).
  bool stepped_aside = false;
};
/// Of a worker, in order. `shares_cores` as the machine says.
[[nodiscard]] std::vector<Gap> gaps_of(const RunTrace& run, const Thread& thread,
                                       bool shares_cores);

/// When the progress threads of a run had a core to look for messages.
class Looks {
 public:
  Looks(const RunTrace& run, const SimulatedMachine& machine);

  /// The first time from `time_ns` on at which the node's looked: at once where it has a core of
  /// its own (but for its pauses, which a trace does not tell), or the trace says nothing.
  [[nodiscard]] std::int64_t first(NodeId node, std::int64_t time_ns) const;

 private:
  std::unordered_map<std::int32_t, std::vector<Interval>> by_node_;  ///< in order, apart
};

}  // namespace heddle::replay
