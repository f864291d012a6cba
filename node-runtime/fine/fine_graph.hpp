#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/fine/fine_tasks.hpp"

namespace heddle {

/// The fine tasks of a kernel on tiles of some shapes, and which of them wait for which: two wait
/// for each other if their areas meet and one of them writes there, in the order of the sequence.
/// Immutable; any number of coarse tasks of these shapes share it (000 section 3.2).
///
/// Tasks are numbered by urgency, those with the longest way to the end first (by their
/// operations), so that of the ready ones the lowest number is next. All that a task waits for has
/// lower numbers.
class FineGraph {
 public:
  /// Takes a microsecond or two for each task, and memory; not for the hot path.
  explicit FineGraph(const FineTasks& tasks);

  [[nodiscard]] std::int32_t size() const { return static_cast<std::int32_t>(tasks_.size()); }
  [[nodiscard]] const FineTask& task(std::int32_t number) const {
    return tasks_[static_cast<std::size_t>(number)];
  }
  /// How many tasks each one waits for, by number.
  [[nodiscard]] std::span<const std::int32_t> missing() const { return missing_; }
  /// Who waits for the task.
  [[nodiscard]] std::span<const std::int32_t> successors(std::int32_t number) const {
    const auto i = static_cast<std::size_t>(number);
    return std::span(successors_).subspan(begin_[i], begin_[i + 1] - begin_[i]);
  }
  /// Operations of all tasks, and on the longest way through them.
  [[nodiscard]] double flops() const { return flops_; }
  [[nodiscard]] double longest_way() const { return longest_way_; }
  /// Workers that the tasks keep busy until all of them have run: their operations over those of
  /// the longest way. 25 for a product of 5 x 5 parts, 4 for a factorization of as many.
  [[nodiscard]] std::int32_t width() const;

 private:
  std::vector<FineTask> tasks_;
  std::vector<std::int32_t> missing_;
  std::vector<std::size_t> begin_;  ///< of each task's successors, and the end of all
  std::vector<std::int32_t> successors_;
  double flops_ = 0;
  double longest_way_ = 0;
};

/// A fine task as a kernel on operands of some shapes.
class FineOperands {
 public:
  /// `task` outlives it.
  explicit FineOperands(const FineTask& task);
  /// Good as long as this object.
  [[nodiscard]] KernelCase what() const {
    return {task_.kernel, task_.parameters, {shapes_.data(), task_.operand_count}};
  }

 private:
  const FineTask& task_;
  std::array<OperandShape, FineTask::accesses_max> shapes_;
};

/// Operations of a fine task, by the usual counts of its kernel.
[[nodiscard]] double flops_of(const FineTask& task);

}  // namespace heddle
