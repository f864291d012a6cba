#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "node-runtime/matrix.hpp"

namespace heddle {

enum class Reads : std::uint8_t {
  later_columns,   ///< the tile updates columns to the right of its own
  own_column_too,  ///< and its own
};

/// The other nodes that read tile (i, c) of a lower matrix when column c updates the columns to its
/// right: as the left factor along tile row i, as the right factor down wide column i; a diagonal
/// tile down its own wide column. Each node once, at most grid_rows + grid_columns of them.
[[nodiscard]] inline std::vector<NodeId> panel_readers(const Matrix<double>& a, std::int32_t i,
                                                       TileColumn c, Reads reads) {
  const TileLayout& layout = a.layout();
  const Distribution& d = a.distribution();
  const std::int32_t rows = layout.tile_rows();
  const std::int32_t k = layout.wide_of(c);
  std::vector<NodeId> readers;
  if (d.node_count() == 1) return readers;
  const NodeId me = d.node(i, k);
  const auto add = [&](NodeId node) {
    if (node != me && std::find(readers.begin(), readers.end(), node) == readers.end()) {
      readers.push_back(node);
    }
  };
  if (i == k) {
    for (std::int32_t row = k + 1; row < std::min(rows, k + 1 + d.grid_rows); ++row) {
      add(d.node(row, k));
    }
    return readers;
  }
  const bool last_piece = c + 1 == layout.wide_begin(k + 1);
  const std::int32_t first = reads == Reads::own_column_too || !last_piece ? k : k + 1;
  for (std::int32_t j = first; j <= std::min(i, first + d.grid_columns - 1); ++j) {
    add(d.node(i, j));
  }
  for (std::int32_t row = i; row < std::min(rows, i + d.grid_rows); ++row) add(d.node(row, i));
  return readers;
}

}  // namespace heddle
