#pragma once

#include <optional>
#include <vector>

#include "algorithms/checks/again.hpp"
#include "algorithms/checks/sample.hpp"
#include "algorithms/qr/qr_matrix.hpp"
#include "algorithms/solve/solve.hpp"

namespace heddle {

/// y -= A x for each of `products`, then y -= A^T x for each of `back`.
struct QrSideProducts {
  std::vector<Product> products;
  std::vector<Product> back;
};

/// The check of A = Q R by max |A z - Q R z| / (m |A| eps) and max |z - Q^T Q z| / (m eps) over
/// three vectors z, Q being the thin one: the matrices that it needs.
struct SampledQr {
  Matrix<double> z;
  Matrix<double> minus_z;
  QrOperand product;                      ///< top = R z; x = Q R z - A z
  QrOperand basis;                        ///< top = z, then Q^T Q z; x = Q z
  Matrix<double> ones;                    ///< one column of as many rows as A
  Matrix<double> sums;                    ///< -|A|^T times ones
  std::optional<Matrix<double>> squares;  ///< minus the sums of squares of the columns of A

  /// Each matrix is made by `make` from its spec; `squares` only if the 2-norms of A's columns are
  /// wanted.
  template <class Make>
  [[nodiscard]] static SampledQr made_by(const QrMatrix& q, bool has_two_norms, const Make& make) {
    const MatrixSpec spec = right_hand_sides_spec(q.r, sample_count);
    const MatrixSpec one = right_hand_sides_spec(q.r, 1);
    const QrOperandSpecs operand = qr_operand_specs(q, sample_count);
    return {make(spec),
            make(spec),
            qr_operand_of(operand, make),
            qr_operand_of(operand, make),
            make(qr_operand_specs(q, 1).x),
            make(one),
            has_two_norms ? std::optional(make(one)) : std::nullopt};
  }

  /// product := Q R z, from a top and an x that are zero.
  [[nodiscard]] std::vector<JobSpec> product_jobs(const QrMatrix& q) const;
  /// basis: from z and zero to Q^T Q z.
  [[nodiscard]] std::vector<JobSpec> basis_jobs(const QrMatrix& q) const;
  /// The job of product.x -= A z and of the norms, and of `others`.
  [[nodiscard]] JobSpec job(const Again& a, const QrSideProducts& others,
                            const SetPart& set = {}) const;
};

struct QrResiduals {
  double factorization = 0;
  double orthogonality = 0;
  std::vector<Norm> one_norms;  ///< of the columns of A
  std::vector<Norm> two_norms;  ///< if SampledQr has squares
};

/// The scaled residuals of the factored `q`, 0 without columns. Runs `others` with the same A. What
/// any node cannot read is thrown on all (AgreedError). Collective; the same result on all nodes.
[[nodiscard]] QrResiduals sampled_qr_residuals(const QrMatrix& q, const Again& a,
                                               const SampledQr& sample,
                                               const QrSideProducts& others = {});

}  // namespace heddle
