#pragma once

#include "base/index.hpp"

namespace heddle {

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
