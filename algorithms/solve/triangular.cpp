#include <algorithm>

#include "algorithms/solve/solve.hpp"
#include "algorithms/solve/tile_products.hpp"
#include "algorithms/walk/reader_list.hpp"
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

constexpr std::int32_t most_urgent = 1023;

/// Priority of what a solved row contributes to the row at some distance from it.
std::int32_t priority_at(std::int32_t distance, std::int32_t rows) {
  const std::int64_t share = std::int64_t{distance} * 1000 / std::max(1, rows);
  return std::max<std::int32_t>(0, 1000 - static_cast<std::int32_t>(share));
}

/// Which tile of the triangle joins a solved row to one that is still to solve.
struct Joined {
  Sweep sweep;

  [[nodiscard]] TileRow other(TileRow row, std::int32_t distance) const {
    return sweep == Sweep::down ? row + distance : row - distance;
  }
  [[nodiscard]] TileRow tile_row(TileRow a, TileRow b) const {
    return sweep == Sweep::up ? std::min(a, b) : std::max(a, b);
  }
  [[nodiscard]] WideColumn tile_wide(TileRow a, TileRow b) const {
    return wide_of(sweep == Sweep::up ? std::max(a, b) : std::min(a, b));
  }
};

/// Solves row by row; what a solved row contributes to the others is computed where the tiles of
/// the triangle live.
struct Substitution {
  Walk& w;
  Sweep sweep;

  [[nodiscard]] std::int32_t rows() const { return w.a.layout().tile_rows(); }
  [[nodiscard]] bool is_up() const { return sweep != Sweep::down; }
  [[nodiscard]] bool is_transposed() const { return sweep == Sweep::up_transposed; }
  /// The row that is solved in a turn.
  [[nodiscard]] TileRow row(std::int32_t turn) const {
    return TileRow{is_up() ? rows() - 1 - turn : turn};
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
};

Program substitute(TaskStream& tasks, Matrix<double> t, Matrix<double> x, TileColumn side,
                   Products temporaries, Sweep sweep) {
  Walk w(tasks, t, side, temporaries);
  const Substitution s{w, sweep};
  const Joined joined{sweep};
  const Kernel& multiply = s.is_transposed() ? kernel::product_transposed : kernel::product;

  for (std::int32_t turn = 0; turn < s.rows(); ++turn) {
    const TileRow row = s.row(turn);
    const WideColumn diagonal = wide_of(row);
    const TileRef x_row = w.sides(x, row);
    TaskOptions options;
    options.priority = most_urgent;
    for (std::int32_t k = 0; x_row.home.node == w.me && k < w.pieces_of(diagonal); ++k) {
      const TileColumn c = s.is_up() ? w.end(diagonal) - 1 - k : w.begin(diagonal) + k;
      options.parameters = KernelParameters(kernel::PieceParameters{t.layout().offset_in_wide(c)});
      const protocol::Access tile = read(t(row, c), Version{0});
      co_await tasks.insert(step_of(sweep), {read_write(x_row), tile}, options);
      tasks.release(tile);
    }
    Broadcast solved(tasks, read(x_row, s.solved(turn)));
    for (std::int32_t distance = 1; distance < s.rows() - turn; ++distance) {
      const TileRow other = joined.other(row, distance);
      const TileRow i = joined.tile_row(row, other);
      const WideColumn j = joined.tile_wide(row, other);
      const NodeId at = w.node(i, j);
      const TileRef x_other = w.sides(x, other);
      TileProduct product = s.is_transposed() ? w.next_across(i, j) : w.next_down(i, j);
      const std::int32_t priority = priority_at(distance, s.rows());
      solved.to(at, priority);
      for (TileColumn c = w.begin(j); at == w.me && c < w.end(j); ++c) {
        const bool accumulates = !s.is_transposed() && c != w.begin(j);
        const protocol::Access tile = read(t(i, c), Version{0});
        co_await w.take_strips(product, c, priority);
        co_await tasks.insert(multiply, {written(w, product, c), tile, solved.tile()},
                              product_options(w, c, accumulates, priority));
        tasks.release(tile);
      }
      if (at == w.me) w.release_strips(product);
      product.to(x_other.home.node, priority);
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
  options.priority = most_urgent;
  for (std::int32_t row = x.layout().tile_rows() - 1; row >= 0; --row) {
    const TileRef to = x(TileRow{row}, side);
    Broadcast rows(tasks, read(b(TileRow{row}, side), Version{0}));
    rows.to(to.home.node, options.priority);
    if (to.home.node == tasks.node()) {
      co_await tasks.insert(kernel::copy, {write(to), rows.tile()}, options);
    }
    rows.release();
  }
}

/// The nodes that multiply tile row `row` of the solution after it is solved in a sweep: those of
/// the triangle's tiles that join it to rows still to solve, from the nearest one on, until the
/// grid has come round.
std::vector<protocol::Reader> readers_of_solved(const Matrix<double>& t, NodeId home, TileRow row,
                                                Sweep sweep) {
  const Joined joined{sweep};
  const Distribution& d = t.distribution();
  const std::int32_t rows = t.layout().tile_rows();
  const std::int32_t left = sweep == Sweep::down ? rows - 1 - row.value() : row.value();
  const std::int32_t round =
      sweep == Sweep::up_transposed ? d.grid_columns : d.grid_rows * d.row_group;
  ReaderList readers(home);
  for (std::int32_t distance = 1; distance <= std::min(left, round); ++distance) {
    const TileRow other = joined.other(row, distance);
    readers.add(d.node(joined.tile_row(row, other), joined.tile_wide(row, other)),
                priority_at(distance, rows));
  }
  return readers.take();
}

/// The readers of solve_cholesky(l, x). Products are announced by the program.
std::vector<protocol::Reader> readers_of_solve(const Matrix<double>& l, const Matrix<double>& x,
                                               protocol::TileId tile, Version version) {
  if (tile.matrix != x.id()) return {};
  const std::int32_t rows = l.layout().tile_rows();
  const TileRow row{tile.index % rows};
  const WideColumn j = wide_of(row);
  const std::int32_t pieces = l.layout().wide_begin(j + 1) - l.layout().wide_begin(j);
  const NodeId home = x.home(row, TileColumn{tile.index / rows}).node;
  const std::int32_t down = row.value() + pieces;
  if (version == Version{down}) return readers_of_solved(l, home, row, Sweep::down);
  if (version != Version{down + rows - 1 - row.value() + pieces}) return {};
  return readers_of_solved(l, home, row, Sweep::up_transposed);
}

/// The readers of solve_upper(r, x, b). Products are announced by the program.
std::vector<protocol::Reader> readers_of_solve(const Matrix<double>& r, const Matrix<double>& x,
                                               const Matrix<double>& b, protocol::TileId tile,
                                               Version version) {
  const std::int32_t rows = r.layout().tile_rows();
  const TileRow row{tile.index % rows};
  const TileColumn side{tile.index / rows};
  if (tile.matrix == b.id() && version == Version{0}) {
    ReaderList readers(b.home(row, side).node);
    readers.add(x.home(row, side).node, most_urgent);
    return readers.take();
  }
  const WideColumn j = wide_of(row);
  const std::int32_t pieces = r.layout().wide_begin(j + 1) - r.layout().wide_begin(j);
  const Version solved{1 + rows - 1 - row.value() + pieces};  // copied, subtracted from, solved
  if (tile.matrix != x.id() || version != solved) return {};
  return readers_of_solved(r, x.home(row, side).node, row, Sweep::up);
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
  JobSpec spec = solve::job_of("solve", {l, x}, products, std::move(programs));
  spec.readers = [l, x](protocol::TileId tile, Version version) {
    return readers_of_solve(l, x, tile, version);
  };
  return spec;
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
  JobSpec spec = solve::job_of("solve", {r, x, b}, products, std::move(programs));
  spec.readers = [r, x, b](protocol::TileId tile, Version version) {
    return readers_of_solve(r, x, b, tile, version);
  };
  return spec;
}

}  // namespace heddle
