#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/optional_index.hpp"
#include "replay/run.hpp"

namespace heddle::replay {

/// The tasks of one job and their dependencies: the tasks that made the versions they read (writes
/// alone do not wait, since blocks are renamed). Fine tasks depend on the predecessors of the
/// divided task, or on their recorded last fine predecessor; the divided task depends on all of its
/// fine tasks. Built from recorded accesses; unrecorded ones leave edges out.
///
/// Cost: linear in tasks and accesses, plus one sort.
class Graph {
 public:
  /// `run` must outlive the graph.
  Graph(const RunTrace& run, std::int32_t job);

  [[nodiscard]] std::int32_t job() const { return job_; }
  /// In order of their start, which is a topological order.
  [[nodiscard]] std::span<const TaskId> tasks() const { return tasks_; }
  /// Predecessors of `tasks()[i]`, each once.
  [[nodiscard]] std::span<const TaskId> before(std::size_t i) const {
    return std::span(before_).subspan(begin_[i], begin_[i + 1] - begin_[i]);
  }
  /// Index of a task of this job in tasks().
  [[nodiscard]] std::size_t place_of(TaskId task) const {
    return static_cast<std::size_t>(places_[static_cast<std::size_t>(task.value())]);
  }
  /// The divided task of a fine one; nothing if it was not recorded.
  [[nodiscard]] OptionalIndex<TaskId> divided_of(TaskId fine) const;
  [[nodiscard]] std::int64_t edges() const { return static_cast<std::int64_t>(before_.size()); }

  /// For each of tasks(), the length of the longest chain before it in ns: its earliest start after
  /// the job's, with these durations.
  [[nodiscard]] std::vector<std::int64_t> heads() const;
  /// Likewise for the chain after it: the job's least remaining time after the task's end.
  [[nodiscard]] std::vector<std::int64_t> tails() const;
  /// The longest chain by duration, first to last: a lower bound on the job's time with these
  /// durations.
  [[nodiscard]] std::vector<TaskId> longest_path() const { return longest_path(heads()); }
  [[nodiscard]] std::vector<TaskId> longest_path(std::span<const std::int64_t> heads) const;

 private:
  void find_divided();
  /// A fine task and its divided task.
  struct Part {
    TaskId of;
    std::uint32_t number = 0;
    TaskId task;
    friend auto operator<=>(const Part&, const Part&) = default;
  };
  [[nodiscard]] std::vector<Part> fine_tasks() const;
  void add_before(std::size_t i, TaskId task);
  [[nodiscard]] std::int64_t ns_of(std::size_t i) const { return run_.at(tasks_[i]).time.ns(); }

  const RunTrace& run_;
  std::int32_t job_;
  std::vector<TaskId> tasks_;
  std::vector<std::int32_t> places_;  ///< by task of the run; -1: another job
  std::vector<std::size_t> begin_;    ///< one more than tasks
  std::vector<TaskId> before_;
  std::vector<std::vector<TaskId>> divided_;  ///< by node and order; below 0: not divided
};

/// A job that ran tasks, and their total time.
struct JobTime {
  std::int32_t job = -1;
  std::int64_t tasks = 0;
  std::int64_t busy_ns = 0;
  Interval span;  ///< from the first task's start to the last one's end
};
[[nodiscard]] std::vector<JobTime> jobs_of(const RunTrace& run);

}  // namespace heddle::replay
