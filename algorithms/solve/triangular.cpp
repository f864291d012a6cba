#include "algorithms/solve/triangular.hpp"

#include <algorithm>
#include <cstdlib>

#include "algorithms/solve/walk.hpp"
#include "base/assert.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

using solve::Products;
using solve::Walk;

std::int32_t row_priority(const Walk& w, std::int32_t distance) {
  return std::clamp<std::int32_t>(
      1000 - static_cast<std::int32_t>(std::int64_t{distance} * 1000 / std::max(1, w.rows)), 0,
      1000);
}

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
  const Walk& w;
  Sweep sweep;

  [[nodiscard]] bool is_up() const { return sweep != Sweep::down; }
  [[nodiscard]] bool is_transposed() const { return sweep == Sweep::up_transposed; }
  [[nodiscard]] std::int32_t row(std::int32_t turn) const {
    return is_up() ? w.rows - 1 - turn : turn;
  }
  /// The tile that joins two rows: its row and its wide column.
  [[nodiscard]] std::int32_t tile_row(std::int32_t row, std::int32_t other) const {
    return sweep == Sweep::up ? std::min(row, other) : std::max(row, other);
  }
  [[nodiscard]] std::int32_t tile_wide(std::int32_t row, std::int32_t other) const {
    return sweep == Sweep::up ? std::max(row, other) : std::min(row, other);
  }
  /// Each row before has subtracted from this one, and each piece of its own tile was a step; the
  /// sweep before did the same, and what was copied was a write too.
  [[nodiscard]] Version solved(std::int32_t turn) const {
    std::int32_t before = 0;
    if (sweep == Sweep::up) before = 1;
    if (is_transposed()) before = row(turn) + w.pieces_of(row(turn));
    return Version{before + turn + w.pieces_of(row(turn))};
  }
  /// The product of turn `turn` with `other`.
  [[nodiscard]] TileRef product(std::int32_t turn, std::int32_t other) const {
    const std::int32_t i = tile_row(row(turn), other);
    const std::int32_t j = tile_wide(row(turn), other);
    return is_transposed() ? w.across(j, i) : w.down(i, j);
  }
  [[nodiscard]] Version ready(std::int32_t turn) const {
    const Distribution& d = w.a.distribution();
    const std::int32_t slots = is_transposed() ? d.grid_rows : d.grid_columns;
    const std::int32_t writes = w.after(turn / slots).value();
    // An upper triangle begins with its last wide column, which may have fewer pieces.
    const std::int32_t last = w.rows - 1;
    const bool had_last = sweep == Sweep::up && row(turn) % slots == last % slots;
    return Version{had_last ? writes - (w.pieces - w.pieces_of(last)) : writes};
  }
  /// True where `other`, at this distance from the row, is the first whose tile is where it is: the
  /// nodes come round in turn.
  [[nodiscard]] bool is_first_reader(std::int32_t row, std::int32_t distance) const {
    const Distribution& d = w.a.distribution();
    const std::int32_t group = is_transposed() ? 1 : d.row_group;
    const std::int32_t nodes = is_transposed() ? d.grid_columns : d.grid_rows;
    const auto turn_of = [&](std::int32_t at) { return (is_up() ? row - at : row + at) / group; };
    return std::abs(turn_of(distance) - turn_of(1)) < nodes &&
           (distance == 1 || turn_of(distance) != turn_of(distance - 1));
  }
};

Program substitute(TaskStream& tasks, Matrix<double> t, Matrix<double> x, TileColumn side,
                   Products temporaries, Sweep sweep) {
  const Walk w(tasks, t, x, side, std::move(temporaries));
  const Substitution s{w, sweep};
  const Kernel& multiply = s.is_transposed() ? kernel::product_transposed : kernel::product;
  const Version given{0};

  for (std::int32_t turn = 0; turn < w.rows; ++turn) {
    const std::int32_t row = s.row(turn);
    const NodeId here = w.node(row, row);
    TaskOptions options;
    options.priority = 1023;
    for (std::int32_t k = 0; here == w.me && k < w.pieces_of(row); ++k) {
      const TileColumn c{s.is_up() ? w.begin(row + 1) - 1 - k : w.begin(row) + k};
      options.parameters = KernelParameters(kernel::PieceParameters{t.layout().offset_in_wide(c)});
      co_await tasks.insert(step_of(sweep), options, read_write(w.sides(x, row)),
                            read(t(TileRow{row}, c), given));
    }
    const protocol::Access solved = read(w.sides(x, row), s.solved(turn));
    for (std::int32_t distance = 1; distance < w.rows - turn; ++distance) {
      const std::int32_t other = s.is_up() ? row - distance : row + distance;
      const std::int32_t i = s.tile_row(row, other);
      const std::int32_t j = s.tile_wide(row, other);
      const NodeId at = w.node(i, j);
      const NodeId to = w.node(other, other);
      const TileRef product = s.product(turn, other);
      const std::int32_t priority = row_priority(w, distance);
      if (here == w.me && at != w.me && s.is_first_reader(row, distance)) {
        co_await tasks.announce(solved, at, 1023);
      }
      for (std::int32_t c = w.begin(j); at == w.me && c < w.begin(j + 1); ++c) {
        const bool first = c == w.begin(j);
        co_await tasks.insert(multiply,
                              product_options(w, c, !first && !s.is_transposed(), priority),
                              first ? write(product) : read_write(product),
                              read(t(TileRow{i}, TileColumn{c}), given), solved);
        tasks.release(read(t(TileRow{i}, TileColumn{c}), given));
      }
      const protocol::Access ready = read(product, s.ready(turn));
      if (at == w.me && to != w.me) co_await tasks.announce(ready, to, priority);
      if (to == w.me) {
        options.priority = priority;
        options.parameters = KernelParameters();
        co_await tasks.insert(kernel::subtract, options, read_write(w.sides(x, other)), ready);
      }
      if (to == w.me || at == w.me) tasks.release(ready);
    }
    tasks.release(solved);
  }
}

/// x := b, row by row from the last one.
Program take(TaskStream& tasks, Matrix<double> x, Matrix<double> b, TileColumn side) {
  for (std::int32_t row = x.layout().tile_rows() - 1; row >= 0; --row) {
    const TileRow i{row};
    const NodeId from = b.home(i, side).node;
    const NodeId to = x.home(i, side).node;
    const protocol::Access rows = read(b(i, side), Version{0});
    if (from == tasks.node() && to != from) co_await tasks.announce(rows, to, 1023);
    if (to == tasks.node()) {
      TaskOptions options;
      options.priority = 1023;
      co_await tasks.insert(kernel::copy, options, write(x(i, side)), rows);
    }
    if (from == tasks.node() || to == tasks.node()) tasks.release(rows);
  }
}

void check_triangle(const Matrix<double>& t, const Matrix<double>& x) {
  HEDDLE_CHECK(
      t.rows() == t.columns() && t.rows() == x.rows() && t.layout().tile == x.layout().tile,
      "{} x {} in tiles of {} and {} rows in tiles of {}", t.rows(), t.columns(), t.layout().tile,
      x.rows(), x.layout().tile);
  HEDDLE_CHECK(x.state()->spec.dealing == Dealing::diagonal, "x is not beside the diagonal");
}

}  // namespace

MatrixSpec right_hand_sides_spec(const Matrix<double>& a, std::int64_t columns) {
  MatrixSpec spec;
  spec.rows = a.rows();
  spec.columns = columns;
  spec.has_layout = true;
  spec.distribution = a.distribution();
  spec.dealing = Dealing::diagonal;
  const std::int64_t parts =
      std::max<std::int64_t>(1, (columns + a.layout().tile - 1) / a.layout().tile);
  spec.layout = {.tile = a.layout().tile,
                 .wide = std::max<std::int64_t>(1, (columns + parts - 1) / parts)};
  return spec;
}

Matrix<double> right_hand_sides(const Matrix<double>& a, std::int64_t columns) {
  return a.node().matrix<double>(right_hand_sides_spec(a, columns));
}

JobSpec solve_cholesky(const Matrix<double>& l, const Matrix<double>& x) {
  check_triangle(l, x);
  const std::vector<Products> products = solve::make_products(l, x);
  std::vector<solve::MakeProgram> programs;
  for (TileColumn c{0}; c.value() < x.layout().tile_columns(); ++c) {
    const Products& p = products[static_cast<std::size_t>(c.value())];
    for (const Sweep sweep : {Sweep::down, Sweep::up_transposed}) {
      programs.emplace_back(
          [=](TaskStream& tasks) { return substitute(tasks, l, x, c, p, sweep); });
    }
  }
  return solve::job_of("solve", {l, x}, products, std::move(programs));
}

JobSpec solve_upper(const Matrix<double>& r, const Matrix<double>& x, const Matrix<double>& b) {
  check_triangle(r, x);
  HEDDLE_CHECK(b.layout() == x.layout(), "{} x {} into {} x {}", b.rows(), b.columns(), x.rows(),
               x.columns());
  const std::vector<Products> products = solve::make_products(r, x);
  std::vector<solve::MakeProgram> programs;
  for (TileColumn c{0}; c.value() < x.layout().tile_columns(); ++c) {
    const Products& p = products[static_cast<std::size_t>(c.value())];
    programs.emplace_back([=](TaskStream& tasks) { return take(tasks, x, b, c); });
    programs.emplace_back(
        [=](TaskStream& tasks) { return substitute(tasks, r, x, c, p, Sweep::up); });
  }
  return solve::job_of("solve", {r, x, b}, products, std::move(programs));
}

}  // namespace heddle
