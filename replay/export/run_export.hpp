#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "node-runtime/trace/node_trace.hpp"
#include "node-runtime/trace/survey.hpp"
#include "replay/export/dependency_flows.hpp"
#include "replay/run.hpp"

namespace heddle::replay {

/// What went into an exported trace of a run.
struct RunExport {
  std::uint64_t slices = 0;        ///< tasks, waits, copies, ends of messages, fragments
  std::uint64_t dependencies = 0;  ///< from the task that made to the one that read
  std::uint64_t messages = 0;      ///< from a send to its receive
  std::uint64_t values = 0;        ///< of counters
};

/// What exports with dependencies know of all nodes before they write the first event.
class RunFlows {
 public:
  /// `keep`: the dependencies to show. Throws Error(usage) when a trace is unsound (trace::check),
  /// two are of the same node, or they are of different runs.
  RunFlows(const std::vector<trace::NodeTrace>& traces, const DependencyFlows::Keep& keep);

  [[nodiscard]] const trace::Survey& survey() const { return survey_; }
  [[nodiscard]] const DependencyFlows& dependencies() const { return dependencies_; }
  /// Of the thread at this place of threads_in_order() of a trace; the others follow in the order
  /// of recording.
  [[nodiscard]] TaskId first_task(std::size_t trace, std::size_t place) const {
    return first_tasks_[first_threads_[trace] + place];
  }
  /// Dependencies and messages; the others are 0.
  [[nodiscard]] RunExport counts() const;

 private:
  RunFlows(const std::vector<trace::NodeTrace>& traces, const RunTrace& run,
           const DependencyFlows::Keep& keep);

  trace::Survey survey_;
  DependencyFlows dependencies_;
  std::vector<TaskId> first_tasks_;         ///< by thread of the run
  std::vector<std::size_t> first_threads_;  ///< by trace
};

}  // namespace heddle::replay
