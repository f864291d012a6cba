#pragma once

#include <cstdint>
#include <optional>

#include "node-runtime/matrix.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {

/// Factorizes the symmetric positive definite `a` (Storage::lower, square) in place: the lower
/// triangle becomes L with A = L L^T. Strictly upper parts of diagonal tiles must be zero and stay
/// so.
///
/// The heterogeneous tile algorithm of 001 section 3.1. The job's result is `numerical_failure`
/// with LAPACK's info when a leading minor is not positive definite; the matrix is then undefined.
/// On GPUs the panel's triangular solves become products with inverse blocks
/// (kernels/kernels.hpp); they are a temporary matrix then, so calls come in the same order on all
/// nodes.
[[nodiscard]] JobSpec cholesky(const Matrix<double>& a);

/// The same with or without inverse blocks: those of the remainders (TileLayout), which devices
/// factorize, go to `inverses`. Where the devices of a node do not hold its part of the matrix,
/// priorities follow from how much of it they do: `device_memory` bytes of each, which a matrix
/// without a node does not know (0: all of it).
[[nodiscard]] JobSpec cholesky(const Matrix<double>& a,
                               const std::optional<Matrix<double>>& inverses,
                               std::optional<std::uint64_t> device_memory = std::nullopt);

/// What a matrix for inverse blocks of `inner` columns looks like, `inner` >= 1.
[[nodiscard]] MatrixSpec inverses_spec(const Matrix<double>& a, std::int64_t inner);

/// `r` -= L L^T, lower part, with the factor `l`; both alike in layout. For the residual A - L L^T.
[[nodiscard]] JobSpec subtract_product(const Matrix<double>& r, const Matrix<double>& l);

/// n^3 / 3 and its lower terms' place: the standard count.
[[nodiscard]] inline double cholesky_flops(double n) {
  return n * n * n / 3;
}

}  // namespace heddle
