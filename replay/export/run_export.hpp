#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "node-runtime/trace/node_trace.hpp"
#include "node-runtime/trace/survey.hpp"
#include "replay/export/dependency_flows.hpp"
#include "replay/run.hpp"

namespace heddle::replay {

/// Counts of an exported run.
struct RunExport {
  std::uint64_t slices = 0;        ///< tasks, waits, copies, ends of messages, fragments
  std::uint64_t dependencies = 0;  ///< from maker to reader
  std::uint64_t messages = 0;      ///< from send to receive
  std::uint64_t values = 0;        ///< of counters
};

/// Facts about all nodes that exporters with dependencies need before the first event.
class RunFlows {
 public:
  /// `keep`: the dependencies to show. Throws Error(usage) if a trace is invalid (trace::check),
  /// two are of the same node, or they are of different runs.
  RunFlows(const std::vector<trace::NodeTrace>& traces, const DependencyFlows::Keep& keep);

  [[nodiscard]] const trace::Survey& survey() const { return survey_; }
  [[nodiscard]] const DependencyFlows& dependencies() const { return dependencies_; }
  /// First task of the thread at an index of threads_in_order() of a trace; its others follow in
  /// the order of recording.
  [[nodiscard]] TaskId first_task(std::size_t trace, std::size_t place) const {
    return first_tasks_[first_threads_[trace] + place];
  }
  /// Only dependencies and messages; the other counts are 0.
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
