#pragma once

#include <cstdint>

#include "base/index.hpp"

namespace heddle {

/// How a matrix is cut into tiles: the heterogeneous tiles of 001 section 3.
///
/// Rows are cut every `tile` rows. Columns are cut every `tile` columns too, and each of these wide
/// columns again: its first `strip` columns into pieces of `small` (for the CPUs), the rest is one
/// remainder (for a device). `strip == 0` leaves square tiles. Rows and columns at the edge are
/// shorter. A *tile column* below is one such piece; pieces of a wide column are numbered left to
/// right, wide columns follow each other.
///
/// Invariant (`is_valid()`): rows, columns, fine >= 0; tile >= 1; 0 <= strip <= wide_width(); strip
/// > 0 implies small >= 1 and strip % small == 0.
struct TileLayout {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t tile = 1;
  std::int64_t strip = 0;
  std::int64_t small = 0;
  /// Most rows and columns of the parts into which CPU workers divide these tiles for fine tasks
  /// (000 section 3.2); 0: they run tasks whole.
  std::int64_t fine = 0;
  /// Columns of a wide column where they are not as many as a tile has rows (right-hand sides); 0:
  /// `tile`.
  std::int64_t wide = 0;

  [[nodiscard]] bool is_valid() const {
    return rows >= 0 && columns >= 0 && fine >= 0 && tile >= 1 && wide >= 0 && strip >= 0 &&
           strip <= wide_width() && (strip == 0 || (small >= 1 && strip % small == 0));
  }

  [[nodiscard]] std::int64_t wide_width() const { return wide > 0 ? wide : tile; }

  /// Pieces that a full wide column is cut into.
  [[nodiscard]] std::int32_t pieces_per_wide() const {
    return static_cast<std::int32_t>((strip > 0 ? strip / small : 0) +
                                     (strip < wide_width() ? 1 : 0));
  }

  [[nodiscard]] std::int32_t tile_rows() const {
    return static_cast<std::int32_t>((rows + tile - 1) / tile);
  }
  [[nodiscard]] std::int32_t wide_columns() const {
    return static_cast<std::int32_t>((columns + wide_width() - 1) / wide_width());
  }
  [[nodiscard]] std::int32_t tile_columns() const;

  [[nodiscard]] TileRow end_row() const { return TileRow{tile_rows()}; }
  [[nodiscard]] WideColumn end_wide() const { return WideColumn{wide_columns()}; }
  [[nodiscard]] TileColumn end_column() const { return TileColumn{tile_columns()}; }

  [[nodiscard]] std::int64_t row_begin(TileRow i) const { return i.value() * tile; }
  [[nodiscard]] std::int64_t row_count(TileRow i) const;

  [[nodiscard]] WideColumn wide_of(TileColumn c) const {
    return WideColumn{c.value() / pieces_per_wide()};
  }
  [[nodiscard]] std::int32_t piece_of(TileColumn c) const { return c.value() % pieces_per_wide(); }
  /// First tile column of a wide column; `end_wide()` gives the end.
  [[nodiscard]] TileColumn wide_begin(WideColumn wide_column) const;
  /// With square tiles, the tile row and the wide column that meet in a diagonal tile.
  [[nodiscard]] TileRow diagonal_row(TileColumn c) const { return TileRow{wide_of(c).value()}; }
  [[nodiscard]] WideColumn diagonal_wide(TileRow i) const { return WideColumn{i.value()}; }
  /// True when the piece is the part of its wide column that a device keeps.
  [[nodiscard]] bool is_remainder(TileColumn c) const {
    return piece_of(c) == (strip > 0 ? static_cast<std::int32_t>(strip / small) : 0);
  }

  /// First column of the piece within its wide column.
  [[nodiscard]] std::int64_t offset_in_wide(TileColumn c) const;
  [[nodiscard]] std::int64_t column_begin(TileColumn c) const;
  [[nodiscard]] std::int64_t column_count(TileColumn c) const;

  friend bool operator==(const TileLayout&, const TileLayout&) = default;
};

/// Throws Error(usage) that names layout.tile when there are more tiles than can be numbered.
void check_tile_count(const TileLayout& layout);

/// Where the tiles live: the multilevel block-cyclic distribution of 001 section 3.2.
///
/// Square tiles go 2-D block-cyclically over the grid of nodes (rank = grid row * grid_columns +
/// grid column); within a node remainders go column-wise and cyclically over its devices, strips
/// stay on the host. No device: all on the host.
struct Distribution {
  std::int32_t grid_rows = 1;
  std::int32_t grid_columns = 1;
  std::int32_t devices = 0;       ///< devices per node that hold remainders
  std::int32_t row_group = 1;     ///< tile rows that stay together: those that lie in one tall tile
  std::int32_t device_shift = 0;  ///< devices that remainders lie further on

  [[nodiscard]] std::int32_t node_count() const { return grid_rows * grid_columns; }
  [[nodiscard]] NodeId node(TileRow i, WideColumn j) const {
    return NodeId{i.value() / row_group % grid_rows * grid_columns + j.value() % grid_columns};
  }
  /// Where the remainders of wide column j live on their nodes.
  [[nodiscard]] PlaceId place(WideColumn j) const {
    return devices > 0 ? PlaceId{1 + (j.value() / grid_columns + device_shift) % devices}
                       : host_place;
  }
  [[nodiscard]] Location home(const TileLayout& layout, TileRow i, TileColumn c) const;

  friend bool operator==(const Distribution&, const Distribution&) = default;
};

}  // namespace heddle
