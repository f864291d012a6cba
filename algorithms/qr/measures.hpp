#pragma once

#include <cstdint>
#include <optional>

#include "algorithms/qr/qr_matrix.hpp"

/// What a QR factorization says about its matrix, and how good it is. Collective; the same result
/// on all nodes.
namespace heddle {

/// As QrFactors::first_dependent_column.
[[nodiscard]] std::optional<DependentColumn> first_dependent_column(const QrMatrix& q);

/// What loss_of_orthogonality() holds beside Q: tile column `c` of Q^T Q.
[[nodiscard]] MatrixSpec columns_of_product_spec(const Matrix<double>& q, TileColumn c);

/// The 1-norm of I - Q^T Q for a matrix Q, whose rows are cut into tall tiles. Runs a job for each
/// tile column.
[[nodiscard]] double loss_of_orthogonality(const Matrix<double>& q);

}  // namespace heddle
