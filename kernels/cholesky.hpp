#pragma once

#include <cstdint>

#include "kernels/kernel.hpp"
#include "kernels/piece.hpp"

/// The tile kernels of Cholesky and of its verification (001 section 3.1).
///
/// Tiles come in the order of the task's accesses, the main output first; pieces of diagonal tiles
/// are those of PieceParameters.
///
/// All sizes may be 0; leading dimensions are at least max(1, rows) and fit an int. Shapes that do
/// not match are defects and abort. Kernels use `blas()` (kernels/cpu/blas.hpp) on the calling
/// thread alone, at most 256 KiB of stack, and give the same bits for the same input, wherever the
/// tiles lie and whatever their leading dimensions. Each returns 0 unless said otherwise.
namespace heddle::kernel {

/// First row of tile2 that takes part.
struct UpdateParameters {
  std::int64_t row = 0;
};

/// *Inverse blocks* of a factored piece of width w: a tile of `inner` x w, inner at least 1, that
/// beside L11 holds the inverses of its diagonal blocks of `inner` columns from the left, the last
/// perhaps narrower. A block of `count` columns has its inverse, a lower triangle, in rows [0,
/// count) of its columns; all else is zero. They turn the triangular solve of trsm, which is slow
/// on GPUs, into products.

/// PieceParameters. tile0 (rows x w, in/out): L11 := Cholesky factor of the w x w block at row
/// `offset` (lower part read and written), L21 := L21 * inv(L11)^T. 001's POTF2'.
/// tile1 (inner x w, out), which may be left out, := the inverse blocks of L11.
/// Returns 0, or LAPACK's info: the first column (from 1, within the piece) whose pivot is not
/// positive or not a number; the content of both tiles is undefined then, tile0's upper part
/// excepted.
extern const Kernel potrf;

/// PieceParameters. tile0 (m x w, in/out) := tile0 * inv(L11)^T, L11 of tile1 (a factored piece).
/// tile2 (inner x w), which may be left out: the inverse blocks of L11. The host does not read it.
extern const Kernel trsm;

/// UpdateParameters. tile0 (m x w', in/out) -= tile1 (m x w) * (rows [row, row + w') of tile2)^T,
/// tile2 with w columns.
extern const Kernel gsmm;

/// PieceParameters, of tile0. tile0 (m x w', in/out) is a diagonal tile's piece, tile1 (m x w):
/// rows from `offset` of tile0 -= tile1 * (rows [offset, offset + w') of tile1)^T, of the w' x w'
/// block only the lower part.
extern const Kernel syrk;

}  // namespace heddle::kernel
