#include <algorithm>

#include "algorithms/solve/solve.hpp"
#include "algorithms/solve/tile_products.hpp"
#include "base/require.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {
namespace {

using solve::Products;
using solve::TileProduct;
using solve::Walk;
using solve::wide_of;

enum class Sweep : std::uint8_t {
  down,           ///< L x = b, top to bottom
  up_transposed,  ///< L^T x = b, bottom to top, after the other in the same job
  up,             ///< U x = b, bottom to top
};

const Kernel& step_of(Sweep sweep) {
  if (sweep == Sweep::down) return kernel::solve_lower;
  return sweep == Sweep::up ? kernel::solve_upper : kernel::solve_lower_transposed;
}

/// Solves row by row; what a solved row contributes to the others is computed where the tiles of
/// the triangle live.
struct Substitution {
  Walk& w;
  Sweep sweep;

  [[nodiscard]] std::int32_t rows() const { return w.a.layout().tile_rows(); }
  [[nodiscard]] bool is_up() const { return sweep != Sweep::down; }
  [[nodiscard]] bool is_transposed() const { return sweep == Sweep::up_transposed; }
  /// The row that is solved in a turn, and the one at some distance from it that is still to solve.
  [[nodiscard]] TileRow row(std::int32_t turn) const {
    return TileRow{is_up() ? rows() - 1 - turn : turn};
  }
  [[nodiscard]] TileRow other(TileRow row, std::int32_t distance) const {
    return is_up() ? row - distance : row + distance;
  }
  /// The tile that joins two rows: its row and its wide column.
  [[nodiscard]] TileRow tile_row(TileRow a, TileRow b) const {
    return sweep == Sweep::up ? std::min(a, b) : std::max(a, b);
  }
  [[nodiscard]] WideColumn tile_wide(TileRow a, TileRow b) const {
    return wide_of(sweep == Sweep::up ? std::max(a, b) : std::min(a, b));
  }
  /// Each row before has subtracted from this one, and each piece of its own tile was a step; the
  /// sweep before did the same, and the copy of b was a write too.
  [[nodiscard]] Version solved(std::int32_t turn) const {
    const std::int32_t pieces = w.pieces_of(wide_of(row(turn)));
    std::int32_t before = 0;
    if (sweep == Sweep::up) before = 1;
    if (is_transposed()) before = row(turn).value() + pieces;
    return Version{before + turn + pieces};
  }
  [[nodiscard]] std::int32_t priority(std::int32_t distance) const {
    const std::int64_t share = std::int64_t{distance} * 1000 / std::max(1, rows());
    return std::max<std::int32_t>(0, 1000 - static_cast<std::int32_t>(share));
  }
};

Program substitute(TaskStream& tasks, Matrix<double> t, Matrix<double> x, TileColumn side,
                   Products temporaries, Sweep sweep) {
  Walk w(tasks, t, side, temporaries);
  const Substitution s{w, sweep};
  const Kernel& multiply = s.is_transposed() ? kernel::product_transposed : kernel::product;

  for (std::int32_t turn = 0; turn < s.rows(); ++turn) {
    const TileRow row = s.row(turn);
    const WideColumn diagonal = wide_of(row);
    const TileRef x_row = w.sides(x, row);
    TaskOptions options;
    options.priority = 1023;
    for (std::int32_t k = 0; x_row.home.node == w.me && k < w.pieces_of(diagonal); ++k) {
      const TileColumn c = s.is_up() ? w.end(diagonal) - 1 - k : w.begin(diagonal) + k;
      options.parameters = KernelParameters(kernel::PieceParameters{t.layout().offset_in_wide(c)});
      const protocol::Access tile = read(t(row, c), Version{0});
      co_await tasks.insert(step_of(sweep), {read_write(x_row), tile}, options);
      tasks.release(tile);
    }
    Broadcast solved(tasks, read(x_row, s.solved(turn)));
    for (std::int32_t distance = 1; distance < s.rows() - turn; ++distance) {
      const TileRow other = s.other(row, distance);
      const TileRow i = s.tile_row(row, other);
      const WideColumn j = s.tile_wide(row, other);
      const NodeId at = w.node(i, j);
      const TileRef x_other = w.sides(x, other);
      TileProduct product = s.is_transposed() ? w.next_across(i, j) : w.next_down(i, j);
      const std::int32_t priority = s.priority(distance);
      co_await solved.to(at, 1023);
      for (TileColumn c = w.begin(j); at == w.me && c < w.end(j); ++c) {
        const bool accumulates = !s.is_transposed() && c != w.begin(j);
        const protocol::Access tile = read(t(i, c), Version{0});
        co_await w.take_strips(product, c, priority);
        co_await tasks.insert(multiply, {written(w, product, c), tile, solved.tile()},
                              product_options(w, c, accumulates, priority));
        tasks.release(tile);
      }
      if (at == w.me) w.release_strips(product);
      co_await product.to(x_other.home.node, priority);
      if (x_other.home.node == w.me) {
        options.priority = priority;
        options.parameters = KernelParameters();
        co_await tasks.insert(kernel::subtract, {read_write(x_other), product.tile()}, options);
      }
      product.release();
    }
    solved.release();
  }
}

/// x := b, row by row from the last one.
Program take(TaskStream& tasks, Matrix<double> x, Matrix<double> b, TileColumn side) {
  TaskOptions options;
  options.priority = 1023;
  for (std::int32_t row = x.layout().tile_rows() - 1; row >= 0; --row) {
    const TileRef to = x(TileRow{row}, side);
    Broadcast rows(tasks, read(b(TileRow{row}, side), Version{0}));
    co_await rows.to(to.home.node, options.priority);
    if (to.home.node == tasks.node()) {
      co_await tasks.insert(kernel::copy, {write(to), rows.tile()}, options);
    }
    rows.release();
  }
}

void require_triangle(const char* function, const Matrix<double>& t, Storage storage,
                      const Matrix<double>& x) {
  require(t.rows() == t.columns() && t.storage() == storage,
          "{}: the triangle is {} x {}; it must be square with Storage::{}", function, t.rows(),
          t.columns(), storage == Storage::lower ? "lower" : "upper");
  require(t.rows() == x.rows() && t.layout().tile == x.layout().tile &&
              x.spec().dealing == Dealing::diagonal,
          "{}: the triangle has {} rows in tiles of {}, the right-hand sides have {} in tiles of "
          "{}{}; they must be alike (right_hand_sides)",
          function, t.rows(), t.layout().tile, x.rows(), x.layout().tile,
          x.spec().dealing == Dealing::diagonal ? "" : " that are not beside the diagonal");
}

}  // namespace

MatrixSpec right_hand_sides_spec(const Matrix<double>& a, std::int64_t columns) {
  require(columns >= 0, "right_hand_sides: {} columns", columns);
  const std::int64_t parts =
      std::max<std::int64_t>(1, (columns + a.layout().tile - 1) / a.layout().tile);
  MatrixSpec spec({.rows = a.rows(),
                   .columns = columns,
                   .tile = a.layout().tile,
                   .wide = std::max<std::int64_t>(1, (columns + parts - 1) / parts)},
                  a.distribution());
  spec.dealing = Dealing::diagonal;
  return spec;
}

Matrix<double> right_hand_sides(const Matrix<double>& a, std::int64_t columns) {
  return a.node().matrix<double>(right_hand_sides_spec(a, columns));
}

JobSpec solve_cholesky(const Matrix<double>& l, const Matrix<double>& x) {
  require_triangle("solve_cholesky", l, Storage::lower, x);
  const std::vector<Products> products = solve::make_products(l, x);
  std::vector<solve::MakeProgram> programs;
  for (TileColumn c{0}; c < x.layout().end_column(); ++c) {
    const Products& p = products[static_cast<std::size_t>(c.value())];
    for (const Sweep sweep : {Sweep::down, Sweep::up_transposed}) {
      programs.emplace_back(
          [=](TaskStream& tasks) { return substitute(tasks, l, x, c, p, sweep); });
    }
  }
  return solve::job_of("solve", {l, x}, products, std::move(programs));
}

JobSpec solve_upper(const Matrix<double>& r, const Matrix<double>& x, const Matrix<double>& b) {
  require_triangle("solve_upper", r, Storage::upper, x);
  require(b.layout() == x.layout(),
          "solve_upper: b is {} x {} in tiles of {}, x is {} x {} in tiles of {}; they must be cut "
          "alike",
          b.rows(), b.columns(), b.layout().tile, x.rows(), x.columns(), x.layout().tile);
  const std::vector<Products> products = solve::make_products(r, x);
  std::vector<solve::MakeProgram> programs;
  for (TileColumn c{0}; c < x.layout().end_column(); ++c) {
    const Products& p = products[static_cast<std::size_t>(c.value())];
    programs.emplace_back([=](TaskStream& tasks) { return take(tasks, x, b, c); });
    programs.emplace_back(
        [=](TaskStream& tasks) { return substitute(tasks, r, x, c, p, Sweep::up); });
  }
  return solve::job_of("solve", {r, x, b}, products, std::move(programs));
}

}  // namespace heddle
