#include "algorithms/cholesky/readers.hpp"

#include <algorithm>
#include <cstdint>

#include "algorithms/walk/job.hpp"

namespace heddle {

std::vector<protocol::Reader> cholesky_readers(const Matrix<double>& a,
                                               const std::optional<Matrix<double>>& inverses,
                                               protocol::TileId tile, Version version) {
  const TileLayout& l = a.layout();
  const Distribution& d = a.distribution();
  const TileRow i{tile.index % l.tile_rows()};  // an inverse block has the indices of its tile
  const TileColumn c{tile.index / l.tile_rows()};
  const WideColumn wide = l.wide_of(c);
  const TileRow k = l.diagonal_row(c);
  const bool is_inverse = inverses.has_value() && tile.matrix == inverses->id();
  // Each tile column to the left has updated the tile once, then it was factorized or divided.
  const Version read{is_inverse ? 1 : c.value() + 1};
  if (version != read || (!is_inverse && tile.matrix != a.id())) return {};

  std::vector<protocol::Reader> readers;
  const auto priority = [&](TileColumn column, int step) {
    return column_priority(l.tile_columns(), column, step);
  };
  const auto go_down = [&](TileRow from, WideColumn j, std::int32_t with_priority) {
    const TileRow end = std::min(l.end_row(), from + d.grid_rows);
    for (TileRow r = from + 1; r < end; ++r) readers.push_back({d.node(r, j), with_priority});
  };
  if (i == k) {
    go_down(k, wide, priority(c, 1));
    return readers;
  }
  const WideColumn own = l.diagonal_wide(i);
  const WideColumn first = l.wide_of(c + 1);
  for (WideColumn j = first; j <= std::min(own, first + (d.grid_columns - 1)); ++j) {
    if ((j - wide) % d.grid_columns == 0) continue;
    readers.push_back({d.node(i, j), priority(std::max(l.wide_begin(j), c + 1), 0)});
  }
  go_down(i, own, priority(std::max(l.wide_begin(own), c + 1), 0));
  return readers;
}

}  // namespace heddle
