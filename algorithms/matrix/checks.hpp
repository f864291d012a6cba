#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "algorithms/matrix/source.hpp"
#include "base/index.hpp"
#include "kernels/kernel.hpp"

namespace heddle {

/// An element that is NaN or infinite.
struct NonFinite {
  GlobalRow row;
  GlobalColumn column;
  double value = 0.0;
};

/// The first such element, in column-major order, of the block that begins at (row, column).
[[nodiscard]] std::optional<NonFinite> find_non_finite(TileView block, GlobalRow row,
                                                       GlobalColumn column);

/// "nan at row 3, column 5 (counted from 1)".
[[nodiscard]] std::string describe(const NonFinite& element);

/// True when `a` comes before `b` in column-major order of the whole matrix; for the first of
/// several blocks' or nodes' findings.
[[nodiscard]] bool comes_before(const NonFinite& a, const NonFinite& b);

/// A pair of elements that should be equal and is not.
struct Asymmetry {
  GlobalRow row;
  GlobalColumn column;
  double value = 0.0;       ///< element (row, column)
  double mirrored = 0.0;    ///< element (column, row)
  double difference = 0.0;  ///< |value - mirrored|
  double relative = 0.0;    ///< difference over the scale of the pair, see find_asymmetry
};

/// How far apart, relative to their scale, the elements of a pair may be.
inline constexpr double symmetry_tolerance = 8.0 * std::numeric_limits<double>::epsilon();

/// The worst pair of a block and its mirror whose `relative` is above `tolerance`; the first in
/// column-major order of equally bad ones. Pairs with NaN are passed over: find_non_finite's
/// matter.
///
/// The scale of a pair is max(|a_ij|, |a_ji|, sqrt(|a_ii| |a_jj|)). Cholesky commits backward
/// errors of up to about n eps sqrt(a_ii a_jj) in element (i, j) (Higham, Accuracy and Stability of
/// Numerical Algorithms, theorem 10.3), and that scale follows a rescaling of the variables. So 8
/// eps of it is what any solution has to bear anyway, yet it lets pass a matrix whose two triangles
/// were rounded differently (computed in another order of the same few operations), also where
/// cancellation left small elements. |a_ij| and |a_ji| take part for matrices that are not
/// definite.
///
/// `block` begins at (row, column), `mirror` is the block of the same matrix that begins at
/// (column, row) and has as many rows as `block` has columns. `row_diagonal` holds the diagonal
/// elements of the block's rows, `column_diagonal` those of its columns.
[[nodiscard]] std::optional<Asymmetry> find_asymmetry(TileView block, TileView mirror,
                                                      GlobalRow row, GlobalColumn column,
                                                      std::span<const double> row_diagonal,
                                                      std::span<const double> column_diagonal,
                                                      double tolerance = symmetry_tolerance);

/// The same, reading the mirror block and the diagonal from `source`, which holds the block's
/// matrix and must have been told about the mirror in `prepare`. Allocates a copy of the block. A
/// source that is symmetric by construction is not read.
[[nodiscard]] std::optional<Asymmetry> find_asymmetry(const MatrixSource& source, TileView block,
                                                      GlobalRow row, GlobalColumn column,
                                                      double tolerance = symmetry_tolerance);

/// "element (3, 5) is 1.5 but element (5, 3) is 1.25, difference 0.25 (counted from 1)".
[[nodiscard]] std::string describe(const Asymmetry& pair);

/// True when `a` is worse than `b`, or as bad and earlier in column-major order.
[[nodiscard]] bool is_worse(const Asymmetry& a, const Asymmetry& b);

}  // namespace heddle
