#pragma once

#include <cstdint>

#include "kernels/kernel.hpp"

/// Householder reflectors in compact WY form on views: I - V T V^T. On the calling thread, over
/// blas()'s GEMM; what is too narrow for that is written here, in an order of additions of its own,
/// so that the bits do not depend on alignment.
namespace heddle::host {

/// a (m x n, m >= n) := V below its diagonal (unit, the ones not stored) and R on and above; t (n x
/// n) := T, zeros below its diagonal. By recursion (Elmroth and Gustavson 2000).
void factor_reflectors(const TileView& a, const TileView& t);

/// The same of [r; b] with r (n x n) upper triangular, what is below its diagonal neither read nor
/// written: r := R, b (m x n) := V's lower part (above it is an identity), t := T. With
/// `triangular` (m == n) b is upper triangular and stays so.
void factor_reflectors_below(const TileView& r, const TileView& b, const TileView& t,
                             bool triangular);

enum class Side : std::uint8_t {
  transposed,  ///< Q^T C
  plain,       ///< Q C
};

/// c (m x n) := Q c or Q^T c with V (m x k, unit lower trapezoidal) and t (k x k).
void apply_reflectors(Side side, const TileView& v, const TileView& t, const TileView& c);

/// [d; c] := Q [d; c] or Q^T [d; c] with V = [identity; v], d (k x n), v and c with as many rows.
void apply_reflectors_below(Side side, const TileView& v, const TileView& t, const TileView& d,
                            const TileView& c);

}  // namespace heddle::host
