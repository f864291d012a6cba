#include "algorithms/walk/own_tiles.hpp"

#include <algorithm>

#include "base/require.hpp"

namespace heddle {

OwnTiles::OwnTiles(const Matrix<double>& a, NodeId node)
    : part_(a.distribution(), node),
      is_lower_(a.storage() == Storage::lower),
      end_row_(a.layout().end_row()) {
  require(a.storage() != Storage::upper && a.distribution().row_group == 1 &&
              a.spec().dealing == Dealing::cyclic,
          "a walk over the tiles of a {} x {} matrix: it must be stored full or lower, with its "
          "tiles dealt out one by one",
          a.rows(), a.columns());
  const TileLayout& layout = a.layout();
  for (TileColumn c{0}; c < layout.end_column(); ++c) wides_.push_back(layout.wide_of(c));
  for (WideColumn j{0}; j <= layout.end_wide(); ++j) begins_.push_back(layout.wide_begin(j));
}

TileRow OwnTiles::first_row(const TileRange& range, WideColumn j) const {
  return is_lower_ ? std::max(range.row_begin, TileRow{j.value()}) : range.row_begin;
}

bool OwnTiles::is_empty(const TileRange& range) const {
  return range.column_begin >= range.column_end ||
         first_row(range, wide_of(range.column_begin)) >= range.row_end;
}

bool OwnTiles::has_any(const TileRange& range) const {
  if (is_empty(range)) return false;
  // Columns further to the right store no more rows.
  const WideColumn j = part_.first_wide(wide_of(range.column_begin));
  return j <= wide_of(range.column_end - 1) && part_.first_row(first_row(range, j)) < range.row_end;
}

OwnTiles::Position OwnTiles::first_from(const TileRange& range, TileColumn column) const {
  while (column < range.column_end) {
    const WideColumn wide = wide_of(column);
    const WideColumn own = part_.first_wide(wide);
    if (own == wide) {
      const TileRow row = part_.first_row(first_row(range, wide));
      if (row < range.row_end) return {column, row};
      ++column;
    } else {
      column = wide_begin(own);
    }
  }
  return {range.column_end, range.row_end};
}

void OwnTiles::advance(const TileRange& range, Position& at) const {
  at.row = at.row + part_.grid_rows;
  if (at.row >= range.row_end) at = first_from(range, at.column + 1);
}

void WriteCounts::add(const OwnTiles& tiles, const TileRange& range) {
  constexpr TileRange everything{TileRow{0}, TileRow{0}, TileColumn{0}, TileColumn{0}};
  TileColumn c = range.column_begin;
  for (; c < range.column_end; ++c) {
    const WideColumn j = tiles.wide_of(c);
    const TileRow begin = tiles.first_row(range, j);
    // Columns further to the right begin no higher.
    if (range.row_end == tiles.end_row() && begin == tiles.first_row(everything, j)) break;
    if (begin >= range.row_end) continue;
    std::vector<Rows>& parts = parts_[static_cast<std::size_t>(c.value())];
    if (!parts.empty() && parts.back().begin == begin && parts.back().end == range.row_end) {
      ++parts.back().count;
    } else {
      parts.push_back({begin, range.row_end, 1});
    }
  }
  for (; c < range.column_end; ++c) ++whole_[static_cast<std::size_t>(c.value())];
}

Version WriteCounts::of(TileRow row, TileColumn column) const {
  std::int32_t count = whole_[static_cast<std::size_t>(column.value())];
  for (const Rows& rows : parts_[static_cast<std::size_t>(column.value())]) {
    if (rows.begin <= row && row < rows.end) count += rows.count;
  }
  return Version{count};
}

}  // namespace heddle
