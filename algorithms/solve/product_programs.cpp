#include "algorithms/solve/product_programs.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/kernels.hpp"

namespace heddle::solve {
namespace {

struct LoadParameters {
  const SetPart* set;  ///< null: the job is only planned
  std::int64_t row;    ///< of the tile's first element
  std::int64_t column;
};

std::int64_t run_load(const KernelArguments& arguments) {
  const auto p = arguments.parameters.as<LoadParameters>();
  (*p.set)(GlobalRow{p.row}, GlobalColumn{p.column}, arguments.tiles[0]);
  return 0;
}

constexpr Kernel load_kernel{.name = "load", .host = run_load};

/// Tiles that pass by are loaded when nothing waits that uses some: few of them are there at a
/// time.
constexpr std::int32_t load_priority = 0;
constexpr std::int32_t use = 1;
constexpr TaskOptions used{.priority = use};

/// No later task reads this node's tiles of row i.
void release_row(TaskStream& tasks, const Operator& a, TileRow i) {
  for (TileColumn c{0}; c < a.tiles.layout().end_column(); ++c) {
    if (!a.tiles.stores(i, c) || a.tiles.home(i, c).node != tasks.node()) continue;
    tasks.release(a.tile(i, c));
  }
}

/// Rows of a matrix of right-hand sides, as given.
std::vector<Broadcast> given_rows(const Walk& w, const Matrix<double>& x) {
  std::vector<Broadcast> rows;
  for (TileRow i{0}; i < x.layout().end_row(); ++i) {
    rows.emplace_back(w.tasks, read(w.sides(x, i), Version{0}));
  }
  return rows;
}

/// y -= A x for one wide column of x, as a program walks it beside others.
struct Side {
  Side(TaskStream& tasks, const Matrix<double>& a, const WideProduct& product)
      : y(product.y),
        w(tasks, a, product.column, product.temporaries, product.term),
        rows(given_rows(w, product.x)) {}

  /// Row k of x, which wide column k of A is multiplied by.
  [[nodiscard]] Broadcast& x(TileRow k) { return rows[static_cast<std::size_t>(k.value())]; }

  Matrix<double> y;
  Walk w;
  std::vector<Broadcast> rows;
};

std::vector<Side> sides_of(TaskStream& tasks, const Matrix<double>& a,
                           const std::vector<WideProduct>& products) {
  std::vector<Side> sides;
  for (const WideProduct& product : products) sides.emplace_back(tasks, a, product);
  return sides;
}

/// Makes the tiles that pass by.
class Loader {
 public:
  Loader(TaskStream& tasks, const Operator& a) : tasks_(tasks), a_(a) {
    if (a.passes() && a.generated) walk_.emplace(tasks, *a.generated);
  }

  /// Pieces of tile (i, j) are loaded on `at` next.
  void columns_to(WideColumn j, NodeId at) {
    if (walk_) walk_->columns_to(j, at, load_priority);
  }
  void rows_to(TileRow i, NodeId at) {
    if (walk_) walk_->rows_to(i, at, load_priority);
  }
  /// The task that makes a tile of this node, if it passes by.
  [[nodiscard]] TaskStream::Room load(TileRow i, TileColumn c) {
    if (!a_.passes()) return tasks_.room();
    if (walk_) return walk_->make(a_.tiles, i, c, load_priority);
    TaskOptions options;
    options.parameters = KernelParameters(LoadParameters{
        a_.set.get(), a_.tiles.layout().row_begin(i), a_.tiles.layout().column_begin(c)});
    options.priority = load_priority;
    return tasks_.insert(load_kernel, {write(a_.tiles(i, c))}, options);
  }

 private:
  TaskStream& tasks_;
  const Operator& a_;
  std::optional<GeneratedWalk> walk_;
};

}  // namespace

Program multiply_symmetric(TaskStream& tasks, Operator a, std::vector<WideProduct> products) {
  std::vector<Side> sides = sides_of(tasks, a.tiles, products);
  Loader loader(tasks, a);
  const TileLayout& layout = a.tiles.layout();

  for (WideColumn j{0}; j < layout.end_wide(); ++j) {
    for (TileRow i = row_of(j); i < layout.end_row(); ++i) {
      const bool diagonal = i == row_of(j);
      const NodeId at = a.tiles.distribution().node(i, j);
      const bool is_here = at == tasks.node();
      const TileColumn begin = layout.wide_begin(j);
      const TileColumn end = layout.wide_begin(j + 1);
      loader.columns_to(j, at);
      loader.rows_to(i, at);
      for (TileColumn c = begin; is_here && c < end; ++c) co_await loader.load(i, c);
      for (Side& side : sides) {
        Walk& w = side.w;
        TileProduct down = w.next_down(i, j);
        side.x(row_of(j)).to(at, use);
        if (!diagonal) side.x(i).to(at, use);
        std::optional<TileProduct> across;
        if (!diagonal) across = w.next_across(i, j);
        for (TileColumn c = begin; is_here && c < end; ++c) {
          const protocol::Access tile = a.tile(i, c);
          co_await w.take_strips(down, c, use);
          co_await tasks.insert(diagonal ? kernel::product_symmetric : kernel::product,
                                {written(w, down, c), tile, side.x(row_of(j)).tile()},
                                product_options(w, c, c != begin, use));
          if (diagonal) continue;
          co_await w.take_strips(*across, c, use);
          co_await tasks.insert(kernel::product_transposed,
                                {written(w, *across, c), tile, side.x(i).tile()},
                                product_options(w, c, false, use));
        }
        if (is_here) w.release_strips(down);
        if (is_here && across) w.release_strips(*across);
        const TileRef y_i = w.sides(side.y, i);
        const TileRef y_j = w.sides(side.y, row_of(j));
        down.to(y_i.home.node, use);
        if (y_i.home.node == w.me) {
          co_await tasks.insert(kernel::subtract, {read_write(y_i), down.tile()}, used);
        }
        down.release();
        if (diagonal) continue;
        across->to(y_j.home.node, use);
        if (y_j.home.node == w.me) {
          co_await tasks.insert(kernel::subtract, {read_write(y_j), across->tile()}, used);
        }
        across->release();
      }
      for (TileColumn c = begin; is_here && c < end; ++c) tasks.release(a.tile(i, c));
    }
  }
}

namespace {

/// to -= A^T from for tile row i of A, whose rows of `from` are those of `operand`.
Program multiply_row_transposed(TaskStream& tasks, Operator a, TileRow i, Matrix<double> to,
                                TileColumn to_side, Walk& w, Broadcast& operand) {
  for (WideColumn j{0}; j < a.tiles.layout().end_wide(); ++j) {
    if (!a.tiles.stores(i, w.begin(j))) continue;
    const NodeId at = w.node(i, j);
    const TileRef x_j = to(row_of(j), to_side);
    TileProduct product = w.next_across(i, j);
    operand.to(at, use);
    for (TileColumn c = w.begin(j); at == w.me && c < w.end(j); ++c) {
      co_await w.take_strips(product, c, use);
      co_await tasks.insert(kernel::product_transposed,
                            {written(w, product, c), a.tile(i, c), operand.tile()},
                            product_options(w, c, false, use));
    }
    if (at == w.me) w.release_strips(product);
    product.to(x_j.home.node, use);
    if (x_j.home.node == w.me) {
      co_await tasks.insert(kernel::subtract, {read_write(x_j), product.tile()}, used);
    }
    product.release();
  }
}

}  // namespace

Program multiply_transposed(TaskStream& tasks, Matrix<double> x, TileColumn x_side,
                            Matrix<double> a, Matrix<double> y, TileColumn y_side,
                            Products temporaries) {
  Walk w(tasks, a, y_side, temporaries);
  for (TileRow i{0}; i < a.layout().end_row(); ++i) {
    Broadcast operand(tasks, read(w.sides(y, i), Version{0}));
    Program row = multiply_row_transposed(tasks, Operator{a}, i, x, x_side, w, operand);
    while (row.resume()) co_await tasks.room();
    operand.release();
    release_row(tasks, Operator{a}, i);
  }
}

Program multiply_general(TaskStream& tasks, Operator a, std::vector<WideProduct> products,
                         std::vector<WideProduct> back) {
  std::vector<Side> sides = sides_of(tasks, a.tiles, products);
  std::vector<Walk> backs;
  for (const WideProduct& b : back) {
    backs.emplace_back(tasks, a.tiles, b.column, b.temporaries, b.term);
  }
  Loader loader(tasks, a);
  const TileLayout& layout = a.tiles.layout();

  for (TileRow i{0}; i < layout.end_row(); ++i) {
    std::int32_t writes = 0;
    for (WideColumn j{0}; j < layout.end_wide(); ++j) {
      const TileColumn begin = layout.wide_begin(j);
      const TileColumn end = layout.wide_begin(j + 1);
      if (!a.tiles.stores(i, begin)) continue;
      ++writes;
      const NodeId at = a.tiles.distribution().node(i, j);
      const bool is_here = at == tasks.node();
      loader.columns_to(j, at);
      loader.rows_to(i, at);
      for (TileColumn c = begin; is_here && c < end; ++c) co_await loader.load(i, c);
      for (Side& side : sides) {
        Walk& w = side.w;
        Broadcast& x_j = side.x(row_of(j));
        TileProduct product = w.next_down(i, j);
        x_j.to(at, use);
        for (TileColumn c = begin; is_here && c < end; ++c) {
          co_await w.take_strips(product, c, use);
          co_await tasks.insert(kernel::product, {written(w, product, c), a.tile(i, c), x_j.tile()},
                                product_options(w, c, c != begin, use));
        }
        if (is_here) w.release_strips(product);
        const TileRef y_i = w.sides(side.y, i);
        product.to(y_i.home.node, use);
        if (y_i.home.node == w.me) {
          co_await tasks.insert(kernel::subtract, {read_write(y_i), product.tile()}, used);
        }
        product.release();
      }
    }
    for (std::size_t b = 0; b < back.size(); ++b) {
      const bool is_product = std::ranges::any_of(
          sides, [&](const Side& side) { return side.y.id() == back[b].x.id(); });
      const Version version{is_product ? writes : 0};
      Broadcast operand(tasks, read(back[b].x(i, back[b].column), version));
      Program row =
          multiply_row_transposed(tasks, a, i, back[b].y, back[b].column, backs[b], operand);
      while (row.resume()) co_await tasks.room();
      operand.release();
    }
    release_row(tasks, a, i);
  }
}

}  // namespace heddle::solve
