#include "base/assert.hpp"
#include "kernels/cpu/arguments.hpp"
#include "kernels/cpu/defined.hpp"
#include "kernels/cpu/norms.hpp"
#include "kernels/cpu/tile_operations.hpp"
#include "kernels/kernels.hpp"

namespace heddle::kernel {
namespace {

std::int64_t run_solve_lower(const KernelArguments& arguments) {
  const auto [l, x1, x2] = lower_solve(arguments);
  host::solve_left(l.square, x1);
  host::multiply(-1.0, l.below, x1, 1.0, x2);
  return 0;
}

std::int64_t run_solve_lower_transposed(const KernelArguments& arguments) {
  const auto [l, x1, x2] = lower_solve(arguments);
  host::multiply_transposed(-1.0, l.below, x2, 1.0, x1);
  host::solve_left_transposed(l.square, x1);
  return 0;
}

std::int64_t run_solve_upper(const KernelArguments& arguments) {
  check_tiles(arguments, 2);
  const auto parameters = arguments.parameters.as<PieceParameters>();
  const TileView& x = arguments.tiles[0];
  const TileView& u = arguments.tiles[1];
  const std::int64_t w = u.columns;
  const TileView x1 = rows_of(x, parameters.offset, w);
  host::solve_left_upper(rows_of(u, parameters.offset, w), x1);
  host::multiply(-1.0, rows_of(u, 0, parameters.offset), x1, 1.0, rows_of(x, 0, parameters.offset));
  return 0;
}

std::int64_t run_product(const KernelArguments& arguments) {
  check_tiles(arguments, 3);
  const auto parameters = arguments.parameters.as<ProductParameters>();
  const TileView& a = arguments.tiles[1];
  const TileView& y = arguments.tiles[0];
  const TileView x = rows_of(arguments.tiles[2], parameters.offset, a.columns);
  if (parameters.term == Term::product) {
    host::multiply(1.0, a, x, parameters.accumulate != 0 ? 1.0 : 0.0, y);
    return 0;
  }
  HEDDLE_CHECK(parameters.term == Term::magnitude, "squares in a product");
  if (parameters.accumulate == 0) host::clear(y);
  host::add_magnitudes(a, x, y);
  return 0;
}

std::int64_t run_product_transposed(const KernelArguments& arguments) {
  check_tiles(arguments, 3);
  const auto parameters = arguments.parameters.as<ProductParameters>();
  const TileView& a = arguments.tiles[1];
  const TileView& x = arguments.tiles[2];
  const TileView y = rows_of(arguments.tiles[0], parameters.offset, a.columns);
  if (parameters.term == Term::product) {
    host::multiply_transposed(1.0, a, x, parameters.accumulate != 0 ? 1.0 : 0.0, y);
    return 0;
  }
  if (parameters.accumulate == 0) host::clear(y);
  if (parameters.term == Term::magnitude) host::add_magnitudes_transposed(a, x, y);
  if (parameters.term == Term::square) host::add_squares_transposed(a, x, y);
  return 0;
}

std::int64_t run_product_symmetric(const KernelArguments& arguments) {
  check_tiles(arguments, 3);
  const auto parameters = arguments.parameters.as<ProductParameters>();
  const TileView& p = arguments.tiles[0];
  const TileView& x = arguments.tiles[2];
  const Piece a = split(arguments.tiles[1], parameters.offset);
  HEDDLE_CHECK(p.rows == arguments.tiles[1].rows && x.rows == p.rows,
               "{} rows += {} rows * {} rows", p.rows, arguments.tiles[1].rows, x.rows);
  if (parameters.accumulate == 0) host::clear(p);
  if (parameters.term != Term::product) {
    HEDDLE_CHECK(parameters.term == Term::magnitude, "squares in a symmetric product");
    host::add_magnitudes_symmetric(arguments.tiles[1], parameters.offset, x, p);
    return 0;
  }
  const std::int64_t w = a.square.rows;
  const std::int64_t below = parameters.offset + w;
  const TileView p1 = rows_of(p, parameters.offset, w);
  const TileView x1 = rows_of(x, parameters.offset, w);
  host::multiply_symmetric(a.square, x1, p1);
  host::multiply_transposed(1.0, a.below, rows_of(x, below, a.below.rows), 1.0, p1);
  host::multiply(1.0, a.below, x1, 1.0, rows_of(p, below, a.below.rows));
  return 0;
}

void check_equal_shapes(const TileView& a, const TileView& b) {
  HEDDLE_CHECK(a.rows == b.rows && a.columns == b.columns, "{} x {} and {} x {}", a.rows, a.columns,
               b.rows, b.columns);
}

std::int64_t run_subtract(const KernelArguments& arguments) {
  check_tiles(arguments, 2);
  const TileView& to = arguments.tiles[0];
  const TileView& from = arguments.tiles[1];
  check_equal_shapes(to, from);
  for (std::int64_t j = 0; j < to.columns; ++j) {
    for (std::int64_t i = 0; i < to.rows; ++i) to(i, j) -= from(i, j);
  }
  return 0;
}

std::int64_t run_copy(const KernelArguments& arguments) {
  check_tiles(arguments, 2);
  host::copy(arguments.tiles[1], arguments.tiles[0]);
  return 0;
}

}  // namespace

constinit const Kernel solve_lower = defined("solve_lower", run_solve_lower, cuda::solve_lower);
constinit const Kernel solve_lower_transposed =
    defined("solve_lower_transposed", run_solve_lower_transposed, cuda::solve_lower_transposed);
constinit const Kernel solve_upper = defined("solve_upper", run_solve_upper, cuda::solve_upper);
constinit const Kernel product = defined("product", run_product, cuda::product);
constinit const Kernel product_transposed =
    defined("product_transposed", run_product_transposed, cuda::product_transposed);
constinit const Kernel product_symmetric =
    defined("product_symmetric", run_product_symmetric, cuda::product_symmetric);
constinit const Kernel subtract = defined("subtract", run_subtract, cuda::subtract);
constinit const Kernel copy = defined("copy", run_copy, cuda::copy);

}  // namespace heddle::kernel
