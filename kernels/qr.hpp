#pragma once

#include <cstdint>

#include "kernels/kernel.hpp"

/// The tile kernels of QR (001 sections 3 and 7.2.2): Householder reflectors in compact WY form.
///
/// A *panel* is a tile column of w columns. In each tile below the diagonal of the panel its
/// reflectors V stand in the tile itself, R in a tile of its own, so that R may move on while V is
/// still read. A tile is tall where it is a virtual tile: v square tiles treated as one. In a tile
/// that the diagonal passes through, rows from `first` on take part, and V is unit lower
/// trapezoidal there; its upper part keeps R as an echo that nobody reads. In tiles below, V is a
/// full tile under an identity that is not stored.
///
/// Reflectors come in blocks of `inner` columns, the last one perhaps narrower. T (inner x w) holds
/// the upper triangular factor of each block at its columns, so that a block is I - V T V^T; what
/// is below these triangles is zero. Q is the product of the blocks from left to right.
///
/// On its way down a panel R, and what Q^T makes of the rows beside it, passes from tile to tile.
/// Kernels below take it from where it was in a last, additional tile (in), if there is one: rows
/// [row, row + w) of tile1 are then an output alone. Of a triangle they read what is on and above
/// its diagonal: nothing else travels between nodes.
///
/// All sizes may be 0. Shapes that do not match are defects and abort. Kernels run on the calling
/// thread alone, keep two scratch buffers per thread, and give the same bits for the same input,
/// wherever the tiles lie. Columns of any scale that double holds are safe. All return 0.
namespace heddle::kernel {

/// How a panel lies in the tiles that its kernels see.
struct PanelParameters {
  std::int64_t first = 0;  ///< first row of the tile that takes part
  std::int64_t row = 0;    ///< first row of the panel in R's tile
  std::int64_t inner = 1;  ///< columns of a block of reflectors
};

/// tile0 (m x w, in/out), rows from `first`: V below the diagonal; tile1 (in/out): R in rows [row,
/// row + w) of its w columns, zeros below R's diagonal there; tile2 (inner x w, out): T. As many
/// active rows as columns at least.
extern const Kernel geqrt;

/// C := Q^T C. tile0 = C (m x n, in/out) rows from `first`; tile1 (in/out): rows [row, row + w) :=
/// the first w of these rows; tile2 = V (m x w), tile3 = T of geqrt.
extern const Kernel unmqr;

/// The other way: the first w active rows of tile0 are taken from rows [row, row + w) of tile1
/// (in), then C := Q C.
extern const Kernel unmqr_back;

/// R and a tile under it. tile0 (m x w, in/out): any tile, then V; tile1 (in/out): R in rows [row,
/// row + w); tile2 (inner x w, out): T.
extern const Kernel tsqrt;

/// [D; C] := Q^T [D; C]. tile0 = C (m x n, in/out); D = rows [row, row + w) of tile1 (in/out);
/// tile2 = V (m x w), tile3 = T of tsqrt.
extern const Kernel tsmqr;

/// [D; C] := Q [D; C], tiles as for tsmqr.
extern const Kernel tsmqr_back;

/// Two triangles, R and another one under it. tile0 (rows [0, w) of w columns, out): V, an upper
/// triangle, zeros below it there; tile1 (out): R in rows [row, row + w), zeros below its diagonal
/// there; tile2 (inner x w, out): T; tile3 (in): R and tile4 (in): the other triangle, both in rows
/// [row, row + w), of which nothing below the diagonal is read.
extern const Kernel ttqrt;

/// [D; C] := Q^T [D; C], D and C with as many rows as the panel has columns. tile0 (in/out): rows
/// [0, w) := the new C; tile1 (out): rows [row, row + w) := the new D; tile2 = V (its upper
/// triangle is read), tile3 = T of ttqrt; tile4 (in): D and tile5 (in): C in rows [row, row + w).
extern const Kernel ttmqr;

/// [D; C] := Q [D; C]. tile0 (out): rows [row, row + w) := the new C; tile1 (out): the same rows :=
/// the new D; tile2 and tile3 as for ttmqr; tile4 (in): D in rows [row, row + w); tile5 (in): C in
/// rows [0, w).
extern const Kernel ttmqr_back;

/// Rows [row, row + inner) of tile0 (in/out) := the same rows of tile1, with as many columns.
extern const Kernel copy_rows;

/// Rows [row, row + inner) of tile0 (in/out) := the upper triangle of the same rows of tile1, which
/// has `inner` columns, and zeros below it.
extern const Kernel copy_triangle;

}  // namespace heddle::kernel
