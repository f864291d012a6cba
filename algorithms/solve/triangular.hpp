#pragma once

#include <vector>

#include "node-runtime/matrix.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {

/// Right-hand sides for `a`: a.rows() x `columns`, cut like the rows of `a` and into wide columns
/// of at most a tile, each tile row on the node of its diagonal tile.
[[nodiscard]] Matrix<double> right_hand_sides(const Matrix<double>& a, std::int64_t columns);

/// x := inv(L L^T) x with the factor `l` that cholesky() left. Products are summed in the order of
/// the tiles, so the bits do not depend on the grid.
[[nodiscard]] JobSpec solve_cholesky(const Matrix<double>& l, const Matrix<double>& x);

/// y -= A x with the symmetric `a` (Storage::lower).
[[nodiscard]] JobSpec subtract_symmetric_product(const Matrix<double>& y, const Matrix<double>& a,
                                                 const Matrix<double>& x);

}  // namespace heddle
