#pragma once

#include <vector>

#include "algorithms/checks/again.hpp"
#include "algorithms/checks/sample.hpp"
#include "algorithms/solve/solve.hpp"

namespace heddle {

/// The check of a factor L of A by max |A z - L L^T z| / (n |A| eps) over three vectors z: the
/// matrices that it needs, each as right_hand_sides().
struct SampledCholesky {
  Matrix<double> z;
  Matrix<double> w;     ///< -L^T z
  Matrix<double> v;     ///< L L^T z - A z
  Matrix<double> ones;  ///< one column
  Matrix<double> sums;  ///< -|A| times ones

  /// Each matrix is made by `make` from its spec.
  template <class Make>
  [[nodiscard]] static SampledCholesky made_by(const Matrix<double>& l, const Make& make) {
    const MatrixSpec spec = right_hand_sides_spec(l, sample_count);
    const MatrixSpec one = right_hand_sides_spec(l, 1);
    return {make(spec), make(spec), make(spec), make(one), make(one)};
  }

  /// v := L L^T z, from w and v that are zero.
  [[nodiscard]] std::vector<JobSpec> factor_jobs(const Matrix<double>& l) const;
  /// v -= A z and sums -= |A| ones, for Again, and then `others`.
  [[nodiscard]] std::vector<Product> products(const std::vector<Product>& others = {}) const;
};

struct CholeskyResidual {
  double scaled = 0;
  Norm norm = 0;  ///< the 1-norm of A
};

/// The residual of `l` (Storage::lower), 0 for an empty matrix, not a number if an element of A or
/// L is none. Runs `others` (y -= A x) with the same A. What any node cannot read is thrown on all
/// (AgreedError). Collective; the same result on all nodes.
[[nodiscard]] CholeskyResidual sampled_cholesky_residual(const Matrix<double>& l, const Again& a,
                                                         const SampledCholesky& sample,
                                                         const std::vector<Product>& others = {});

}  // namespace heddle
