#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "replay/simulation/job_layer.hpp"
#include "replay/simulation/simulated_machine.hpp"
#include "replay/simulation/task_graph.hpp"

namespace heddle::replay {

/// Order of a place's ready tasks.
enum class PriorityRule : std::uint8_t {
  program,  ///< as the program says
  fifo,     ///< all equal: first ready first
  reverse,  ///< least urgent by the program first
  random,
  path,  ///< longest path to the job's end first, with times of kernels and transfers (HEFT)
};

/// Priority of task `order` of a node's walk; `given` is the program's. Pure; thread: any.
using PriorityOf = std::function<std::int32_t(NodeId node, std::int64_t order, std::int32_t given)>;

/// Empty for `program`. Only `path` needs the graph, complete; it need not outlive the result. Only
/// `random` uses `seed`.
[[nodiscard]] PriorityOf priority_of(PriorityRule rule, std::uint64_t seed, const TaskGraph* graph,
                                     SimulatedJob& job, const SimulatedMachine& machine);

/// A job with other task priorities. Announcements keep theirs: a simulated node sends versions in
/// the order of requests.
class PrioritizedJob final : public JobLayer {
 public:
  /// `job` must outlive it.
  PrioritizedJob(SimulatedJob& job, PriorityOf priority)
      : JobLayer(job), priority_(std::move(priority)) {}

  [[nodiscard]] std::unique_ptr<NodeWalk> walk(NodeId node, WalkSink& sink) override;
  /// The program's span does not apply to other priorities.
  [[nodiscard]] std::int32_t priority_span() const override {
    return SimulatedJob::priority_span();
  }

 private:
  class Walk;
  PriorityOf priority_;
};

}  // namespace heddle::replay
