#pragma once

#include "layout/layout.hpp"

#include <cstdint>

#include "base/index.hpp"

/// What the programs of factorizations share in walking a matrix tile by tile.
namespace heddle {

/// The tiles of a matrix as a node walks them: its own rows and wide columns of the grid.
struct OwnPart {
  std::int32_t grid_row;
  std::int32_t grid_column;
  std::int32_t grid_rows;
  std::int32_t grid_columns;

  OwnPart(const Distribution& d, NodeId node)
      : grid_row(node.value() / d.grid_columns),
        grid_column(node.value() % d.grid_columns),
        grid_rows(d.grid_rows),
        grid_columns(d.grid_columns) {}

  /// First own tile row at or after `row`; the next ones follow at distance grid_rows.
  [[nodiscard]] std::int32_t first_row(std::int32_t row) const {
    return row + ((grid_row - row) % grid_rows + grid_rows) % grid_rows;
  }
  [[nodiscard]] std::int32_t first_wide(std::int32_t wide) const {
    return wide + ((grid_column - wide) % grid_columns + grid_columns) % grid_columns;
  }
  [[nodiscard]] bool has_row(std::int32_t row) const { return row % grid_rows == grid_row; }
  [[nodiscard]] bool has_wide(std::int32_t wide) const {
    return wide % grid_columns == grid_column;
  }
};

/// Urgency of a task that works on tile column `column` of `columns`: left columns first, and
/// within a column what others wait for. `step` is 0 for updates, 1 and 2 for what makes the column
/// final. 0 .. 1023.
[[nodiscard]] inline std::int32_t column_priority(std::int32_t columns, std::int32_t column,
                                                  int step) {
  const std::int64_t rank = std::int64_t{columns - column} * 4 + step;
  const std::int64_t most = std::int64_t{columns} * 4 + 3;
  return static_cast<std::int32_t>(most <= 1023 ? rank : rank * 1023 / most);
}

}  // namespace heddle
