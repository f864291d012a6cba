#pragma once

#include "layout/layout.hpp"

#include <cstdint>

#include "base/index.hpp"

namespace heddle {

/// The tile rows and wide columns of a matrix that one node owns: those of its place in the grid.
struct OwnPart {
  std::int32_t grid_row;
  std::int32_t grid_column;
  std::int32_t grid_rows;
  std::int32_t grid_columns;

  /// For tile rows that go round the grid one by one (Distribution::row_group is 1).
  OwnPart(const Distribution& d, NodeId node)
      : grid_row(node.value() / d.grid_columns),
        grid_column(node.value() % d.grid_columns),
        grid_rows(d.grid_rows),
        grid_columns(d.grid_columns) {}

  /// First own tile row at or after `row`; the next ones follow at distance grid_rows.
  [[nodiscard]] TileRow first_row(TileRow row) const {
    const std::int32_t ahead = (grid_row - row.value()) % grid_rows;
    return row + (ahead < 0 ? ahead + grid_rows : ahead);
  }
  /// First own wide column at or after `wide`; the next ones follow at distance grid_columns.
  [[nodiscard]] WideColumn first_wide(WideColumn wide) const {
    const std::int32_t ahead = (grid_column - wide.value()) % grid_columns;
    return wide + (ahead < 0 ? ahead + grid_columns : ahead);
  }
  [[nodiscard]] bool has_row(TileRow row) const { return row.value() % grid_rows == grid_row; }
  [[nodiscard]] bool has_wide(WideColumn wide) const {
    return wide.value() % grid_columns == grid_column;
  }
};

/// Tile rows [row_begin, row_end) of tile columns [column_begin, column_end), as far as the matrix
/// stores them.
struct TileRange {
  TileRow row_begin;
  TileRow row_end;
  TileColumn column_begin;
  TileColumn column_end;

  [[nodiscard]] bool contains(TileRow i, TileColumn c) const {
    return row_begin <= i && i < row_end && column_begin <= c && c < column_end;
  }
  [[nodiscard]] bool contains(const TileRange& r) const {
    return row_begin <= r.row_begin && r.row_end <= row_end && column_begin <= r.column_begin &&
           r.column_end <= column_end;
  }
};

}  // namespace heddle
