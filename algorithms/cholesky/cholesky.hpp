#pragma once

#include "node-runtime/matrix.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {

/// Factorizes the symmetric positive definite `a` (Storage::lower, square) in place: the lower
/// triangle becomes L with A = L L^T. Strictly upper parts of diagonal tiles must be zero and stay
/// so.
///
/// The heterogeneous tile algorithm of 001 section 3.1. The job's result is `numerical_failure`
/// with LAPACK's info when a leading minor is not positive definite; the matrix is then undefined.
[[nodiscard]] JobSpec cholesky(const Matrix<double>& a);

/// `r` -= L L^T, lower part, with the factor `l`; both alike in layout. For the residual A - L L^T.
[[nodiscard]] JobSpec subtract_product(const Matrix<double>& r, const Matrix<double>& l);

/// n^3 / 3 and its lower terms' place: the standard count.
[[nodiscard]] inline double cholesky_flops(double n) {
  return n * n * n / 3;
}

}  // namespace heddle
