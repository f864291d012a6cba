#pragma once

#include <vector>

#include "algorithms/checks/again.hpp"
#include "algorithms/checks/sample.hpp"
#include "algorithms/qr/qr_matrix.hpp"
#include "algorithms/solve/solve.hpp"

namespace heddle {

/// The check of A = Q R by max |A z - Q R z| / (m |A| eps) and max |z - Q^T Q z| / (m eps) over
/// three vectors z, Q being the thin one: the matrices that it needs.
struct SampledQr {
  Matrix<double> z;
  Matrix<double> minus_z;
  QrOperand product;  ///< top = R z; x = Q R z - A z
  QrOperand basis;    ///< top = z, then Q^T Q z; x = Q z

  /// Each matrix is made by `make` from its spec.
  template <class Make>
  [[nodiscard]] static SampledQr made_by(const QrMatrix& q, const Make& make) {
    const MatrixSpec spec = right_hand_sides_spec(q.r, sample_count);
    const QrOperandSpecs operand = qr_operand_specs(q, sample_count);
    return {make(spec), make(spec), qr_operand_of(operand, make), qr_operand_of(operand, make)};
  }

  /// product := Q R z, from a top and an x that are zero.
  [[nodiscard]] std::vector<JobSpec> product_jobs(const QrMatrix& q) const;
  /// basis: from z and zero to Q^T Q z.
  [[nodiscard]] std::vector<JobSpec> basis_jobs(const QrMatrix& q) const;
  /// product.x -= A z, for Again.
  [[nodiscard]] Product again() const { return {product.x, z}; }
};

struct QrResiduals {
  double factorization = 0;
  double orthogonality = 0;
};

/// The scaled residuals of the factored `q`, 0 without columns; `norm` is the 1-norm of A. Runs
/// `others` (y -= A x), then `back` (y -= A^T x) with the same A. What any node cannot read is
/// thrown on all (AgreedError). Collective; the same result on all nodes.
[[nodiscard]] QrResiduals sampled_qr_residuals(const QrMatrix& q, const Again& a, Norm norm,
                                               const SampledQr& sample,
                                               const std::vector<Product>& others = {},
                                               const std::vector<Product>& back = {});

}  // namespace heddle
