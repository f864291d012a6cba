#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "node-runtime/matrix.hpp"

namespace heddle {

struct QrMatrix;

/// Columns that Q or Q^T is applied to: m x k in the tall tiles of A, and its first n rows in the
/// tiles of R, which is where they are taken from or left.
struct QrOperand {
  Matrix<double> x;                            ///< m x k
  Matrix<double> top;                          ///< n x k
  Matrix<double> traveling;                    ///< temporary: rows on their way
  std::vector<Matrix<double>> elsewhere = {};  ///< room for x at the other places of A's tiles
};

/// A column of A that is, to rounding, a combination of the columns before it.
struct DependentColumn {
  std::int64_t index = 0;  ///< from 1
  double diagonal = 0;     ///< |R(index, index)|
  double norm = 0;         ///< 2-norm of the column, of A as of R
};

/// A = Q R of an m x n matrix A, m >= n: A's memory, which takes the Householder vectors, and with
/// it the triangular factors, R and what is on its way. Made by qr(). A handle: copies name the
/// same.
///
///   heddle::QrFactors q = heddle::qr(node, a);
///   heddle::QrOperand b = q.operand(1);              // fill b.x
///   heddle::Matrix<double> x = heddle::right_hand_sides(q.r(), 1);
///   node.submit(q.factorize());
///   node.submit(q.apply_q_transposed(b));
///   node.submit(heddle::solve_upper(q.r(), x, b.top)).wait();  // least squares: |b - A x|
class QrFactors {
 public:
  /// For heddle's own use: qr() makes them.
  explicit QrFactors(std::shared_ptr<const QrMatrix> matrices);

  /// A; after the factorization Householder vectors, which only these functions can read.
  [[nodiscard]] const Matrix<double>& a() const;
  /// n x n in square tiles, those on and above the diagonal; zero before the factorization.
  [[nodiscard]] const Matrix<double>& r() const;

  /// Factorizes A. The heterogeneous tile QR of 001 sections 3 and 7.2.2. The bits follow from how
  /// A is cut and from `layout.inner` and `layout.tree` of the configuration, not from the grid.
  [[nodiscard]] JobSpec factorize() const;

  /// An operand of k columns, its content undefined; the other way round, of `x`, which is m x k,
  /// cut and dealt out in rows as A. Same order on all nodes.
  [[nodiscard]] QrOperand operand(std::int64_t columns) const;
  [[nodiscard]] QrOperand operand(const Matrix<double>& x) const;

  /// x := Q^T x. The first n rows of the result are in `top`, the others in x, whose rows above
  /// them are undefined.
  [[nodiscard]] JobSpec apply_q_transposed(const QrOperand& x) const;
  /// x := Q x. The first n rows of the operand are taken from `top`, the others from x, whose rows
  /// above them are not read.
  [[nodiscard]] JobSpec apply_q(const QrOperand& x) const;

  /// The first column whose diagonal element of R is at most m eps times the column's own norm:
  /// what is left of a column that lies in the span of those before it is of that size. Columns may
  /// differ in scale as they like; zero columns are dependent. Collective.
  [[nodiscard]] std::optional<DependentColumn> first_dependent_column() const;

 private:
  std::shared_ptr<const QrMatrix> matrices_;
};

/// What an m x n matrix looks like for its QR factorization, by the node's configuration, measured
/// choices where that says `auto`: tall matrices are dealt out by rows.
[[nodiscard]] MatrixSpec qr_spec(const Node& node, std::int64_t rows, std::int64_t columns);

/// Makes room for the factorization of `a` (Storage::full, at least as many rows as columns, tiles
/// whose rows are a multiple of their columns): as qr_spec() says, or cut otherwise. Throws
/// Error(usage), on all nodes, for another matrix and when the memory of one does not suffice.
/// Collective.
[[nodiscard]] QrFactors qr(Node& node, const Matrix<double>& a);

/// 2 n^2 (m - n / 3): the standard count.
[[nodiscard]] inline double qr_flops(double m, double n) {
  return 2 * n * n * (m - n / 3);
}

}  // namespace heddle
