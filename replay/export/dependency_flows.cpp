#include "replay/export/dependency_flows.hpp"

#include "replay/graph.hpp"

namespace heddle::replay {

DependencyFlows::DependencyFlows(const RunTrace& run, const Keep& keep) {
  std::vector<TaskId> makers;
  std::vector<TaskId> readers;
  for (const JobTime& job : jobs_of(run)) {
    const Graph graph(run, job.job);
    for (std::size_t i = 0; i < graph.tasks().size(); ++i) {
      const TaskId reader = graph.tasks()[i];
      for (const TaskId maker : graph.before(i)) {
        if (!keep(run, run.at(maker), run.at(reader))) continue;
        makers.push_back(maker);
        readers.push_back(reader);
      }
    }
  }
  out_ = by_task(makers, run.tasks.size());
  into_ = by_task(readers, run.tasks.size());
}

DependencyFlows::Numbers DependencyFlows::by_task(const std::vector<TaskId>& ends,
                                                  std::size_t tasks) {
  Numbers numbers;
  numbers.begin.assign(tasks + 1, 0);
  for (const TaskId task : ends) ++numbers.begin[static_cast<std::size_t>(task.value())];
  // Now ends of the tasks' ranges, which are filled backwards.
  std::size_t sum = 0;
  for (std::size_t& begin : numbers.begin) begin = sum += begin;
  numbers.ids.resize(ends.size());
  for (std::size_t i = ends.size(); i > 0; --i) {
    numbers.ids[--numbers.begin[static_cast<std::size_t>(ends[i - 1].value())]] = i;
  }
  return numbers;
}

}  // namespace heddle::replay
