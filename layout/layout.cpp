#include "layout/layout.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <limits>

#include "base/error.hpp"

namespace heddle {

std::int32_t TileLayout::tile_columns() const {
  const std::int32_t wides = wide_columns();
  if (wides == 0) return 0;
  const std::int64_t width = columns - (wides - 1) * wide_width();
  const std::int64_t in_strip = std::min(width, strip);
  const std::int64_t pieces =
      (in_strip > 0 ? (in_strip + small - 1) / small : 0) + (width > strip ? 1 : 0);
  return (wides - 1) * pieces_per_wide() + static_cast<std::int32_t>(pieces);
}

std::int64_t TileLayout::row_count(TileRow i) const {
  return std::min(tile, rows - row_begin(i));
}

TileColumn TileLayout::wide_begin(WideColumn wide_column) const {
  // Only the end lies behind the last column, which may have fewer pieces than the others.
  const bool is_there = wide_column.value() * wide_width() < columns;
  return TileColumn{is_there ? wide_column.value() * pieces_per_wide() : tile_columns()};
}

std::int64_t TileLayout::offset_in_wide(TileColumn c) const {
  return strip > 0 ? piece_of(c) * small : 0;
}

std::int64_t TileLayout::column_begin(TileColumn c) const {
  return wide_of(c).value() * wide_width() + offset_in_wide(c);
}

std::int64_t TileLayout::column_count(TileColumn c) const {
  const std::int64_t width = is_remainder(c) ? wide_width() - strip : small;
  return std::min(width, columns - column_begin(c));
}

void check_tile_count(const TileLayout& layout) {
  constexpr std::int64_t tiles_max = std::numeric_limits<std::int32_t>::max();
  const std::int64_t tiles = std::int64_t{layout.tile_rows()} * layout.tile_columns();
  if (tiles <= tiles_max) return;
  throw Error(
      ErrorCode::usage,
      fmt::format("{} x {} in tiles of {} x {} are {} tiles, and at most {} can be "
                  "numbered; choose larger tiles (layout.tile)",
                  layout.rows, layout.columns, layout.tile, layout.wide_width(), tiles, tiles_max));
}

Location Distribution::home(const TileLayout& layout, TileRow i, TileColumn c) const {
  const WideColumn wide = layout.wide_of(c);
  return {node(i, wide), layout.is_remainder(c) ? place(wide) : host_place};
}

}  // namespace heddle
