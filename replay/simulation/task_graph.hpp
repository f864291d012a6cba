#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "node-runtime/protocol/planned_graph.hpp"
#include "replay/simulation/simulated_job.hpp"

namespace heddle::replay {

/// The planned graph of a simulated job, which knows what its tasks take.
class TaskGraph {
 public:
  /// Walks the program on all nodes; not to the end of a job with more tasks than `tasks_max`, of
  /// which nothing is kept.
  TaskGraph(SimulatedJob& job, std::int32_t nodes, std::int64_t tasks_max);

  [[nodiscard]] bool is_complete() const { return graph_.is_complete(); }
  [[nodiscard]] std::int64_t count() const { return graph_.count(); }
  [[nodiscard]] std::span<const std::int64_t> first_of_node() const {
    return graph_.first_of_node();
  }
  /// The longest way to the job's end, for each task (PlannedGraph::levels).
  [[nodiscard]] std::vector<double> levels(const protocol::PlannedGraph::Transfer& transfer,
                                           bool lends = false) const;
  /// The longest way without transfers: no machine with these kernels runs the job in less.
  /// `lends`: each task of a device where it takes less.
  [[nodiscard]] double critical_path_s(bool lends = false) const;

 private:
  SimulatedJob& job_;
  protocol::PlannedGraph graph_;
};

/// Walks the program on all nodes, so that its kinds are known; which a complete TaskGraph does,
/// too.
void meet_all_kinds(SimulatedJob& job, std::int32_t nodes);

}  // namespace heddle::replay
