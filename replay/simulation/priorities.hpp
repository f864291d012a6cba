#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "replay/simulation/job_layer.hpp"
#include "replay/simulation/simulated_machine.hpp"
#include "replay/simulation/task_graph.hpp"

namespace heddle::replay {

/// By what a place chooses among its ready tasks.
enum class PriorityRule : std::uint8_t {
  program,  ///< as the program says
  fifo,     ///< all are alike: who is ready first goes first
  reverse,  ///< what the program says is least urgent goes first
  random,
  path,  ///< the longest way to the job's end first, by kernels' times and transfers (HEFT)
};

/// Of the task that its node walks as number `order` of its own, instead of what its program has
/// given. Pure; any thread.
using PriorityOf = std::function<std::int32_t(NodeId node, std::int64_t order, std::int32_t given)>;

/// Empty for `program`. The graph is needed for `path` only, and complete then; it need not outlive
/// the result. `seed` counts for `random`.
[[nodiscard]] PriorityOf priority_of(PriorityRule rule, std::uint64_t seed, const TaskGraph* graph,
                                     SimulatedJob& job, const SimulatedMachine& machine);

/// A job with other priorities of its tasks. Announcements keep theirs: a simulated node sends
/// versions in the order in which they are asked for.
class PrioritizedJob final : public JobLayer {
 public:
  /// `job` outlives it.
  PrioritizedJob(SimulatedJob& job, PriorityOf priority)
      : JobLayer(job), priority_(std::move(priority)) {}

  [[nodiscard]] std::unique_ptr<NodeWalk> walk(NodeId node, WalkSink& sink) override;
  /// Other priorities than the span is one of.
  [[nodiscard]] std::int32_t priority_span() const override {
    return SimulatedJob::priority_span();
  }

 private:
  class Walk;
  PriorityOf priority_;
};

}  // namespace heddle::replay
