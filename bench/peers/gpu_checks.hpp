#pragma once

#include <cstdint>
#include <vector>

/// Checks of factorizations in GPU memory, by products with random vectors x. The matrix is
/// generated again strip by strip, so that it takes no memory beside its factors. Residuals are
/// scaled: rounding alone leaves them below residual_max. They wait for the GPUs.
namespace heddle::peer {

/// Whole columns of a factor in the memory of one GPU, column-major with `n` elements from one to
/// the next.
struct ColumnBlock {
  int gpu = 0;
  std::int64_t first = 0;
  std::int64_t columns = 0;
  const double* data = nullptr;
};

/// ‖A x − L Lᵀ x‖ / (n ‖A x‖ eps) for the matrix of fill_spd() and what stands on and below the
/// diagonal of `l`. The blocks make all of its columns.
[[nodiscard]] double cholesky_residual(std::int64_t n, const std::vector<ColumnBlock>& l);

struct QrDeviation {
  double residual = 0;       ///< ‖A x − Q R x‖ / (m ‖A x‖ eps)
  double orthogonality = 0;  ///< ‖x − Q Qᵀ x‖ / (m ‖x‖ eps)
};

/// For the m×n matrix of fill_normal(), m >= n; `a` (m from one column to the next) and `tau` are
/// what geqrf left on the current GPU.
[[nodiscard]] QrDeviation qr_deviation(std::int64_t m, std::int64_t n, const double* a,
                                       const double* tau);

}  // namespace heddle::peer
