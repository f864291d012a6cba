#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "algorithms/qr/qr.hpp"
#include "node-runtime/matrix.hpp"

namespace heddle {

/// In which order the tall tiles of a panel become one R.
enum class QrTree : std::uint8_t {
  flat,      ///< one after the other, from the top down
  binomial,  ///< each by itself, then in pairs: a path as long as the logarithm of their number
};

/// A matrix A (m x n, m >= n) with room for its QR factorization: Householder reflectors V in the
/// place of A, their triangular factors T, and R.
///
/// A is cut into virtual tiles of `virtual_tiles` square ones, each stored as one tall tile; R's
/// tile rows stay with the tall tile that they come from.
struct QrMatrix {
  Matrix<double> a;  ///< A; after the factorization V, and what R was on and above the diagonal
  Matrix<double> t;  ///< T of each tall tile's panel: `inner` rows for each of a's tile rows
  Matrix<double> r;  ///< R: n x n in square tiles, those on and above the diagonal
  Matrix<double> traveling_r;  ///< temporary: the part of R that is on its way down a panel
  std::int32_t virtual_tiles = 1;
  std::int32_t inner = 1;
  QrTree tree = QrTree::flat;
  /// Binomial tree: the reflectors of the pairs (upper triangles in `tile` rows for each of a's
  /// tile rows) and their T.
  std::optional<Matrix<double>> pair_v = std::nullopt;
  std::optional<Matrix<double>> pair_t = std::nullopt;
};

/// How a QR matrix is cut: `tile`, `strip`, `small` and `fine` as in TileLayout for square tiles.
struct QrLayout {
  std::int64_t tile = 1;
  std::int64_t strip = 0;
  std::int64_t small = 0;
  std::int64_t fine = 0;  ///< as in TileLayout
  std::int32_t virtual_tiles = 1;
  std::int32_t inner = 1;  ///< columns of a block of reflectors, 1 .. tile
  QrTree tree = QrTree::flat;
};

/// What the matrices of a QrMatrix look like.
struct QrSpecs {
  MatrixSpec a;
  MatrixSpec t;
  MatrixSpec r;
  MatrixSpec traveling_r;
  MatrixSpec pair_v;  ///< binomial tree only, and pair_t
  MatrixSpec pair_t;
};
[[nodiscard]] QrSpecs qr_specs(std::int64_t rows, std::int64_t columns, const QrLayout& layout,
                               const Distribution& distribution);

/// The handles, each made by `make` from its spec: for matrices that no node makes.
template <class Make>
[[nodiscard]] QrMatrix qr_matrix_of(const QrSpecs& specs, const QrLayout& layout,
                                    const Make& make) {
  QrMatrix q{.a = make(specs.a),
             .t = make(specs.t),
             .r = make(specs.r),
             .traveling_r = make(specs.traveling_r),
             .virtual_tiles = layout.virtual_tiles,
             .inner = layout.inner,
             .tree = layout.tree};
  if (layout.tree == QrTree::binomial) {
    q.pair_v = make(specs.pair_v);
    q.pair_t = make(specs.pair_t);
  }
  return q;
}

/// Makes the matrices; R's are zero, A's content is undefined. Throws Error(usage), on all nodes,
/// when the memory of one does not suffice. Collective.
[[nodiscard]] QrMatrix qr_matrix(Node& node, std::int64_t rows, std::int64_t columns,
                                 const QrLayout& layout, const Distribution& distribution);

/// Factorizes A = Q R in place: the heterogeneous tile QR of 001 sections 3 and 7.2.2 over virtual
/// tiles. The bits follow from the layout, tree included, and not from the grid.
[[nodiscard]] JobSpec qr(const QrMatrix& q);

struct QrOperandSpecs {
  MatrixSpec x;
  MatrixSpec top;
  MatrixSpec traveling;
  std::vector<MatrixSpec> elsewhere = {};
};
/// What QrOperand::elsewhere of an x looks like, which is on the host or dealt out to as many
/// devices as A.
[[nodiscard]] std::vector<MatrixSpec> specs_elsewhere(const QrMatrix& q, const MatrixSpec& x);

[[nodiscard]] QrOperandSpecs qr_operand_specs(const QrMatrix& q, std::int64_t columns);

template <class Make>
[[nodiscard]] QrOperand qr_operand_of(const QrOperandSpecs& specs, const Make& make) {
  QrOperand x{make(specs.x), make(specs.top), make(specs.traveling)};
  for (const MatrixSpec& spec : specs.elsewhere) x.elsewhere.push_back(make(spec));
  return x;
}

/// Makes the matrices; their content is undefined. Same order on all nodes.
[[nodiscard]] QrOperand qr_operand(const QrMatrix& q, std::int64_t columns);

/// The same for n columns that are cut and distributed as A itself: for Q as a matrix. `top` has
/// only tiles on and above the diagonal.
[[nodiscard]] QrOperandSpecs explicit_q_operand_specs(const QrMatrix& q);
[[nodiscard]] QrOperand explicit_q_operand(const QrMatrix& q);

/// x := Q^T x with the factored `q`. The first n rows of the result are in `top`, the others in x,
/// whose rows above them are undefined.
[[nodiscard]] JobSpec apply_q_transposed(const QrMatrix& q, const QrOperand& x);

/// x := Q x. The first n rows of the operand are taken from `top`, the others from x, whose rows
/// above them are not read.
[[nodiscard]] JobSpec apply_q(const QrMatrix& q, const QrOperand& x);

/// x := Q [top; 0] with an upper triangle `top`, for an operand of explicit_q_operand() with an x
/// that is zero: with the identity the thin Q, with R what A was. As much work as the
/// factorization.
[[nodiscard]] JobSpec apply_q_to_triangle(const QrMatrix& q, const QrOperand& x);

}  // namespace heddle
