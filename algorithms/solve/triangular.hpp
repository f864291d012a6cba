#pragma once

#include "node-runtime/matrix.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {

/// Right-hand sides for `a`: a.rows() x `columns`, cut like the rows of `a` and into wide columns
/// of at most a tile, each tile row on the node of its diagonal tile.
[[nodiscard]] MatrixSpec right_hand_sides_spec(const Matrix<double>& a, std::int64_t columns);
[[nodiscard]] Matrix<double> right_hand_sides(const Matrix<double>& a, std::int64_t columns);

/// x := inv(L L^T) x with the factor `l` that cholesky() left. Products are summed in the order of
/// the tiles, so the bits do not depend on the grid.
[[nodiscard]] JobSpec solve_cholesky(const Matrix<double>& l, const Matrix<double>& x);

/// x := inv(R) b with an upper triangle `r` of which the tiles on and above the diagonal are
/// stored. x as right_hand_sides(r, ...) makes it; b is cut like it and may lie on other nodes.
/// Where R's diagonal has a zero, x becomes infinite or not a number.
[[nodiscard]] JobSpec solve_upper(const Matrix<double>& r, const Matrix<double>& x,
                                  const Matrix<double>& b);

}  // namespace heddle
