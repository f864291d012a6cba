#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/walk/own_part.hpp"
#include "node-runtime/matrix.hpp"

namespace heddle {

/// The tiles of one node in ranges of a matrix that is stored full or lower.
class OwnTiles {
 public:
  OwnTiles(const Matrix<double>& a, NodeId node);

  [[nodiscard]] const OwnPart& part() const { return part_; }
  [[nodiscard]] TileRow end_row() const { return end_row_; }
  [[nodiscard]] TileColumn end_column() const { return begins_.back(); }
  // As in TileLayout, without a division.
  [[nodiscard]] WideColumn wide_of(TileColumn c) const {
    return wides_[static_cast<std::size_t>(c.value())];
  }
  /// The last wide column ends where those behind it begin.
  [[nodiscard]] TileColumn wide_begin(WideColumn j) const {
    const auto at = static_cast<std::size_t>(j.value());
    return at < begins_.size() ? begins_[at] : begins_.back();
  }

  /// The first row of the range that is stored in wide column j.
  [[nodiscard]] TileRow first_row(const TileRange& range, WideColumn j) const;
  /// True when no tile of the range is stored.
  [[nodiscard]] bool is_empty(const TileRange& range) const;
  [[nodiscard]] bool has_any(const TileRange& range) const;

  /// A tile of this node in a range; column_end of the range behind the last one.
  struct Position {
    TileColumn column;
    TileRow row;
  };
  [[nodiscard]] Position first(const TileRange& range) const {
    return first_from(range, range.column_begin);
  }
  /// Downwards, then to the next own column.
  void advance(const TileRange& range, Position& at) const;

 private:
  [[nodiscard]] Position first_from(const TileRange& range, TileColumn column) const;

  OwnPart part_;
  bool is_lower_;
  TileRow end_row_;
  std::vector<WideColumn> wides_;   ///< of each tile column
  std::vector<TileColumn> begins_;  ///< of each wide column, and the end
};

/// Counts the tasks of a sequential program that have written each tile.
class WriteCounts {
 public:
  explicit WriteCounts(const OwnTiles& tiles)
      : whole_(static_cast<std::size_t>(tiles.end_column().value())), parts_(whole_.size()) {}

  /// One more for each tile of the range.
  void add(const OwnTiles& tiles, const TileRange& range);
  [[nodiscard]] Version of(TileRow row, TileColumn column) const;

 private:
  struct Rows {
    TileRow begin;
    TileRow end;
    std::int32_t count;
  };
  std::vector<std::int32_t> whole_;       ///< tasks on all tiles of each column
  std::vector<std::vector<Rows>> parts_;  ///< tasks on some of its tiles
};

}  // namespace heddle
