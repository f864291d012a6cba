#include "kernels/cpu/tile_operations.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.hpp"
#include "kernels/cpu/blas.hpp"

namespace heddle::host {
namespace {

/// CBLAS's enumerators.
enum Cblas : int {
  column_major = 102,
  no_transpose = 111,
  transpose = 112,
  upper = 121,
  lower = 122,
  non_unit = 131,
  unit = 132,
  left = 141,
  right = 142,
};

int to_int(std::int64_t value) {
  HEDDLE_CHECK(value >= 0 && value <= std::numeric_limits<int>::max(),
               "a size or leading dimension of {} does not fit BLAS's integers", value);
  return static_cast<int>(value);
}

/// Leading dimension as BLAS takes it: at least 1, which an empty view may leave out.
int leading(const TileView& a) {
  return std::max(1, to_int(a.leading));
}

bool is_empty(const TileView& a) {
  return a.rows == 0 || a.columns == 0;
}

/// Widest triangle that OpenBLAS solves itself. Its TRSM is far slower than its GEMM on wide
/// vectors, and recursion moves the work into GEMM.
constexpr std::int64_t blas_triangle_max = 64;

void solve_right_transposed_blas(const Blas& table, const TileView& l, const TileView& b) {
  if (l.rows <= blas_triangle_max) {
    table.dtrsm(column_major, right, lower, transpose, non_unit, to_int(b.rows), to_int(b.columns),
                1.0, l.data, leading(l), b.data, leading(b));
    return;
  }
  const std::int64_t half = (l.rows / 2 + 7) / 8 * 8;
  const std::int64_t rest = l.rows - half;
  const TileView first = b.block(0, 0, b.rows, half);
  const TileView second = b.block(0, half, b.rows, rest);
  solve_right_transposed_blas(table, l.block(0, 0, half, half), first);
  update(second, first, l.block(half, 0, rest, half));
  solve_right_transposed_blas(table, l.block(half, half, rest, rest), second);
}

/// Column by column, each from its left neighbours; for blocks too small to repay recursion.
std::int64_t factor_leaf(const TileView& a) {
  const std::int64_t n = a.rows;
  for (std::int64_t j = 0; j < n; ++j) {
    double* column = &a(0, j);
    for (std::int64_t k = 0; k < j; ++k) {
      const double* before = &a(0, k);
      const double factor = before[j];
      for (std::int64_t i = j; i < n; ++i) column[i] -= before[i] * factor;
    }
    // Not "<= 0": a pivot that is not a number fails too.
    if (!(column[j] > 0)) return j + 1;
    column[j] = std::sqrt(column[j]);
    const double inverse = 1 / column[j];
    for (std::int64_t i = j + 1; i < n; ++i) column[i] *= inverse;
  }
  return 0;
}

constexpr std::int64_t leaf_max = 16;

/// Widest operands whose inner products are faster with our own kernels than with OpenBLAS's GEMM.
constexpr std::int64_t inner_max = 192;

}  // namespace

void update(const TileView& c, const TileView& a, const TileView& b) {
  HEDDLE_CHECK(c.rows == a.rows && c.columns == b.rows && a.columns == b.columns,
               "{} x {} -= {} x {} * ({} x {})^T", c.rows, c.columns, a.rows, a.columns, b.rows,
               b.columns);
  if (is_empty(c) || a.columns == 0) return;
  const Blas& table = blas();
  if (table.micro_gemm != nullptr) {
    table.micro_gemm->update(c.rows, c.columns, a.columns, a.data, a.leading, b.data, b.leading,
                             c.data, c.leading);
    return;
  }
  table.dgemm(column_major, no_transpose, transpose, to_int(c.rows), to_int(c.columns),
              to_int(a.columns), -1.0, a.data, leading(a), b.data, leading(b), 1.0, c.data,
              leading(c));
}

void update_lower(const TileView& c, const TileView& a) {
  HEDDLE_CHECK(c.rows == a.rows && c.columns <= c.rows, "{} x {} -= {} x {} times its transpose",
               c.rows, c.columns, a.rows, a.columns);
  if (is_empty(c) || a.columns == 0) return;
  const Blas& table = blas();
  if (table.micro_syrk != nullptr) {
    table.micro_syrk->update_lower(c.rows, c.columns, a.columns, a.data, a.leading, c.data,
                                   c.leading);
    return;
  }
  const std::int64_t below = c.rows - c.columns;
  const TileView top = a.block(0, 0, c.columns, a.columns);
  table.dsyrk(column_major, lower, no_transpose, to_int(c.columns), to_int(a.columns), -1.0, a.data,
              leading(a), 1.0, c.data, leading(c));
  update(c.block(c.columns, 0, below, c.columns), a.block(c.columns, 0, below, a.columns), top);
}

void solve_right_transposed(const TileView& l, const TileView& b) {
  HEDDLE_CHECK(l.rows == l.columns && b.columns == l.rows, "{} x {} over {} x {}", b.rows,
               b.columns, l.rows, l.columns);
  if (is_empty(b)) return;
  const Blas& table = blas();
  if (table.micro_trsm != nullptr) {
    table.micro_trsm->solve(b.rows, b.columns, l.data, l.leading, b.data, b.leading);
  } else {
    solve_right_transposed_blas(table, l, b);
  }
}

// Not dpotrf: its level-2 parts round differently with the alignment of their operands on some
// processors, and recursion over our own solve and update is faster.
std::int64_t factor(const TileView& a) {
  HEDDLE_CHECK(a.rows == a.columns, "{} x {}", a.rows, a.columns);
  const std::int64_t n = a.rows;
  if (n <= leaf_max) return factor_leaf(a);
  const std::int64_t half = (n / 2 + 7) / 8 * 8;
  const std::int64_t rest = n - half;
  const TileView a11 = a.block(0, 0, half, half);
  const TileView a21 = a.block(half, 0, rest, half);
  const TileView a22 = a.block(half, half, rest, rest);
  if (const std::int64_t info = factor(a11); info != 0) return info;
  solve_right_transposed(a11, a21);
  update_lower(a22, a21);
  const std::int64_t info = factor(a22);
  return info == 0 ? 0 : info + half;
}

void solve_left(const TileView& l, const TileView& x) {
  HEDDLE_CHECK(l.rows == l.columns && x.rows == l.rows, "{} x {} under {} x {}", l.rows, l.columns,
               x.rows, x.columns);
  if (is_empty(x)) return;
  blas().dtrsm(column_major, left, lower, no_transpose, non_unit, to_int(x.rows), to_int(x.columns),
               1.0, l.data, leading(l), x.data, leading(x));
}

void solve_left_transposed(const TileView& l, const TileView& x) {
  HEDDLE_CHECK(l.rows == l.columns && x.rows == l.rows, "{} x {} under {} x {}", l.rows, l.columns,
               x.rows, x.columns);
  if (is_empty(x)) return;
  blas().dtrsm(column_major, left, lower, transpose, non_unit, to_int(x.rows), to_int(x.columns),
               1.0, l.data, leading(l), x.data, leading(x));
}

void solve_left_upper(const TileView& u, const TileView& x) {
  HEDDLE_CHECK(u.rows == u.columns && x.rows == u.rows, "{} x {} under {} x {}", u.rows, u.columns,
               x.rows, x.columns);
  if (is_empty(x)) return;
  blas().dtrsm(column_major, left, upper, no_transpose, non_unit, to_int(x.rows), to_int(x.columns),
               1.0, u.data, leading(u), x.data, leading(x));
}

void multiply(double alpha, const TileView& a, const TileView& b, double beta, const TileView& c) {
  HEDDLE_CHECK(c.rows == a.rows && a.columns == b.rows && c.columns == b.columns,
               "{} x {} := {} x {} * {} x {}", c.rows, c.columns, a.rows, a.columns, b.rows,
               b.columns);
  if (beta == 0) clear(c);
  if (is_empty(c) || a.columns == 0) return;
  blas().dgemm(column_major, no_transpose, no_transpose, to_int(c.rows), to_int(c.columns),
               to_int(a.columns), alpha, a.data, leading(a), b.data, leading(b),
               beta == 0 ? 1.0 : beta, c.data, leading(c));
}

void multiply_transposed(double alpha, const TileView& a, const TileView& b, double beta,
                         const TileView& c) {
  HEDDLE_CHECK(c.rows == a.columns && a.rows == b.rows && c.columns == b.columns,
               "{} x {} := ({} x {})^T * {} x {}", c.rows, c.columns, a.rows, a.columns, b.rows,
               b.columns);
  if (beta == 0) clear(c);
  if (is_empty(c) || a.rows == 0) return;
  const Blas& table = blas();
  const bool scales = beta != 0 && beta != 1;
  if (table.micro != nullptr && !scales && a.columns <= inner_max && b.columns <= inner_max) {
    table.micro->inner(c.rows, c.columns, a.rows, alpha, a.data, a.leading, b.data, b.leading,
                       c.data, c.leading);
    return;
  }
  table.dgemm(column_major, transpose, no_transpose, to_int(c.rows), to_int(c.columns),
              to_int(a.rows), alpha, a.data, leading(a), b.data, leading(b), beta == 0 ? 1.0 : beta,
              c.data, leading(c));
}

void multiply_symmetric(const TileView& a, const TileView& b, const TileView& c) {
  HEDDLE_CHECK(
      a.rows == a.columns && c.rows == a.rows && b.rows == a.rows && c.columns == b.columns,
      "{} x {} += {} x {} * {} x {}", c.rows, c.columns, a.rows, a.columns, b.rows, b.columns);
  if (is_empty(c)) return;
  blas().dsymm(column_major, left, lower, to_int(c.rows), to_int(c.columns), 1.0, a.data,
               leading(a), b.data, leading(b), 1.0, c.data, leading(c));
}

namespace {

void trmm(double alpha, const TileView& a, Triangle shape, int side, const TileView& b) {
  HEDDLE_CHECK(a.rows == a.columns && a.rows == (side == left ? b.rows : b.columns),
               "a triangle of {} x {} and {} x {}", a.rows, a.columns, b.rows, b.columns);
  if (is_empty(b)) return;
  blas().dtrmm(column_major, side, shape.part == Triangle::Part::lower ? lower : upper,
               shape.transposed ? transpose : no_transpose, shape.unit ? unit : non_unit,
               to_int(b.rows), to_int(b.columns), alpha, a.data, leading(a), b.data, leading(b));
}

}  // namespace

void multiply_by_triangle(const TileView& b, const TileView& a, Triangle shape) {
  trmm(1.0, a, shape, right, b);
}

void multiply_triangle(double alpha, const TileView& a, Triangle shape, const TileView& b) {
  trmm(alpha, a, shape, left, b);
}

void invert_diagonal_blocks(const TileView& l, const TileView& inverses) {
  clear(inverses);
  for (std::int64_t begin = 0; begin < l.columns; begin += inverses.rows) {
    const std::int64_t count = std::min(inverses.rows, l.columns - begin);
    const TileView inverse = inverses.block(0, begin, count, count);
    for (std::int64_t i = 0; i < count; ++i) inverse(i, i) = 1;
    solve_left(l.block(begin, begin, count, count), inverse);
  }
}

void copy(const TileView& from, const TileView& to) {
  HEDDLE_CHECK(from.rows == to.rows && from.columns == to.columns, "{} x {} := {} x {}", to.rows,
               to.columns, from.rows, from.columns);
  for (std::int64_t j = 0; j < from.columns; ++j) {
    std::copy_n(from.data + j * from.leading, from.rows, to.data + j * to.leading);
  }
}

void clear(const TileView& c) {
  for (std::int64_t j = 0; j < c.columns; ++j) {
    std::fill_n(c.data + j * c.leading, c.rows, 0.0);
  }
}

}  // namespace heddle::host
