#pragma once

#include <cstdint>
#include <optional>

#include "algorithms/qr/qr.hpp"

/// What a QR factorization says about its matrix, and how good it is. Collective; the same result
/// on all nodes.
namespace heddle {

/// A column of A that is, to rounding, a combination of the columns before it.
struct DependentColumn {
  std::int64_t index = 0;  ///< from 1
  double diagonal = 0;     ///< |R(index, index)|
  double norm = 0;         ///< 2-norm of the column, of A as of R
};

/// The first column whose diagonal element of R is at most m eps times the column's own norm: what
/// is left of a column that lies in the span of those before it is of that size. Columns may differ
/// in scale as they like; zero columns are dependent.
[[nodiscard]] std::optional<DependentColumn> first_dependent_column(const QrMatrix& q);

/// What loss_of_orthogonality() holds beside Q: tile column `c` of Q^T Q.
[[nodiscard]] MatrixSpec columns_of_product_spec(const Matrix<double>& q, TileColumn c);

/// The 1-norm of I - Q^T Q for a matrix Q, whose rows are cut into tall tiles. Runs a job for each
/// tile column.
[[nodiscard]] double loss_of_orthogonality(const Matrix<double>& q);

}  // namespace heddle
