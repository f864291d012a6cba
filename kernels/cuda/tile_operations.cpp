#include "kernels/cuda/tile_operations.hpp"

#include <algorithm>
#include <limits>

#include "base/assert.hpp"
#include "kernels/cuda/gemm.hpp"
#include "kernels/cuda/libraries.hpp"
#include "kernels/cuda/own_kernels.hpp"

namespace heddle::kernel::cuda {
namespace {

void check_equal_shapes(const TileView& a, const TileView& b) {
  HEDDLE_CHECK(a.rows == b.rows && a.columns == b.columns, "{} x {} and {} x {}", a.rows, a.columns,
               b.rows, b.columns);
}

/// The square part of update_lower.
void update_lower_square(Context& context, const TileView& c, const TileView& a) {
  constexpr double minus_one = -1;
  constexpr double one = 1;
  check(cublas().dsyrk(context.blas(), CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, to_int(c.columns),
                       to_int(a.columns), &minus_one, a.data, leading_dimension(a), &one, c.data,
                       leading_dimension(c)),
        "cublasDsyrk");
}

}  // namespace

int to_int(std::int64_t value) {
  HEDDLE_CHECK(value >= 0 && value <= std::numeric_limits<int>::max(),
               "a size or leading dimension of {} does not fit cuBLAS's integers", value);
  return static_cast<int>(value);
}

int leading_dimension(const TileView& a) {
  return std::max(1, to_int(a.leading));
}

void multiply(Context& context, double alpha, const TileView& a, cublasOperation_t transa,
              const TileView& b, cublasOperation_t transb, double beta, const TileView& c) {
  const bool a_plain = transa == CUBLAS_OP_N;
  const bool b_plain = transb == CUBLAS_OP_N;
  const std::int64_t depth = a_plain ? a.columns : a.rows;
  HEDDLE_CHECK((a_plain ? a.rows : a.columns) == c.rows &&
                   (b_plain ? b.columns : b.rows) == c.columns &&
                   (b_plain ? b.rows : b.columns) == depth,
               "{} x {} += op({} x {}) * op({} x {})", c.rows, c.columns, a.rows, a.columns, b.rows,
               b.columns);
  gemm(context, transa, transb, c.rows, c.columns, depth, alpha, a.data, a.leading, b.data,
       b.leading, beta, c.data, c.leading);
}

void update_lower(Context& context, const TileView& c, const TileView& a) {
  HEDDLE_CHECK(c.rows == a.rows && c.columns <= c.rows, "{} x {} -= {} x {} times its transpose",
               c.rows, c.columns, a.rows, a.columns);
  if (c.columns == 0 || a.columns == 0) return;
  const TileView top = a.block(0, 0, c.columns, a.columns);
  update_lower_square(context, c.block(0, 0, c.columns, c.columns), top);
  const std::int64_t below = c.rows - c.columns;
  multiply(context, -1, a.block(c.columns, 0, below, a.columns), CUBLAS_OP_N, top, CUBLAS_OP_T, 1,
           c.block(c.columns, 0, below, c.columns));
}

void copy_tile(Context& context, const TileView& from, const TileView& to) {
  check_equal_shapes(to, from);
  launch_copy(context, from, to);
}

void subtract_tile(Context& context, const TileView& from, const TileView& to) {
  check_equal_shapes(to, from);
  launch_subtract(context, from, to);
}

void clear_tile(Context& context, const TileView& c) {
  if (c.rows == 0 || c.columns == 0) return;
  check(cudaMemset2DAsync(c.data, static_cast<std::size_t>(c.leading) * sizeof(double), 0,
                          static_cast<std::size_t>(c.rows) * sizeof(double),
                          static_cast<std::size_t>(c.columns), context.stream()),
        "cudaMemset2DAsync");
}

void invert_diagonal_blocks(Context& context, const TileView& l, const TileView& inverses) {
  HEDDLE_CHECK(l.rows == l.columns && inverses.columns == l.columns && inverses.rows >= 1,
               "inverse blocks of {} x {} of a {} x {} triangle", inverses.rows, inverses.columns,
               l.rows, l.columns);
  static_cast<void>(to_int(l.columns));
  launch_invert_diagonal_blocks(context, l, inverses);
}

std::int64_t solve_scratch(std::int64_t m, std::int64_t w) {
  return aligned(m) * w;
}

void solve_right_transposed(Context& context, const TileView& l, const TileView& inverses,
                            const TileView& x,
                            double* scratch) {  // NOLINT(readability-non-const-parameter)
  HEDDLE_CHECK(l.rows == l.columns && x.columns == l.columns && inverses.columns == l.columns,
               "{} x {} over {} x {} with inverse blocks of {} columns", x.rows, x.columns, l.rows,
               l.columns, inverses.columns);
  if (x.rows == 0 || x.columns == 0) return;
  // A product cannot overwrite its operand: the solution grows in scratch, and each of its block
  // columns is subtracted from those to its right that are still in x.
  const TileView solution{scratch, x.rows, x.columns, aligned(x.rows)};
  const std::int64_t w = l.columns;
  for (std::int64_t begin = 0; begin < w; begin += inverses.rows) {
    const std::int64_t count = std::min(inverses.rows, w - begin);
    const TileView column = x.block(0, begin, x.rows, count);
    multiply(context, -1, solution.block(0, 0, x.rows, begin), CUBLAS_OP_N,
             l.block(begin, 0, count, begin), CUBLAS_OP_T, 1, column);
    multiply(context, 1, column, CUBLAS_OP_N, inverses.block(0, begin, count, count), CUBLAS_OP_T,
             0, solution.block(0, begin, x.rows, count));
  }
  copy_tile(context, solution, x);
}

}  // namespace heddle::kernel::cuda
