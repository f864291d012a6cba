#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/fine/fine_tasks.hpp"

namespace heddle {

/// Dependency graph of the fine tasks of a kernel on tiles of given shapes: two tasks depend on
/// each other in sequence order if their areas overlap and at least one writes. Immutable; shared
/// by all coarse tasks of these shapes (000 section 3.2).
///
/// Tasks are numbered by priority: by decreasing longest path to the end, in operations. So the
/// ready task with the lowest number is next.
///
/// Invariant (`is_valid()`), over edges (i, j): i < j;  missing(j) = number of edges to j;  no edge
/// exists twice;  longest_way <= flops + number of tasks.
class FineGraph {
 public:
  /// Takes 1 to 2 us per task and allocates; not for the hot path.
  explicit FineGraph(const FineTasks& tasks);

  [[nodiscard]] std::int32_t size() const { return static_cast<std::int32_t>(tasks_.size()); }
  [[nodiscard]] const FineTask& task(std::int32_t number) const {
    return tasks_[static_cast<std::size_t>(number)];
  }
  /// Number of predecessors of each task.
  [[nodiscard]] std::span<const std::int32_t> missing() const { return missing_; }
  /// Successors of the task.
  [[nodiscard]] std::span<const std::int32_t> successors(std::int32_t number) const {
    const auto i = static_cast<std::size_t>(number);
    return std::span(successors_).subspan(begin_[i], begin_[i + 1] - begin_[i]);
  }
  /// Operations of all tasks, and on the longest path.
  [[nodiscard]] double flops() const { return flops_; }
  [[nodiscard]] double longest_way() const { return longest_way_; }
  /// Average parallelism: flops() / longest_way(). 25 for a product of 5 x 5 parts, 4 for a
  /// factorization of as many.
  [[nodiscard]] std::int32_t width() const;
  [[nodiscard]] bool is_valid() const;

 private:
  std::vector<FineTask> tasks_;
  std::vector<std::int32_t> missing_;
  std::vector<std::size_t> begin_;  ///< index of each task's first successor, and their total
  std::vector<std::int32_t> successors_;
  double flops_ = 0;
  double longest_way_ = 0;
};

/// A fine task as a kernel on operands of given shapes.
class FineOperands {
 public:
  /// `task` must outlive this object.
  explicit FineOperands(const FineTask& task);
  /// Valid as long as this object.
  [[nodiscard]] KernelCase what() const {
    return {task_.kernel, task_.parameters, {shapes_.data(), task_.operand_count}};
  }

 private:
  const FineTask& task_;
  std::array<OperandShape, FineTask::accesses_max> shapes_;
};

/// Operations of a fine task, by the standard counts of its kernel.
[[nodiscard]] double flops_of(const FineTask& task);

}  // namespace heddle
