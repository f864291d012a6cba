#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "replay/run.hpp"

namespace heddle::replay {

/// A number for each dependency of a run's tasks: of a task on the one that made what it read, on
/// the same node or another one, each pair once (graph.hpp). Numbers go from 1 to count().
///
/// Cost: linear in dependencies, with 16 bytes for each; and a Graph of each job, one at a time.
class DependencyFlows {
 public:
  /// Whether the dependency is to have a number.
  using Keep = std::function<bool(const RunTrace& run, const Task& maker, const Task& reader)>;
  DependencyFlows(const RunTrace& run, const Keep& keep);

  [[nodiscard]] std::uint64_t count() const { return into_.ids.size(); }
  /// Of what the task made for others.
  [[nodiscard]] std::span<const std::uint64_t> out_of(TaskId task) const { return out_.of(task); }
  /// Of what it read.
  [[nodiscard]] std::span<const std::uint64_t> into(TaskId task) const { return into_.of(task); }

 private:
  struct Numbers {
    std::vector<std::size_t> begin;  ///< by task; one more than there are
    std::vector<std::uint64_t> ids;

    [[nodiscard]] std::span<const std::uint64_t> of(TaskId task) const {
      const auto i = static_cast<std::size_t>(task.value());
      return std::span(ids).subspan(begin[i], begin[i + 1] - begin[i]);
    }
  };

  /// `ends[i]`: the task at this end of dependency i + 1.
  static Numbers by_task(const std::vector<TaskId>& ends, std::size_t tasks);

  Numbers out_;
  Numbers into_;
};

}  // namespace heddle::replay
