#pragma once

#include <cstdint>

#include "node-runtime/matrix.hpp"

/// Solves with factors, and products with a few columns, for residuals. Summed in the order of the
/// tiles, so the bits do not depend on the grid.
namespace heddle {

/// Right-hand sides for `a`: a.rows() x `columns`, cut like the rows of `a` and into wide columns
/// of at most a tile, each tile row on the node of its diagonal tile.
[[nodiscard]] MatrixSpec right_hand_sides_spec(const Matrix<double>& a, std::int64_t columns);
[[nodiscard]] Matrix<double> right_hand_sides(const Matrix<double>& a, std::int64_t columns);

/// x := inv(L L^T) x with the factor `l` that cholesky() left.
[[nodiscard]] JobSpec solve_cholesky(const Matrix<double>& l, const Matrix<double>& x);

/// x := inv(R) b with an upper triangle `r` of which the tiles on and above the diagonal are
/// stored. x as right_hand_sides(r, ...) makes it; b is cut like it and may lie on other nodes.
/// Where R's diagonal has a zero, x becomes infinite or not a number.
[[nodiscard]] JobSpec solve_upper(const Matrix<double>& r, const Matrix<double>& x,
                                  const Matrix<double>& b);

// Products: the columns are cut into wide columns of at most a tile.
/// y -= A x with the symmetric `a` (Storage::lower).
[[nodiscard]] JobSpec subtract_symmetric_product(const Matrix<double>& y, const Matrix<double>& a,
                                                 const Matrix<double>& x);

/// y -= A x, A a matrix, or a triangle whose diagonal tiles are zero beyond it. y is cut into tile
/// rows as `a`, x as a's wide columns; both may lie anywhere.
[[nodiscard]] JobSpec subtract_product(const Matrix<double>& y, const Matrix<double>& a,
                                       const Matrix<double>& x);

/// x -= A^T y, shapes as above.
[[nodiscard]] JobSpec subtract_transposed_product(const Matrix<double>& x, const Matrix<double>& a,
                                                  const Matrix<double>& y);

/// The same with only tile column `side` of y, for an x of this one tile column; y may be `a`.
[[nodiscard]] JobSpec subtract_transposed_product(const Matrix<double>& x, const Matrix<double>& a,
                                                  const Matrix<double>& y, TileColumn side);

}  // namespace heddle
