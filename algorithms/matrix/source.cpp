#include "algorithms/matrix/source.hpp"

#include <algorithm>
#include <utility>

#include "base/require.hpp"

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
  require(layout.is_valid(), "wanted_by_node: {} x {} in tiles of {} is no layout", layout.rows,
          layout.columns, layout.tile);
  require(part == WantedPart::all_tiles || layout.rows == layout.columns,
          "wanted_by_node: the lower tiles of {} x {}; the matrix must be square", layout.rows,
          layout.columns);
  return [layout, distribution, node, part](GlobalColumn column, std::vector<RowRange>& ranges) {
    const WideColumn wide{static_cast<std::int32_t>(column.value() / layout.tile)};
    const TileRow diagonal{wide.value()};
    const bool mirrors = part == WantedPart::lower_tiles_and_mirrors;
    for (TileRow i = part == WantedPart::lower_tiles ? diagonal : TileRow{0}; i < layout.end_row();
         ++i) {
      // Block (i, wide) above the diagonal is the mirror of the tile in row `diagonal`.
      const bool is_mirror = mirrors && i < diagonal;
      const NodeId owner = is_mirror ? distribution.node(diagonal, layout.diagonal_wide(i))
                                     : distribution.node(i, wide);
      if (owner != node) continue;
      append(ranges, layout.row_begin(i), layout.row_begin(i) + layout.row_count(i));
    }
  };
}

void MatrixSource::prepare(const WantedRows& /*wanted*/) {}

void MatrixSource::read(GlobalRow row, GlobalColumn column, TileView out) const {
  require(row.value() >= 0 && out.rows >= 0 && out.rows <= rows_ - row.value() &&
              column.value() >= 0 && out.columns >= 0 && out.columns <= columns_ - column.value(),
          "MatrixSource::read: {} x {} from ({}, {}) on; the matrix is {} x {}", out.rows,
          out.columns, row.value(), column.value(), rows_, columns_);
  if (out.rows == 0 || out.columns == 0) return;
  require(
      out.data != nullptr && out.leading >= out.rows,
      "MatrixSource::read: {} rows into {} memory with a leading dimension of {}, which must be "
      "as large",
      out.rows, out.data == nullptr ? "no" : "given", out.leading);
  read_block(row, column, out);
}

void MatrixSource::read_diagonal(std::int64_t begin, std::span<double> out) const {
  const std::int64_t length = std::min(rows_, columns_);
  require(begin >= 0 && std::ssize(out) <= length - begin,
          "MatrixSource::read_diagonal: {} elements from {} on; the diagonal has {}", out.size(),
          begin, length);
  if (!out.empty()) read_diagonal_part(begin, out);
}

void MatrixSource::read_diagonal_part(std::int64_t begin, std::span<double> out) const {
  for (std::int64_t i = begin; double& value : out) {
    read_block(GlobalRow{i}, GlobalColumn{i}, {&value, 1, 1, 1});
    ++i;
  }
}

}  // namespace heddle
