#pragma once

#include <cstdint>

#include "kernels/kernel.hpp"

/// The tile kernels of Cholesky, of the triangular solves and of the verification (001 section
/// 3.1).
///
/// Tiles come in the order of the task's accesses, the main output first. Let a *piece* of width w
/// be a tile of `w` columns that begins at column `offset` of its wide column. A piece of a
/// diagonal tile is stored with all rows of its tile; its rows above `offset` and the strictly
/// upper part of the w x w block at row `offset` are zero, and every kernel leaves them untouched.
/// "L11" below is the lower triangle of that block, "L21" the rows beneath it.
///
/// All sizes may be 0; leading dimensions are at least max(1, rows) and fit an int. Shapes that do
/// not match are defects and abort. Kernels use `blas()` (kernels/cpu/blas.hpp) on the calling
/// thread alone, at most 256 KiB of stack, and give the same bits for the same input, wherever the
/// tiles lie and whatever their leading dimensions. Each returns 0 unless said otherwise.
namespace heddle::kernel {

/// First column of a diagonal tile's piece within its wide column; 0 for square tiles.
struct PieceParameters {
  std::int64_t offset = 0;
};

/// First row of tile2 that takes part.
struct UpdateParameters {
  std::int64_t row = 0;
};

/// `offset` as above; `accumulate` 0 overwrites the output, otherwise adds to it.
struct ProductParameters {
  std::int64_t offset = 0;
  std::int64_t accumulate = 1;
};

/// PieceParameters. tile0 (rows x w, in/out): L11 := Cholesky factor of the w x w block at row
/// `offset` (lower part read and written), L21 := L21 * inv(L11)^T. 001's POTF2'.
/// Returns 0, or LAPACK's info: the first column (from 1, within the piece) whose pivot is not
/// positive or not a number; the tile's content is undefined then, upper part excepted.
extern const Kernel potrf;

/// PieceParameters. tile0 (m x w, in/out) := tile0 * inv(L11)^T, L11 of tile1 (a factored piece).
extern const Kernel trsm;

/// UpdateParameters. tile0 (m x w', in/out) -= tile1 (m x w) * (rows [row, row + w') of tile2)^T,
/// tile2 with w columns.
extern const Kernel gsmm;

/// PieceParameters, of tile0. tile0 (m x w', in/out) is a diagonal tile's piece, tile1 (m x w):
/// rows from `offset` of tile0 -= tile1 * (rows [offset, offset + w') of tile1)^T, of the w' x w'
/// block only the lower part.
extern const Kernel syrk;

/// PieceParameters, of tile1. tile0 = X (rows x nrhs, in/out), tile1 = L (rows x w):
/// X1 := inv(L11) X1 with X1 = rows [offset, offset + w), then rows below: X2 -= L21 X1.
extern const Kernel solve_lower;

/// PieceParameters, of tile1. tile0 = X (rows x nrhs, in/out): X1 := inv(L11)^T (X1 - L21^T X2).
extern const Kernel solve_lower_transposed;

/// ProductParameters. tile0 (m x nrhs) (+)= tile1 (m x w) * rows [offset, offset + w) of tile2.
extern const Kernel product;

/// ProductParameters. Rows [offset, offset + w) of tile0 (+)= tile1^T (w x m) * tile2 (m x nrhs).
/// Without `accumulate` the other rows of tile0 stay as they are.
extern const Kernel product_transposed;

/// ProductParameters. tile1 (rows x w) is a piece of a symmetric diagonal tile whose lower part is
/// stored: tile0 (rows x nrhs) (+)= (stored columns and their mirror image) * tile2 (rows x nrhs).
/// Over all pieces of the tile this makes the full symmetric product. Rows above `offset` and the
/// upper part of tile1 are not read.
extern const Kernel product_symmetric;

/// No parameters. tile0 (in/out) -= tile1, shapes equal.
extern const Kernel subtract;

/// No parameters. tile0 (out) := tile1, shapes equal.
extern const Kernel copy;

}  // namespace heddle::kernel
