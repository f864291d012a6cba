#pragma once

#include "node-runtime/matrix.hpp"
#include "node-runtime/threads/program.hpp"

/// Products with a few columns, for residuals. Summed in the order of the tiles, so the bits do not
/// depend on the grid. The columns are cut into wide columns of at most a tile.
namespace heddle {

/// y -= A x with the symmetric `a` (Storage::lower).
[[nodiscard]] JobSpec subtract_symmetric_product(const Matrix<double>& y, const Matrix<double>& a,
                                                 const Matrix<double>& x);

/// y -= A x. y is cut into tile rows as `a`, x as a's wide columns; both may lie anywhere.
[[nodiscard]] JobSpec subtract_product(const Matrix<double>& y, const Matrix<double>& a,
                                       const Matrix<double>& x);

/// x -= A^T y, shapes as above.
[[nodiscard]] JobSpec subtract_transposed_product(const Matrix<double>& x, const Matrix<double>& a,
                                                  const Matrix<double>& y);

/// The same with only tile column `side` of y, for an x of this one tile column; y may be `a`.
[[nodiscard]] JobSpec subtract_transposed_product(const Matrix<double>& x, const Matrix<double>& a,
                                                  const Matrix<double>& y, TileColumn side);

}  // namespace heddle
