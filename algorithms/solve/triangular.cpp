#include "algorithms/solve/triangular.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "kernels/cholesky.hpp"

namespace heddle {
namespace {

/// Temporaries for one wide column of right-hand sides. Products of tile (i, j) with rows of x
/// become a tile of `down` (added into row i) or `across` (added into row j), made where tile (i,
/// j) lives; a tile is used again after its release, and its versions count on.
struct Products {
  Matrix<double> down;
  Matrix<double> across;
};

std::vector<Products> make_products(const Matrix<double>& a, const Matrix<double>& x) {
  std::vector<Products> all;
  const Distribution& d = a.distribution();
  for (TileColumn c{0}; c.value() < x.layout().tile_columns(); ++c) {
    const std::int64_t width = x.layout().column_count(c);
    MatrixSpec spec;
    spec.rows = a.rows();
    spec.has_layout = true;
    spec.distribution = d;
    spec.distribution.devices = 0;
    spec.layout = {.tile = a.layout().tile, .wide = std::max<std::int64_t>(1, width)};
    spec.temporary = true;
    spec.columns = width * d.grid_columns;
    Matrix<double> down = a.node().matrix<double>(spec);
    spec.columns = width * d.grid_rows;
    spec.dealing = Dealing::transposed;
    all.push_back({std::move(down), a.node().matrix<double>(spec)});
  }
  return all;
}

/// What the programs below share: the matrix, one wide column of right-hand sides, and who is
/// where.
struct Walk {
  TaskStream& tasks;
  Matrix<double> a;
  Matrix<double> x;
  TileColumn column;  ///< of the right-hand sides
  Products products;
  std::int32_t rows;
  std::int32_t pieces;  ///< of each wide column but the last
  NodeId me;

  Walk(TaskStream& stream, const Matrix<double>& matrix, const Matrix<double>& sides,
       TileColumn side, Products temporaries)
      : tasks(stream),
        a(matrix),
        x(sides),
        column(side),
        products(std::move(temporaries)),
        rows(matrix.layout().tile_rows()),
        pieces(matrix.layout().pieces_per_wide()),
        me(stream.node()) {}

  [[nodiscard]] NodeId node(std::int32_t i, std::int32_t j) const {
    return a.distribution().node(i, j);
  }
  [[nodiscard]] TileRef sides(const Matrix<double>& matrix, std::int32_t i) const {
    return matrix(TileRow{i}, column);
  }
  [[nodiscard]] std::int32_t begin(std::int32_t wide) const {
    return a.layout().wide_begin(wide).value();
  }
  [[nodiscard]] std::int32_t pieces_of(std::int32_t wide) const {
    return begin(wide + 1) - begin(wide);
  }
  [[nodiscard]] TileRef down(std::int32_t i, std::int32_t j) const {
    return products.down(TileRow{i}, TileColumn{j % a.distribution().grid_columns});
  }
  [[nodiscard]] TileRef across(std::int32_t j, std::int32_t i) const {
    return products.across(TileRow{j}, TileColumn{i % a.distribution().grid_rows});
  }
  /// The version of a product's tile after its `use`-th use (from 0), each of which writes `pieces`
  /// times.
  [[nodiscard]] Version after(std::int32_t use) const { return Version{(use + 1) * pieces}; }
};

TaskOptions product_options(const Walk& w, std::int32_t piece, bool accumulate,
                            std::int32_t priority) {
  TaskOptions options;
  options.parameters = KernelParameters(kernel::ProductParameters{
      w.a.layout().offset_in_wide(TileColumn{piece}), accumulate ? 1 : 0});
  options.priority = priority;
  return options;
}

std::int32_t row_priority(const Walk& w, std::int32_t distance) {
  return std::clamp<std::int32_t>(
      1000 - static_cast<std::int32_t>(std::int64_t{distance} * 1000 / std::max(1, w.rows)), 0,
      1000);
}

enum class Sweep : std::uint8_t {
  down,  ///< L x = b, top to bottom
  up,    ///< L^T x = b, bottom to top, after the other in the same job
};

/// Solves row by row; what a solved row contributes to the others is computed where the tiles of L
/// live.
Program substitute(TaskStream& tasks, Matrix<double> l, Matrix<double> x, TileColumn side,
                   Products temporaries, Sweep sweep) {
  const Walk w(tasks, l, x, side, std::move(temporaries));
  const Distribution& d = l.distribution();
  const bool up = sweep == Sweep::up;
  const Kernel& step = up ? kernel::solve_lower_transposed : kernel::solve_lower;
  const Kernel& multiply = up ? kernel::product_transposed : kernel::product;
  // Tiles that a solved row is multiplied with lie on so many nodes, which come round in turn.
  const std::int32_t readers = up ? d.grid_columns : d.grid_rows;

  for (std::int32_t turn = 0; turn < w.rows; ++turn) {
    const std::int32_t row = up ? w.rows - 1 - turn : turn;
    const bool mine = w.node(row, row) == w.me;
    // Each sweep subtracts once per row before this one and takes one step per piece.
    const Version solved{up ? w.rows - 1 + 2 * w.pieces_of(row) : row + w.pieces_of(row)};
    TaskOptions options;
    options.priority = 1023;
    for (std::int32_t k = 0; mine && k < w.pieces_of(row); ++k) {
      const std::int32_t c = up ? w.begin(row + 1) - 1 - k : w.begin(row) + k;
      options.parameters =
          KernelParameters(kernel::PieceParameters{l.layout().offset_in_wide(TileColumn{c})});
      co_await tasks.insert(step, options, read_write(w.sides(x, row)),
                            read(l(TileRow{row}, TileColumn{c}), Version{0}));
    }
    for (std::int32_t distance = 1; distance < w.rows - turn; ++distance) {
      const std::int32_t other = up ? row - distance : row + distance;
      const std::int32_t i = std::max(row, other);
      const std::int32_t j = std::min(row, other);
      const NodeId at = w.node(i, j);
      const NodeId to = w.node(other, other);
      const TileRef product = up ? w.across(j, i) : w.down(i, j);
      const Version ready = w.after(turn / (up ? d.grid_rows : d.grid_columns));
      const std::int32_t priority = row_priority(w, distance);
      if (mine && distance <= readers && at != w.me) {  // who reads this row there first
        co_await tasks.announce(read(w.sides(x, row), solved), at, 1023);
      }
      for (std::int32_t c = w.begin(j); at == w.me && c < w.begin(j + 1); ++c) {
        const bool first = c == w.begin(j);
        co_await tasks.insert(multiply, product_options(w, c, !first && !up, priority),
                              first ? write(product) : read_write(product),
                              read(l(TileRow{i}, TileColumn{c}), Version{0}),
                              read(w.sides(x, row), solved));
        tasks.release(read(l(TileRow{i}, TileColumn{c}), Version{0}));
      }
      if (at == w.me && to != w.me) co_await tasks.announce(read(product, ready), to, priority);
      if (to == w.me) {
        options.priority = priority;
        options.parameters = KernelParameters();
        co_await tasks.insert(kernel::subtract, options, read_write(w.sides(x, other)),
                              read(product, ready));
      }
      if (to == w.me || at == w.me) tasks.release(read(product, ready));
    }
    tasks.release(read(w.sides(x, row), solved));
  }
}

/// y -= A x: each stored tile off the diagonal is used twice, as it is and transposed.
Program multiply(TaskStream& tasks, Matrix<double> y, Matrix<double> a, Matrix<double> x,
                 TileColumn side, Products temporaries) {
  const Walk w(tasks, a, x, side, std::move(temporaries));
  const Distribution& d = a.distribution();
  const Version given{0};

  for (std::int32_t j = 0; j < w.rows; ++j) {
    for (std::int32_t i = j; i < w.rows; ++i) {
      const bool diagonal = i == j;
      const bool mine = w.node(i, j) == w.me;
      if (!mine && w.node(j, j) == w.me &&
          i < j + d.grid_rows) {  // who reads x(j), x(i) here first
        co_await tasks.announce(read(w.sides(x, j), given), w.node(i, j), 0);
      }
      if (!mine && !diagonal && w.node(i, i) == w.me && j < d.grid_columns) {
        co_await tasks.announce(read(w.sides(x, i), given), w.node(i, j), 0);
      }
      const Version down_ready{j / d.grid_columns * w.pieces + w.pieces_of(j)};
      const Version across_ready = w.after(diagonal ? 0 : (i - j - 1) / d.grid_rows);
      TaskOptions plain;
      for (std::int32_t c = w.begin(j); mine && c < w.begin(j + 1); ++c) {
        const bool first = c == w.begin(j);
        const TileRef tile = a(TileRow{i}, TileColumn{c});
        const TileRef down = w.down(i, j);
        co_await tasks.insert(diagonal ? kernel::product_symmetric : kernel::product,
                              product_options(w, c, !first, 0),
                              first ? write(down) : read_write(down), read(tile, given),
                              read(w.sides(x, j), given));
        if (!diagonal) {
          const TileRef across = w.across(j, i);
          co_await tasks.insert(kernel::product_transposed, product_options(w, c, false, 0),
                                first ? write(across) : read_write(across), read(tile, given),
                                read(w.sides(x, i), given));
        }
        tasks.release(read(tile, given));
      }
      const NodeId to_down = w.node(i, i);
      const NodeId to_across = w.node(j, j);
      if (mine && to_down != w.me) {
        co_await tasks.announce(read(w.down(i, j), down_ready), to_down, 0);
      }
      if (to_down == w.me) {
        co_await tasks.insert(kernel::subtract, plain, read_write(w.sides(y, i)),
                              read(w.down(i, j), down_ready));
      }
      if (mine && !diagonal && to_across != w.me) {
        co_await tasks.announce(read(w.across(j, i), across_ready), to_across, 0);
      }
      if (!diagonal && to_across == w.me) {
        co_await tasks.insert(kernel::subtract, plain, read_write(w.sides(y, j)),
                              read(w.across(j, i), across_ready));
      }
      if (mine || to_down == w.me) tasks.release(read(w.down(i, j), down_ready));
      if (!diagonal && (mine || to_across == w.me)) {
        tasks.release(read(w.across(j, i), across_ready));
      }
    }
  }
}

/// One program after the other, for the wide columns of the right-hand sides.
Program in_turn(TaskStream& tasks, std::vector<std::function<Program(TaskStream&)>> programs) {
  for (const auto& make : programs) {
    Program part = make(tasks);
    while (part.resume()) co_await tasks.room();
  }
}

JobSpec job_of(std::string name, std::vector<Matrix<double>> matrices,
               const std::vector<Products>& products,
               std::vector<std::function<Program(TaskStream&)>> programs) {
  JobSpec spec;
  spec.name = std::move(name);
  for (const Products& p : products) {
    for (const Matrix<double>& m : {p.down, p.across}) {
      matrices.push_back(m);
      spec.temporaries.push_back(m.id());
    }
  }
  for (const Matrix<double>& m : matrices) {
    spec.matrices.push_back(m.id());
    spec.keep_alive.push_back(m.state());
  }
  spec.program = [programs = std::move(programs)](TaskStream& tasks) {
    return in_turn(tasks, programs);
  };
  return spec;
}

}  // namespace

Matrix<double> right_hand_sides(const Matrix<double>& a, std::int64_t columns) {
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
  return a.node().matrix<double>(spec);
}

JobSpec solve_cholesky(const Matrix<double>& l, const Matrix<double>& x) {
  HEDDLE_CHECK(l.rows() == x.rows() && l.layout().tile == x.layout().tile);
  const std::vector<Products> products = make_products(l, x);
  std::vector<std::function<Program(TaskStream&)>> programs;
  for (TileColumn c{0}; c.value() < x.layout().tile_columns(); ++c) {
    const Products& p = products[static_cast<std::size_t>(c.value())];
    for (const Sweep sweep : {Sweep::down, Sweep::up}) {
      programs.emplace_back(
          [=](TaskStream& tasks) { return substitute(tasks, l, x, c, p, sweep); });
    }
  }
  return job_of("solve", {l, x}, products, std::move(programs));
}

JobSpec subtract_symmetric_product(const Matrix<double>& y, const Matrix<double>& a,
                                   const Matrix<double>& x) {
  HEDDLE_CHECK(y.layout() == x.layout() && a.rows() == x.rows());
  const std::vector<Products> products = make_products(a, x);
  std::vector<std::function<Program(TaskStream&)>> programs;
  for (TileColumn c{0}; c.value() < x.layout().tile_columns(); ++c) {
    programs.emplace_back([=, p = products[static_cast<std::size_t>(c.value())]](
                              TaskStream& tasks) { return multiply(tasks, y, a, x, c, p); });
  }
  return job_of("product", {y, a, x}, products, std::move(programs));
}

}  // namespace heddle
