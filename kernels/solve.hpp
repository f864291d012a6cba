#pragma once

#include <cstdint>

#include "kernels/kernel.hpp"
#include "kernels/piece.hpp"

/// The tile kernels of triangular solves and of products with a few columns.
///
/// Tiles come in the order of the task's accesses, the main output first; pieces are those of
/// PieceParameters. All sizes may be 0. Shapes that do not match are defects and abort. Kernels run
/// on the calling thread alone and give the same bits for the same input. Each returns 0.
namespace heddle::kernel {

/// `offset` as in PieceParameters; `accumulate` 0 overwrites the output, otherwise adds to it.
struct ProductParameters {
  std::int64_t offset = 0;
  std::int64_t accumulate = 1;
};

/// PieceParameters, of tile1. tile0 = X (rows x nrhs, in/out), tile1 = L (rows x w):
/// X1 := inv(L11) X1 with X1 = rows [offset, offset + w), then rows below: X2 -= L21 X1.
extern const Kernel solve_lower;

/// PieceParameters, of tile1. tile0 = X (rows x nrhs, in/out): X1 := inv(L11)^T (X1 - L21^T X2).
extern const Kernel solve_lower_transposed;

/// PieceParameters, of tile1. tile0 = X (rows x nrhs, in/out), tile1 = U (rows x w):
/// X1 := inv(U11) X1, then the rows above: X0 -= U01 X1.
extern const Kernel solve_upper;

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
