#include "algorithms/walk/own_tiles.hpp"

#include <algorithm>

#include "base/require.hpp"

namespace heddle {

OwnTiles::OwnTiles(const Matrix<double>& a, NodeId node)
    : layout_(a.layout()), part_(a.distribution(), node), is_lower_(a.storage() == Storage::lower) {
  require(
      a.storage() != Storage::upper && a.distribution().row_group == 1 &&
          a.state()->spec.dealing == Dealing::cyclic,
      "a walk over the tiles of a {} x {} matrix: it must be stored full or lower, with its tiles "
      "dealt out one by one",
      a.rows(), a.columns());
}

TileRow OwnTiles::first_row(const TileRange& range, WideColumn j) const {
  return is_lower_ ? std::max(range.row_begin, TileRow{j.value()}) : range.row_begin;
}

bool OwnTiles::is_empty(const TileRange& range) const {
  if (range.column_begin >= range.column_end) return true;
  return first_row(range, layout_.wide_of(range.column_begin)) >= range.row_end;
}

bool OwnTiles::has_any(const TileRange& range) const {
  if (range.column_begin >= range.column_end) return false;
  // Columns further to the right store no more rows.
  const WideColumn j = part_.first_wide(layout_.wide_of(range.column_begin));
  return j <= layout_.wide_of(range.column_end - 1) &&
         part_.first_row(first_row(range, j)) < range.row_end;
}

OwnTiles::Position OwnTiles::first(const TileRange& range) const {
  return first_from(range, range.column_begin);
}

OwnTiles::Position OwnTiles::first_from(const TileRange& range, TileColumn column) const {
  while (column < range.column_end) {
    const WideColumn wide = layout_.wide_of(column);
    const WideColumn own = part_.first_wide(wide);
    if (own == wide) {
      const TileRow row = part_.first_row(first_row(range, wide));
      if (row < range.row_end) return {column, row, range.row_end};
      ++column;
    } else {
      column = layout_.wide_begin(own);
    }
  }
  return {range.column_end, range.row_end, range.row_end};
}

void OwnTiles::advance(const TileRange& range, Position& at) const {
  at.row = at.row + part_.grid_rows;
  if (at.row >= at.row_end) at = first_from(range, at.column + 1);
}

void WriteCounts::add(TileColumn column, TileRow begin, TileRow end) {
  if (begin >= end) return;
  std::vector<Rows>& counts = columns_[static_cast<std::size_t>(column.value())];
  if (!counts.empty() && counts.back().begin == begin && counts.back().end == end) {
    ++counts.back().count;
  } else {
    counts.push_back({begin, end, 1});
  }
}

Version WriteCounts::of(TileRow row, TileColumn column) const {
  std::int32_t count = 0;
  for (const Rows& rows : columns_[static_cast<std::size_t>(column.value())]) {
    if (rows.begin <= row && row < rows.end) count += rows.count;
  }
  return Version{count};
}

}  // namespace heddle
