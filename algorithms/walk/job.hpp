#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/matrix.hpp"

namespace heddle {

/// A job of a program on matrices, each named once or more. A matrix that was made as a temporary
/// one is a temporary of the job.
[[nodiscard]] JobSpec job_of(std::string name, const std::vector<Matrix<double>>& matrices,
                             std::function<Program(TaskStream&)> program);

/// Priority of a task on tile column `column` of `columns`: left columns first, and within a column
/// first what other columns need. `step` is 0 for updates, 1 and 2 for what makes the column final.
/// 0 .. 1023.
[[nodiscard]] inline std::int32_t column_priority(std::int32_t columns, TileColumn column,
                                                  int step) {
  const std::int64_t rank = std::int64_t{columns - column.value()} * 4 + step;
  const std::int64_t most = std::int64_t{columns} * 4 + 3;
  return static_cast<std::int32_t>(most <= 1023 ? rank : rank * 1023 / most);
}

}  // namespace heddle
