#pragma once

#include <vector>

#include "node-runtime/node.hpp"

/// Norms and determinants of distributed matrices. Collective; the same result on all nodes.
namespace heddle {

/// The 1-norm (largest absolute column sum) of the symmetric `a`, of which the lower part is stored
/// (Storage::lower). What lies above the diagonal is not read. Not a number if an element is none.
[[nodiscard]] double symmetric_one_norm(Matrix<double> a);

/// The 1-norm of each column of `b`.
[[nodiscard]] std::vector<double> column_norms(Matrix<double> b);

/// The logarithm of the determinant of A = L L^T, from the factor `l`. Summed in the order of the
/// columns, so the bits do not depend on the grid.
[[nodiscard]] double log_determinant_of_factor(Matrix<double> l);

/// The residuals of DESIGN section 5, scaled so that rounding alone leaves them below about 10; 0
/// for an empty matrix.
/// |A - L L^T| / (n |A| eps)
[[nodiscard]] double scaled_factor_residual(double difference, double a_norm, double n);
/// |b - A x| / (n (|A| |x| + |b|) eps), the largest of all columns.
[[nodiscard]] double scaled_solution_residual(const std::vector<double>& differences,
                                              const std::vector<double>& x_norms,
                                              const std::vector<double>& b_norms, double a_norm,
                                              double n);

}  // namespace heddle
