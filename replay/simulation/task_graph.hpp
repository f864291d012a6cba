#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "node-runtime/scheduling/planned_graph.hpp"
#include "replay/simulation/simulated_job.hpp"

namespace heddle::replay {

/// The planned graph of a simulated job with the times of its tasks.
class TaskGraph {
 public:
  /// Walks the program on all nodes. A job with more than `tasks_max` tasks is not recorded.
  TaskGraph(SimulatedJob& job, std::int32_t nodes, std::int64_t tasks_max);

  [[nodiscard]] bool is_complete() const { return graph_.is_complete(); }
  [[nodiscard]] std::int64_t count() const { return graph_.count(); }
  [[nodiscard]] std::span<const std::int64_t> first_of_node() const {
    return graph_.first_of_node();
  }
  /// The longest way to the job's end, for each task (PlannedGraph::levels).
  [[nodiscard]] std::vector<double> levels(const PlannedGraph::Transfer& transfer,
                                           bool lends = false) const;
  /// The longest way without transfers: no machine with these kernels runs the job in less.
  /// `lends`: each task of a device where it takes less.
  [[nodiscard]] double critical_path_s(bool lends = false) const;

 private:
  SimulatedJob& job_;
  PlannedGraph graph_;
};

/// Walks the program on all nodes, so that all kinds are known; a complete TaskGraph has done so.
void meet_all_kinds(SimulatedJob& job, std::int32_t nodes);

}  // namespace heddle::replay
