#pragma once

#include <optional>
#include <span>
#include <vector>

#include "algorithms/matrix/checks.hpp"
#include "algorithms/matrix/source.hpp"
#include "algorithms/reductions/measures.hpp"

/// What `heddle solve` verifies its results by. Collective; the same result on all nodes.
namespace heddle {

/// For each column k of `b` the sum of weights[i] |b(i, k)| over its rows i: with the norms of A's
/// columns for weights, what |A| |x| is however differently these columns are scaled.
[[nodiscard]] std::vector<Norm> weighted_norms(const Matrix<double>& b,
                                               const std::vector<Norm>& weights);
/// The largest |b(i, k)| / weights[i] of each column k.
[[nodiscard]] std::vector<Norm> largest_quotients(const Matrix<double>& b,
                                                  const std::vector<Norm>& weights);

/// The first element of `matrix` in column-major order that is NaN or infinite.
[[nodiscard]] std::optional<NonFinite> first_non_finite(const Matrix<double>& matrix);

/// 1-norms of `source`'s matrix A, of its columns, and of A - X.
struct Comparison {
  Norm norm = 0;
  std::vector<Norm> column_norms;
  Norm difference = 0;
};
/// Reads A tile by tile. `source.prepare` has been called with wanted_of(x, source). What any node
/// cannot read is thrown on all (AgreedError).
[[nodiscard]] Comparison compare(const Matrix<double>& x, const MatrixSource& source);

/// The largest of `values`; not a number if any is none.
[[nodiscard]] Norm largest_of(std::span<const Norm> values);

/// Least squares with more rows than columns, where b - A x does not vanish but A^T (b - A x) does:
/// |A^T r| / (m |A| (|A| |x| + |b|) eps) in 2-norms, |A| that of Frobenius; the largest of all
/// columns.
[[nodiscard]] double scaled_normal_residual(const std::vector<Norm>& products,
                                            const std::vector<Norm>& x_norms,
                                            const std::vector<Norm>& b_norms, Norm a_norm,
                                            double m);

}  // namespace heddle
