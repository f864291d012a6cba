#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "replay/run.hpp"

namespace heddle::replay {

/// Numbers 1 .. count() for the dependencies between a run's tasks, on one node or two, each pair
/// once (graph.hpp).
///
/// Cost: linear in dependencies, 16 bytes each, plus the Graph of one job at a time.
class DependencyFlows {
 public:
  /// Whether to number a dependency.
  using Keep = std::function<bool(const RunTrace& run, const Task& maker, const Task& reader)>;
  DependencyFlows(const RunTrace& run, const Keep& keep);

  [[nodiscard]] std::uint64_t count() const { return into_.ids.size(); }
  /// Numbers of the dependencies on a task's outputs.
  [[nodiscard]] std::span<const std::uint64_t> out_of(TaskId task) const { return out_.of(task); }
  /// Numbers of the dependencies of a task's inputs.
  [[nodiscard]] std::span<const std::uint64_t> into(TaskId task) const { return into_.of(task); }

 private:
  struct Numbers {
    std::vector<std::size_t> begin;  ///< by task, plus the end
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
