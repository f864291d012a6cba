#pragma once

#include "node-runtime/matrix.hpp"

namespace heddle {

/// Factorizes the symmetric positive definite `a` (Storage::lower, square) in place: the lower
/// triangle becomes L with A = L L^T. What stands above the diagonal in diagonal tiles is neither
/// read nor written.
///
/// The heterogeneous tile algorithm of 001 section 3.1. The job's result is `numerical_failure`
/// with LAPACK's info when a leading minor is not positive definite; the matrix is then undefined.
/// On GPUs products with inverse blocks (kernels/kernels.hpp) replace the panel's triangular
/// solves; the blocks are a temporary matrix, so all nodes make their calls in the same order.
/// Throws Error(usage) for a matrix of another shape or storage.
[[nodiscard]] JobSpec cholesky(const Matrix<double>& a);

/// `r` -= L L^T, lower part, with the factor `l`; both alike in layout. For the residual A - L L^T.
[[nodiscard]] JobSpec subtract_product(const Matrix<double>& r, const Matrix<double>& l);

/// n^3 / 3: lower-order terms are left out, as is usual.
[[nodiscard]] inline double cholesky_flops(double n) {
  return n * n * n / 3;
}

}  // namespace heddle
