#include "base/assert.hpp"
#include "kernels/cpu/arguments.hpp"
#include "kernels/cuda/definitions.hpp"
#include "kernels/cuda/few_columns.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/libraries.hpp"
#include "kernels/cuda/tile_operations.hpp"
#include "kernels/kernels.hpp"

/// Few right-hand sides have kernels of their own, more of them cuBLAS's.
namespace heddle::kernel::cuda {
namespace {

bool are_few(const TileView& x) {
  return x.columns <= few_columns_max;
}

bool uses_blas(Term term, const TileView& x) {
  return term == Term::product && !are_few(x);
}

/// y := alpha * a * x + beta * y.
void multiply_sides(Context& context, double alpha, const TileView& a, const TileView& x,
                    double beta, const TileView& y, Term term = Term::product) {
  HEDDLE_CHECK(term != Term::square, "squares in a product");
  if (uses_blas(term, x)) return multiply(context, alpha, a, CUBLAS_OP_N, x, CUBLAS_OP_N, beta, y);
  HEDDLE_CHECK(y.rows == a.rows && x.rows == a.columns && y.columns == x.columns,
               "{} x {} += {} x {} * {} x {}", y.rows, y.columns, a.rows, a.columns, x.rows,
               x.columns);
  launch_multiply_few(context, alpha, a, x, beta, y, term);
}

/// y := alpha * a^T * x + beta * y.
void multiply_sides_transposed(Context& context, double alpha, const TileView& a, const TileView& x,
                               double beta, const TileView& y, Term term = Term::product) {
  if (uses_blas(term, x)) return multiply(context, alpha, a, CUBLAS_OP_T, x, CUBLAS_OP_N, beta, y);
  HEDDLE_CHECK(y.rows == a.columns && x.rows == a.rows && y.columns == x.columns,
               "{} x {} += ({} x {})^T * {} x {}", y.rows, y.columns, a.rows, a.columns, x.rows,
               x.columns);
  launch_multiply_transposed_few(context, alpha, a, x, beta, y, term);
}

/// x := inv(op(a)) * x with a triangle of a.
void solve_left(Context& context, Triangle triangle, const TileView& a, const TileView& x) {
  HEDDLE_CHECK(a.rows == a.columns && x.rows == a.rows, "{} x {} under {} x {}", a.rows, a.columns,
               x.rows, x.columns);
  if (x.rows == 0 || x.columns == 0) return;
  static_cast<void>(to_int(x.rows));
  if (are_few(x)) return launch_solve_few(context, triangle, a, x);
  constexpr double one = 1;
  const auto part = triangle == Triangle::upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
  const auto operation = triangle == Triangle::lower_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  check(cublas().dtrsm(context.blas(), CUBLAS_SIDE_LEFT, part, operation, CUBLAS_DIAG_NON_UNIT,
                       to_int(x.rows), to_int(x.columns), &one, a.data, leading_dimension(a),
                       x.data, leading_dimension(x)),
        "cublasDtrsm");
}

/// c += a * b with a symmetric, lower part stored.
void multiply_symmetric(Context& context, const TileView& a, const TileView& b, const TileView& c) {
  HEDDLE_CHECK(
      a.rows == a.columns && b.rows == a.rows && c.rows == a.rows && b.columns == c.columns,
      "{} x {} += {} x {} * {} x {}", c.rows, c.columns, a.rows, a.columns, b.rows, b.columns);
  if (c.rows == 0 || c.columns == 0) return;
  constexpr double one = 1;
  check(cublas().dsymm(context.blas(), CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, to_int(c.rows),
                       to_int(c.columns), &one, a.data, leading_dimension(a), b.data,
                       leading_dimension(b), &one, c.data, leading_dimension(c)),
        "cublasDsymm");
}

}  // namespace

void solve_lower(const CudaLaunch& launch) {
  const LowerSolve at = lower_solve({launch.tiles, launch.parameters});
  solve_left(launch.context, Triangle::lower, at.l.square, at.x1);
  multiply_sides(launch.context, -1, at.l.below, at.x1, 1, at.x2);
}

void solve_lower_transposed(const CudaLaunch& launch) {
  const LowerSolve at = lower_solve({launch.tiles, launch.parameters});
  multiply_sides_transposed(launch.context, -1, at.l.below, at.x2, 1, at.x1);
  solve_left(launch.context, Triangle::lower_transposed, at.l.square, at.x1);
}

void solve_upper(const CudaLaunch& launch) {
  check_tiles({launch.tiles, launch.parameters}, 2);
  const std::int64_t offset = launch.parameters.as<PieceParameters>().offset;
  const TileView& x = launch.tiles[0];
  const TileView& u = launch.tiles[1];
  const TileView x1 = rows_of(x, offset, u.columns);
  solve_left(launch.context, Triangle::upper, rows_of(u, offset, u.columns), x1);
  multiply_sides(launch.context, -1, rows_of(u, 0, offset), x1, 1, rows_of(x, 0, offset));
}

void product(const CudaLaunch& launch) {
  check_tiles({launch.tiles, launch.parameters}, 3);
  const auto parameters = launch.parameters.as<ProductParameters>();
  const TileView& a = launch.tiles[1];
  multiply_sides(launch.context, 1, a, rows_of(launch.tiles[2], parameters.offset, a.columns),
                 parameters.accumulate != 0 ? 1 : 0, launch.tiles[0], parameters.term);
}

void product_transposed(const CudaLaunch& launch) {
  check_tiles({launch.tiles, launch.parameters}, 3);
  const auto parameters = launch.parameters.as<ProductParameters>();
  const TileView& a = launch.tiles[1];
  multiply_sides_transposed(
      launch.context, 1, a, launch.tiles[2], parameters.accumulate != 0 ? 1 : 0,
      rows_of(launch.tiles[0], parameters.offset, a.columns), parameters.term);
}

void product_symmetric(const CudaLaunch& launch) {
  check_tiles({launch.tiles, launch.parameters}, 3);
  const auto parameters = launch.parameters.as<ProductParameters>();
  const TileView& p = launch.tiles[0];
  const TileView& x = launch.tiles[2];
  const Piece a = split(launch.tiles[1], parameters.offset);
  HEDDLE_CHECK(p.rows == launch.tiles[1].rows && x.rows == p.rows, "{} rows += {} rows * {} rows",
               p.rows, launch.tiles[1].rows, x.rows);
  const std::int64_t w = a.square.rows;
  const std::int64_t below = parameters.offset + w;
  const TileView p1 = rows_of(p, parameters.offset, w);
  const TileView x1 = rows_of(x, parameters.offset, w);
  if (parameters.accumulate == 0) clear_tile(launch.context, p);
  if (parameters.term != Term::product) {
    HEDDLE_CHECK(parameters.term == Term::magnitude, "squares in a symmetric product");
    const std::int64_t rows = p.rows - parameters.offset;
    return launch_magnitudes_symmetric(
        launch.context, rows_of(launch.tiles[1], parameters.offset, rows),
        rows_of(x, parameters.offset, rows), rows_of(p, parameters.offset, rows));
  }
  multiply_symmetric(launch.context, a.square, x1, p1);
  multiply_sides_transposed(launch.context, 1, a.below, rows_of(x, below, a.below.rows), 1, p1);
  multiply_sides(launch.context, 1, a.below, x1, 1, rows_of(p, below, a.below.rows));
}

void subtract(const CudaLaunch& launch) {
  check_tiles({launch.tiles, launch.parameters}, 2);
  subtract_tile(launch.context, launch.tiles[1], launch.tiles[0]);
}

void copy(const CudaLaunch& launch) {
  check_tiles({launch.tiles, launch.parameters}, 2);
  copy_tile(launch.context, launch.tiles[1], launch.tiles[0]);
}

}  // namespace heddle::kernel::cuda
