#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/walk/own_part.hpp"
#include "algorithms/walk/tile_range.hpp"
#include "node-runtime/matrix.hpp"

namespace heddle {

/// The tiles of one node in ranges of a matrix that is stored full or lower.
class OwnTiles {
 public:
  OwnTiles(const Matrix<double>& a, NodeId node);

  [[nodiscard]] const TileLayout& layout() const { return layout_; }
  [[nodiscard]] const OwnPart& part() const { return part_; }

  /// The first row of the range that is stored in wide column j.
  [[nodiscard]] TileRow first_row(const TileRange& range, WideColumn j) const;
  /// True when no tile of the range is stored.
  [[nodiscard]] bool is_empty(const TileRange& range) const;
  [[nodiscard]] bool has_any(const TileRange& range) const;

  /// A tile of this node in a range; column_end of the range behind the last one.
  struct Position {
    TileColumn column;
    TileRow row;
    TileRow row_end;  ///< of the range
  };
  [[nodiscard]] Position first(const TileRange& range) const;
  /// Downwards, then to the next own column.
  void advance(const TileRange& range, Position& at) const;

 private:
  [[nodiscard]] Position first_from(const TileRange& range, TileColumn column) const;

  TileLayout layout_;
  OwnPart part_;
  bool is_lower_;
};

/// Counts the tasks of a sequential program that have written each tile.
class WriteCounts {
 public:
  explicit WriteCounts(const TileLayout& layout)
      : columns_(static_cast<std::size_t>(layout.tile_columns())) {}

  /// One more for rows [begin, end) of a column.
  void add(TileColumn column, TileRow begin, TileRow end);
  [[nodiscard]] Version of(TileRow row, TileColumn column) const;

 private:
  struct Rows {
    TileRow begin;
    TileRow end;
    std::int32_t count;
  };
  std::vector<std::vector<Rows>> columns_;
};

}  // namespace heddle
