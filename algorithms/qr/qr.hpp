#pragma once

#include <cstdint>

#include "node-runtime/matrix.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {

/// A matrix A (m x n, m >= n) with room for its QR factorization: Householder reflectors V in the
/// place of A, their triangular factors T, and R.
///
/// A is cut into virtual tiles of `virtual_tiles` square ones, each stored as one tall tile; R's
/// tile rows stay with the tall tile that they come from.
struct QrMatrix {
  Matrix<double> a;  ///< A; after the factorization V, and what R was on and above the diagonal
  Matrix<double> t;  ///< T of each tall tile's panel: `inner` rows for each of a's tile rows
  Matrix<double> r;  ///< R: n x n in square tiles, those on and above the diagonal
  Matrix<double> moving;  ///< temporary: the part of R that is on its way down a panel
  std::int32_t virtual_tiles = 1;
  std::int32_t inner = 1;
};

/// How a QR matrix is cut: `tile`, `strip` and `small` as in TileLayout for square tiles.
struct QrLayout {
  std::int64_t tile = 1;
  std::int64_t strip = 0;
  std::int64_t small = 0;
  std::int32_t virtual_tiles = 1;
  std::int32_t inner = 1;  ///< columns of a block of reflectors, 1 .. tile
};

/// What the matrices of a QrMatrix look like.
struct QrSpecs {
  MatrixSpec a;
  MatrixSpec t;
  MatrixSpec r;
  MatrixSpec moving;
};
[[nodiscard]] QrSpecs qr_specs(std::int64_t rows, std::int64_t columns, const QrLayout& layout,
                               const Distribution& distribution);

/// Makes the matrices; R's are zero, A's content is undefined. Throws Error(usage) when the memory
/// does not suffice. Same order on all nodes.
[[nodiscard]] QrMatrix qr_matrix(Node& node, std::int64_t rows, std::int64_t columns,
                                 const QrLayout& layout, const Distribution& distribution);

/// Factorizes A = Q R in place: the heterogeneous tile QR of 001 sections 3 and 7.2.2, flat tree
/// over virtual tiles.
[[nodiscard]] JobSpec qr(const QrMatrix& q);

/// Columns that Q or Q^T is applied to: m x k in the tall tiles of A, and its first n rows in the
/// tiles of R, which is where they are taken from or left.
struct QrSides {
  Matrix<double> x;       ///< m x k
  Matrix<double> top;     ///< n x k
  Matrix<double> moving;  ///< temporary
};
struct QrSidesSpecs {
  MatrixSpec x;
  MatrixSpec top;
  MatrixSpec moving;
};
[[nodiscard]] QrSidesSpecs qr_sides_specs(const QrMatrix& q, std::int64_t columns);

/// Makes the matrices; their content is undefined. Same order on all nodes.
[[nodiscard]] QrSides qr_sides(const QrMatrix& q, std::int64_t columns);

/// x := Q^T x with the factored `q`. The first n rows of the result are in `top`, the others in x,
/// whose rows above them are undefined.
[[nodiscard]] JobSpec apply_q_transposed(const QrMatrix& q, const QrSides& x);

/// x := Q x. The first n rows of the operand are taken from `top`, the others from x, whose rows
/// above them are not read.
[[nodiscard]] JobSpec apply_q(const QrMatrix& q, const QrSides& x);

/// 2 n^2 (m - n / 3): the standard count.
[[nodiscard]] inline double qr_flops(double m, double n) {
  return 2 * n * n * (m - n / 3);
}

}  // namespace heddle
