#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/kernel_case.hpp"

/// The fine-grain form of a kernel (000 sections 3.1.1 and 3.2): what it computes on large tiles as
/// a sequence of kernels on parts of these tiles, where they lie, without copying.
namespace heddle {

/// Rows [row, row + rows) of columns [column, column + columns) of one of the tiles that a kernel
/// sees.
struct TileArea {
  std::uint8_t tile = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  [[nodiscard]] bool is_empty() const { return rows == 0 || columns == 0; }
  [[nodiscard]] bool meets(const TileArea& other) const {
    return tile == other.tile && row < other.row + other.rows && other.row < row + rows &&
           column < other.column + other.columns && other.column < column + columns;
  }
  /// Every element of `other` is in this area.
  [[nodiscard]] bool covers(const TileArea& other) const {
    return tile == other.tile && row <= other.row && other.row + other.rows <= row + rows &&
           column <= other.column && other.column + other.columns <= column + columns;
  }
};

/// A part of a tile as a fine task's kernel uses it.
struct FineAccess {
  TileArea area;
  bool writes = false;  ///< it may read as well
};

[[nodiscard]] inline FineAccess reads(const TileArea& area) {
  return {area, false};
}
[[nodiscard]] inline FineAccess writes(const TileArea& area) {
  return {area, true};
}

/// One task of a fine-grain form.
struct FineTask {
  static constexpr std::size_t accesses_max = 6;

  const Kernel* kernel = nullptr;
  KernelParameters parameters;
  std::array<FineAccess, accesses_max> operands;  ///< the kernel's tiles in their order
  std::uint8_t operand_count = 0;
  std::int64_t info_base = 0;  ///< added to what the kernel returns when it fails

  [[nodiscard]] std::span<const FineAccess> accesses() const {
    return {operands.data(), operand_count};
  }
};

/// A sequence of fine tasks: one after the other they do what the kernel does. Which of them may
/// run side by side follows from their areas (node-runtime/fine/fine_graph.hpp).
class FineTasks {
 public:
  /// `step`: most areas begin at multiples of that many rows and columns. Affects only the time
  /// that finding the dependencies takes.
  explicit FineTasks(std::int64_t step = 64) : step_(step) {}

  /// Appends a task; one whose first area is empty has no effect and is left out.
  void add(const Kernel& kernel, const KernelParameters& parameters,
           std::span<const FineAccess> accesses, std::int64_t info_base = 0);
  void add(const Kernel& kernel, const KernelParameters& parameters,
           std::initializer_list<FineAccess> accesses, std::int64_t info_base = 0) {
    add(kernel, parameters, std::span(accesses.begin(), accesses.size()), info_base);
  }

  [[nodiscard]] std::span<const FineTask> tasks() const { return tasks_; }
  [[nodiscard]] std::int64_t step() const { return step_; }

 private:
  std::int64_t step_;
  std::vector<FineTask> tasks_;
};

/// The fine-grain form of `what` with parts of at most `small` rows and columns (of a product's
/// inner dimension all is left together, which costs no parallelism). Empty for a kernel without
/// one. `small` is at least 1 and need not divide anything. Deterministic. Any thread.
[[nodiscard]] FineTasks fine_form(const KernelCase& what, std::int64_t small);

}  // namespace heddle
