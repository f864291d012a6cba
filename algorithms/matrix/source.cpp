#include "algorithms/matrix/source.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace heddle {

namespace {

void append(std::vector<RowRange>& ranges, std::int64_t begin, std::int64_t end) {
  if (!ranges.empty() && ranges.back().end == GlobalRow{begin}) {
    ranges.back().end = GlobalRow{end};
  } else {
    ranges.push_back({GlobalRow{begin}, GlobalRow{end}});
  }
}

}  // namespace

WantedRows wanted_by_node(const TileLayout& layout, const Distribution& distribution, NodeId node,
                          WantedPart part) {
  HEDDLE_CHECK(layout.is_valid(), "{} x {}, tile {}", layout.rows, layout.columns, layout.tile);
  HEDDLE_CHECK(part == WantedPart::all_tiles || layout.rows == layout.columns, "{} x {}",
               layout.rows, layout.columns);
  return [layout, distribution, node, part](GlobalColumn column, std::vector<RowRange>& ranges) {
    const auto wide = static_cast<std::int32_t>(column.value() / layout.tile);
    const bool mirrors = part == WantedPart::lower_tiles_and_mirrors;
    const std::int32_t first = part == WantedPart::lower_tiles ? wide : 0;
    for (std::int32_t i = first; i < layout.tile_rows(); ++i) {
      // Above the diagonal, block (i, wide) is the mirror of tile (wide, i).
      const bool is_mirror = mirrors && i < wide;
      const NodeId owner = is_mirror ? distribution.node(wide, i) : distribution.node(i, wide);
      if (owner != node) continue;
      const std::int64_t begin = layout.row_begin(TileRow{i});
      append(ranges, begin, begin + layout.row_count(TileRow{i}));
    }
  };
}

void MatrixSource::prepare(const WantedRows& /*wanted*/) {}

void MatrixSource::read(GlobalRow row, GlobalColumn column, TileView out) const {
  HEDDLE_CHECK(row.value() >= 0 && out.rows >= 0 && out.rows <= rows_ - row.value(),
               "rows {} + {} of {}", row.value(), out.rows, rows_);
  HEDDLE_CHECK(column.value() >= 0 && out.columns >= 0 && out.columns <= columns_ - column.value(),
               "columns {} + {} of {}", column.value(), out.columns, columns_);
  if (out.rows == 0 || out.columns == 0) return;
  HEDDLE_CHECK(out.data != nullptr && out.leading >= out.rows, "leading {}, rows {}", out.leading,
               out.rows);
  read_block(row, column, out);
}

void MatrixSource::read_diagonal(std::int64_t begin, std::span<double> out) const {
  const std::int64_t length = std::min(rows_, columns_);
  HEDDLE_CHECK(begin >= 0 && std::ssize(out) <= length - begin, "{} + {} of {}", begin, out.size(),
               length);
  if (!out.empty()) read_diagonal_part(begin, out);
}

void MatrixSource::read_diagonal_part(std::int64_t begin, std::span<double> out) const {
  for (std::int64_t i = begin; double& value : out) {
    read_block(GlobalRow{i}, GlobalColumn{i}, {&value, 1, 1, 1});
    ++i;
  }
}

}  // namespace heddle
