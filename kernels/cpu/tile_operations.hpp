#pragma once

#include <cstdint>

#include "kernels/kernel.hpp"

/// The matrix operations that the host kernels are made of, on views, through `blas()`: heddle's
/// own tile kernels where they are on, OpenBLAS otherwise. Any size may be 0; shapes are checked.
/// On the calling thread.
namespace heddle::host {

/// c (m x n) -= a (m x k) * b^T, b (n x k).
void update(const TileView& c, const TileView& a, const TileView& b);

/// c (m x n, m >= n) -= a (m x k) * (first n rows of a)^T, on and below the diagonal of c.
void update_lower(const TileView& c, const TileView& a);

/// b (m x n) := b * inv(l)^T with the lower triangle of l (n x n).
void solve_right_transposed(const TileView& l, const TileView& b);

/// a (n x n) := its Cholesky factor, lower part only. Returns LAPACK's info.
[[nodiscard]] std::int64_t factor(const TileView& a);

/// x (n x k) := inv(l) * x, or inv(l)^T * x, with the lower triangle of l (n x n).
void solve_left(const TileView& l, const TileView& x);
void solve_left_transposed(const TileView& l, const TileView& x);

/// x := inv(u) * x with the upper triangle of u (n x n).
void solve_left_upper(const TileView& u, const TileView& x);

/// c (m x n) := alpha * a * b + beta * c, a (m x k), b (k x n).
void multiply(double alpha, const TileView& a, const TileView& b, double beta, const TileView& c);

/// c (m x n) := alpha * a^T * b + beta * c, a (k x m), b (k x n).
void multiply_transposed(double alpha, const TileView& a, const TileView& b, double beta,
                         const TileView& c);

/// c (m x n) += a * b with a (m x m) symmetric, lower part stored.
void multiply_symmetric(const TileView& a, const TileView& b, const TileView& c);

/// A triangle as an operand: which part of the square view, and what its diagonal is.
struct Triangle {
  enum class Part : std::uint8_t { lower, upper };
  Part part = Part::upper;
  bool unit = false;        ///< ones on the diagonal, which are not read
  bool transposed = false;  ///< multiply with the transpose
};

/// b (m x n) := b * op(a), a (n x n) triangular.
void multiply_by_triangle(const TileView& b, const TileView& a, Triangle shape);

/// b (m x n) := alpha * op(a) * b, a (m x m) triangular.
void multiply_triangle(double alpha, const TileView& a, Triangle shape, const TileView& b);

/// inverses (inner x n) := the inverse blocks of the lower triangle of l (kernels/kernels.hpp).
void invert_diagonal_blocks(const TileView& l, const TileView& inverses);

/// to := from, shapes equal.
void copy(const TileView& from, const TileView& to);

/// Every element := 0.
void clear(const TileView& c);

}  // namespace heddle::host
