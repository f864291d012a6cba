#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/matrix/checks.hpp"
#include "algorithms/matrix/source.hpp"
#include "node-runtime/node.hpp"

/// Norms and determinants of distributed matrices. Collective; the same result on all nodes.
namespace heddle {

/// A norm, or a product of some. Those of matrices of doubles may be larger than any double, and a
/// residual over a norm that is infinite would be 0, whatever the solution is worth.
using Norm = long double;
static_assert(std::numeric_limits<Norm>::max_exponent >
                  4 * std::numeric_limits<double>::max_exponent,
              "products of norms of doubles do not fit into long double here");

/// The 1-norm (largest absolute column sum) of the symmetric `a`, of which the lower part is stored
/// (Storage::lower). What lies above the diagonal is not read. Not a number if an element is none.
[[nodiscard]] Norm symmetric_one_norm(Matrix<double> a);

/// The 1-norm of each column of `b`.
[[nodiscard]] std::vector<Norm> column_norms(Matrix<double> b);

/// The 2-norm of each column of `b`, rows from `first` on, without overflow or loss where squares
/// leave the range of double. Summed node by node: not the same bits on all grids.
[[nodiscard]] std::vector<Norm> column_two_norms(Matrix<double> b, GlobalRow first);

/// For each column k of `b` the sum of weights[i] |b(i, k)| over its rows i: with the norms of A's
/// columns for weights, what |A| |x| is however differently these columns are scaled.
[[nodiscard]] std::vector<Norm> weighted_norms(Matrix<double> b, const std::vector<Norm>& weights);
/// The largest |b(i, k)| / weights[i] of each column k.
[[nodiscard]] std::vector<Norm> largest_quotients(Matrix<double> b,
                                                  const std::vector<Norm>& weights);

/// The first element of `matrix` in column-major order that is NaN or infinite.
[[nodiscard]] std::optional<NonFinite> first_non_finite(Matrix<double> matrix);

/// 1-norms of `source`'s matrix A, of its columns, and of A - X.
struct Comparison {
  Norm norm = 0;
  std::vector<Norm> column_norms;
  Norm difference = 0;
};
/// Reads A tile by tile. `source.prepare` has been called with wanted_of_tiles(x). What any node
/// cannot read is thrown on all (AgreedError).
[[nodiscard]] Comparison compare(Matrix<double> x, const MatrixSource& source);

/// The largest of `values`; not a number if any is none.
[[nodiscard]] Norm largest_of(std::span<const Norm> values);

/// The logarithm of the determinant of A = L L^T, from the factor `l`. Summed in the order of the
/// columns, so the bits do not depend on the grid.
[[nodiscard]] double log_determinant_of_factor(Matrix<double> l);

/// The residuals of DESIGN section 5, scaled so that rounding errors leave them below about 10; 0
/// for an empty matrix. No overflow makes them 0.
/// |A - L L^T| / (n |A| eps), or |A - Q R| with the number of rows for n.
[[nodiscard]] double scaled_factor_residual(Norm difference, Norm a_norm, double n);
/// |b - A x| / (n (|A| |x| + |b|) eps), the largest of all columns.
[[nodiscard]] double scaled_solution_residual(const std::vector<Norm>& differences,
                                              const std::vector<Norm>& x_norms,
                                              const std::vector<Norm>& b_norms, Norm a_norm,
                                              double n);
/// Least squares with more rows than columns, where b - A x does not vanish but A^T (b - A x) does:
/// |A^T r| / (m |A| (|A| |x| + |b|) eps) in 2-norms, |A| that of Frobenius; the largest of all
/// columns.
[[nodiscard]] double scaled_normal_residual(const std::vector<Norm>& products,
                                            const std::vector<Norm>& x_norms,
                                            const std::vector<Norm>& b_norms, Norm a_norm,
                                            double m);

}  // namespace heddle
