#pragma once

#include <span>
#include <vector>

#include "algorithms/matrix/source.hpp"
#include "node-runtime/node.hpp"

/// Norms and determinants of distributed matrices. Collective; the same result on all nodes.
namespace heddle {

/// The 1-norm (largest absolute column sum) of the symmetric `a`, of which the lower part is stored
/// (Storage::lower). What lies above the diagonal is not read. Not a number if an element is none.
[[nodiscard]] double symmetric_one_norm(Matrix<double> a);

/// The 1-norm of each column of `b`.
[[nodiscard]] std::vector<double> column_norms(Matrix<double> b);

/// The 2-norm of each column of `b`, rows from `first` on, without overflow or loss where squares
/// leave the range of double. Summed node by node: not the same bits on all grids.
[[nodiscard]] std::vector<double> column_two_norms(Matrix<double> b, GlobalRow first);

/// 1-norms of `source`'s matrix A and of A - X.
struct Comparison {
  double norm = 0;
  double difference = 0;
};
/// Reads A tile by tile. `source.prepare` has been called with wanted_of_tiles(x). What any node
/// cannot read is thrown on all (AgreedError).
[[nodiscard]] Comparison compare(Matrix<double> x, const MatrixSource& source);

/// The largest of `values`; not a number if any is none.
[[nodiscard]] double largest_of(std::span<const double> values);

/// The logarithm of the determinant of A = L L^T, from the factor `l`. Summed in the order of the
/// columns, so the bits do not depend on the grid.
[[nodiscard]] double log_determinant_of_factor(Matrix<double> l);

/// The residuals of DESIGN section 5, scaled so that rounding alone leaves them below about 10; 0
/// for an empty matrix.
/// |A - L L^T| / (n |A| eps), or |A - Q R| with the number of rows for n.
[[nodiscard]] double scaled_factor_residual(double difference, double a_norm, double n);
/// |b - A x| / (n (|A| |x| + |b|) eps), the largest of all columns.
[[nodiscard]] double scaled_solution_residual(const std::vector<double>& differences,
                                              const std::vector<double>& x_norms,
                                              const std::vector<double>& b_norms, double a_norm,
                                              double n);
/// Least squares with more rows than columns, where b - A x does not vanish but A^T (b - A x) does:
/// |A^T r| / (m |A| (|A| |x| + |b|) eps) in 2-norms, |A| that of Frobenius; the largest of all
/// columns.
[[nodiscard]] double scaled_normal_residual(const std::vector<double>& products,
                                            const std::vector<double>& x_norms,
                                            const std::vector<double>& b_norms, double a_norm,
                                            double m);

}  // namespace heddle
