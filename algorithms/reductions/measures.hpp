#pragma once

#include <vector>

#include "node-runtime/matrix.hpp"

/// Norms and determinants of distributed matrices. Collective; the same result on all nodes.
namespace heddle {

/// A norm, or a product of some. Those of matrices of doubles may be larger than any double, and a
/// residual over a norm that is infinite would be 0, whatever the solution is worth.
using Norm = long double;

/// The 1-norm (largest absolute column sum) of the symmetric `a`, of which the lower part is stored
/// (Storage::lower). What lies above the diagonal is not read. Not a number if an element is none.
[[nodiscard]] Norm symmetric_one_norm(const Matrix<double>& a);

/// The 1-norm of each column of `b`.
[[nodiscard]] std::vector<Norm> column_norms(const Matrix<double>& b);

/// The 2-norm of each column of `b`, rows from `first` on, without overflow or loss where squares
/// leave the range of double. Summed node by node: not the same bits on all grids.
[[nodiscard]] std::vector<Norm> column_two_norms(const Matrix<double>& b, GlobalRow first);

/// The diagonal elements of `a`.
[[nodiscard]] std::vector<double> diagonal(const Matrix<double>& a);

/// The logarithm of the determinant of A = L L^T, from the factor `l`. Summed in the order of the
/// columns, so the bits do not depend on the grid.
[[nodiscard]] double log_determinant_of_factor(const Matrix<double>& l);

/// Residuals, scaled so that rounding errors leave them below about 10; 0 for an empty matrix.
/// |A - L L^T| / (n |A| eps), or |A - Q R| with the number of rows for n.
[[nodiscard]] double scaled_factor_residual(Norm difference, Norm a_norm, double n);
/// |b - A x| / (n (|A| |x| + |b|) eps), the largest of all columns.
[[nodiscard]] double scaled_solution_residual(const std::vector<Norm>& differences,
                                              const std::vector<Norm>& x_norms,
                                              const std::vector<Norm>& b_norms, Norm a_norm,
                                              double n);

}  // namespace heddle
