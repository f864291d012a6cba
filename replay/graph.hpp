#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "replay/run.hpp"

namespace heddle::replay {

/// The tasks of one job and what each of them waited for: the tasks that made the versions that it
/// read (who only writes waits for nobody, as its block may be another one). Fine tasks wait for
/// what the divided one waits for, or for the last of the fine tasks that they have waited for (of
/// all these a trace tells no other), and it for all of them. Made from the accesses that the trace
/// keeps; what was not recorded leaves edges out.
///
/// Cost: linear in tasks and accesses, but for one sort.
class Graph {
 public:
  /// The run outlives the graph.
  Graph(const RunTrace& run, std::int32_t job);

  [[nodiscard]] std::int32_t job() const { return job_; }
  /// In the order in which they began, which is one in which they can run.
  [[nodiscard]] std::span<const TaskId> tasks() const { return tasks_; }
  /// Those before `tasks()[i]`; each of them once.
  [[nodiscard]] std::span<const TaskId> before(std::size_t i) const {
    return std::span(before_).subspan(begin_[i], begin_[i + 1] - begin_[i]);
  }
  /// The place of a task of this job in tasks().
  [[nodiscard]] std::size_t place_of(TaskId task) const {
    return static_cast<std::size_t>(places_[static_cast<std::size_t>(task.value())]);
  }
  /// The divided task that a fine one is of; nothing where it was not recorded.
  [[nodiscard]] OptionalIndex<TaskId> divided_of(TaskId fine) const;
  [[nodiscard]] std::int64_t edges() const { return static_cast<std::int64_t>(before_.size()); }

  /// For each of tasks(), what the longest chain of tasks before it takes, in ns: no machine of
  /// these speeds begins it earlier after the job's begin.
  [[nodiscard]] std::vector<std::int64_t> heads() const;
  /// Likewise of the tasks that wait for it, without itself: the job goes on for so long after it.
  [[nodiscard]] std::vector<std::int64_t> tails() const;
  /// The longest chain of tasks that wait for each other, by what they took: no machine of these
  /// speeds runs the job in less. First to last; of equal ones any.
  [[nodiscard]] std::vector<TaskId> longest_path() const { return longest_path(heads()); }
  [[nodiscard]] std::vector<TaskId> longest_path(std::span<const std::int64_t> heads) const;

 private:
  void find_divided();
  /// A fine task and what it is of.
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
  std::vector<std::int32_t> places_;  ///< by task of the run; -1: of other jobs
  std::vector<std::size_t> begin_;    ///< one more than tasks
  std::vector<TaskId> before_;
  std::vector<std::vector<TaskId>> divided_;  ///< by node and order; below 0: not divided
};

/// Jobs that ran tasks, and how long all of these took together.
struct JobTime {
  std::int32_t job = -1;
  std::int64_t tasks = 0;
  std::int64_t busy_ns = 0;
  Interval span;  ///< from the first task's begin to the last one's end
};
[[nodiscard]] std::vector<JobTime> jobs_of(const RunTrace& run);

}  // namespace heddle::replay
