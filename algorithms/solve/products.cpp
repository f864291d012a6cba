#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/solve/passing.hpp"
#include "algorithms/solve/solve.hpp"
#include "algorithms/solve/tile_products.hpp"
#include "base/require.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {
namespace {

using solve::Products;
using solve::row_of;
using solve::TileProduct;
using solve::Walk;

struct LoadParameters {
  const SetPart* set;  ///< null: the job is only planned
  std::int64_t row;  ///< of the tile's first element
  std::int64_t column;
};

std::int64_t run_load(const KernelArguments& arguments) {
  const auto p = arguments.parameters.as<LoadParameters>();
  (*p.set)(GlobalRow{p.row}, GlobalColumn{p.column}, arguments.tiles[0]);
  return 0;
}

constexpr Kernel load_kernel{.name = "load", .host = run_load};

/// A of a product: tiles that are there, or that pass by.
struct Operator {
  Matrix<double> tiles;
  std::shared_ptr<const SetPart> set = nullptr;

  [[nodiscard]] bool passes() const { return tiles.spec().temporary; }
  [[nodiscard]] protocol::Access tile(TileRow i, TileColumn c) const {
    return read(tiles(i, c), Version{passes() ? 1 : 0});
  }
  /// The task that makes a tile of this node, if it passes by.
  [[nodiscard]] TaskStream::Room load(TaskStream& tasks, TileRow i, TileColumn c) const {
    if (!passes()) return tasks.room();
    TaskOptions options;
    options.parameters = KernelParameters(LoadParameters{
        set.get(), tiles.layout().row_begin(i), tiles.layout().column_begin(c)});
    return tasks.insert(load_kernel, {write(tiles(i, c))}, options);
  }
};

/// Tiles that pass by are loaded when nothing waits that uses some: few of them are there at a time.
constexpr std::int32_t use = 1;
constexpr TaskOptions used{.priority = use};

/// y -= A x, or y -= A^T x, for one wide column of both.
struct WideProduct {
  Matrix<double> y;
  Matrix<double> x;
  TileColumn column;
  Products temporaries;
};

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
        w(tasks, a, product.column, product.temporaries),
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

/// y -= A x: each stored tile off the diagonal is used twice, as it is and transposed. A tile of a
/// matrix that passes by is loaded before its products and given up behind them.
Program multiply_symmetric(TaskStream& tasks, Operator a, std::vector<WideProduct> products) {
  std::vector<Side> sides = sides_of(tasks, a.tiles, products);
  const TileLayout& layout = a.tiles.layout();

  for (WideColumn j{0}; j < layout.end_wide(); ++j) {
    for (TileRow i = row_of(j); i < layout.end_row(); ++i) {
      const bool diagonal = i == row_of(j);
      const NodeId at = a.tiles.distribution().node(i, j);
      const bool is_here = at == tasks.node();
      const TileColumn begin = layout.wide_begin(j);
      const TileColumn end = layout.wide_begin(j + 1);
      for (TileColumn c = begin; is_here && c < end; ++c) co_await a.load(tasks, i, c);
      for (Side& side : sides) {
        Walk& w = side.w;
        TileProduct down = w.next_down(i, j);
        co_await side.x(row_of(j)).to(at, use);
        if (!diagonal) co_await side.x(i).to(at, use);
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
        co_await down.to(y_i.home.node, use);
        if (y_i.home.node == w.me) {
          co_await tasks.insert(kernel::subtract, {read_write(y_i), down.tile()}, used);
        }
        down.release();
        if (diagonal) continue;
        co_await across->to(y_j.home.node, use);
        if (y_j.home.node == w.me) {
          co_await tasks.insert(kernel::subtract, {read_write(y_j), across->tile()}, used);
        }
        across->release();
      }
      for (TileColumn c = begin; is_here && c < end; ++c) tasks.release(a.tile(i, c));
    }
  }
}

/// to -= A^T from for tile row i of A, whose rows of `from` are those of `operand`.
Program multiply_row_transposed(TaskStream& tasks, Operator a, TileRow i, Matrix<double> to,
                                TileColumn to_side, Walk& w, Broadcast& operand) {
  for (WideColumn j{0}; j < a.tiles.layout().end_wide(); ++j) {
    if (!a.tiles.stores(i, w.begin(j))) continue;
    const NodeId at = w.node(i, j);
    const TileRef x_j = to(row_of(j), to_side);
    TileProduct product = w.next_across(i, j);
    co_await operand.to(at, use);
    for (TileColumn c = w.begin(j); at == w.me && c < w.end(j); ++c) {
      co_await w.take_strips(product, c, use);
      co_await tasks.insert(kernel::product_transposed,
                            {written(w, product, c), a.tile(i, c), operand.tile()},
                            product_options(w, c, false, use));
    }
    if (at == w.me) w.release_strips(product);
    co_await product.to(x_j.home.node, use);
    if (x_j.home.node == w.me) {
      co_await tasks.insert(kernel::subtract, {read_write(x_j), product.tile()}, used);
    }
    product.release();
  }
}

/// x -= A^T y, with tile column `y_side` of y: each tile of A makes a product where it lives.
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

/// y -= A x, by the rows of A. `back`: then x' -= A^T y with each row of y as it is then, which
/// takes the rows of A while they are there.
Program multiply_general(TaskStream& tasks, Operator a, std::vector<WideProduct> products,
                         std::vector<WideProduct> back) {
  std::vector<Side> sides = sides_of(tasks, a.tiles, products);
  std::vector<Walk> backs;
  for (const WideProduct& b : back) backs.emplace_back(tasks, a.tiles, b.column, b.temporaries);
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
      for (TileColumn c = begin; is_here && c < end; ++c) co_await a.load(tasks, i, c);
      for (Side& side : sides) {
        Walk& w = side.w;
        Broadcast& x_j = side.x(row_of(j));
        TileProduct product = w.next_down(i, j);
        co_await x_j.to(at, use);
        for (TileColumn c = begin; is_here && c < end; ++c) {
          co_await w.take_strips(product, c, use);
          co_await tasks.insert(kernel::product, {written(w, product, c), a.tile(i, c), x_j.tile()},
                                product_options(w, c, c != begin, use));
        }
        if (is_here) w.release_strips(product);
        const TileRef y_i = w.sides(side.y, i);
        co_await product.to(y_i.home.node, use);
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
      Program row = multiply_row_transposed(tasks, a, i, back[b].y, back[b].column, backs[b],
                                            operand);
      while (row.resume()) co_await tasks.room();
      operand.release();
    }
    release_row(tasks, a, i);
  }
}

/// The wide columns of a product, each with temporaries of its own.
std::vector<WideProduct> wide_products(const Matrix<double>& a, const Product& product) {
  const std::vector<Products> temporaries = solve::make_products(a, product.x);
  std::vector<WideProduct> all;
  for (TileColumn c{0}; c < product.x.layout().end_column(); ++c) {
    all.push_back({product.y, product.x, c, temporaries[static_cast<std::size_t>(c.value())]});
  }
  return all;
}

std::vector<Products> temporaries_of(const std::vector<WideProduct>& products) {
  std::vector<Products> all;
  for (const WideProduct& product : products) all.push_back(product.temporaries);
  return all;
}

/// A job of a program for each wide column of x, one after the other.
template <class Make>
JobSpec product_job(std::string name, const Matrix<double>& a, const Product& product,
                    const Make& make) {
  const std::vector<WideProduct> products = wide_products(a, product);
  std::vector<solve::MakeProgram> programs;
  for (const WideProduct& one : products) {
    programs.emplace_back([make, one](TaskStream& tasks) { return make(tasks, one); });
  }
  return solve::job_of(std::move(name), {product.y, a, product.x}, temporaries_of(products),
                       std::move(programs));
}

void require_symmetric(const char* function, const Matrix<double>& a) {
  require(a.rows() == a.columns() && a.storage() == Storage::lower,
          "{}: A is {} x {}; it must be square with Storage::lower", function, a.rows(),
          a.columns());
}

/// `tall` is cut like the rows of `a`, and x like its wide columns.
bool fits(const Matrix<double>& tall, const Matrix<double>& a, const Matrix<double>& x) {
  return tall.rows() == a.rows() && tall.layout().tile == a.layout().tile &&
         x.rows() == a.columns() && x.layout().tile == a.layout().wide_width();
}

void require_product(const char* function, const Matrix<double>& tall, const Matrix<double>& a,
                     const Matrix<double>& x) {
  require(
      fits(tall, a, x) && tall.columns() == x.columns() && tall.layout().wide == x.layout().wide,
      "{}: y is {} x {} in tiles of {}, A is {} x {} in tiles of {} x {}, x is {} x {} in tiles "
      "of {}; y = A x must fit, with the tiles of y those of A's rows and the tiles of x those of "
      "A's columns",
      function, tall.rows(), tall.columns(), tall.layout().tile, a.rows(), a.columns(),
      a.layout().tile, a.layout().wide_width(), x.rows(), x.columns(), x.layout().tile);
}

}  // namespace

JobSpec subtract_symmetric_product(const Matrix<double>& y, const Matrix<double>& a,
                                   const Matrix<double>& x) {
  require_symmetric("subtract_symmetric_product", a);
  require_product("subtract_symmetric_product", y, a, x);
  return product_job("product", a, {y, x}, [a](TaskStream& tasks, const WideProduct& one) {
    return multiply_symmetric(tasks, Operator{a}, {one});
  });
}

JobSpec subtract_product(const Matrix<double>& y, const Matrix<double>& a,
                         const Matrix<double>& x) {
  require_product("subtract_product", y, a, x);
  return product_job("product", a, {y, x}, [a](TaskStream& tasks, const WideProduct& one) {
    return multiply_general(tasks, Operator{a}, {one}, {});
  });
}

JobSpec subtract_transposed_product(const Matrix<double>& x, const Matrix<double>& a,
                                    const Matrix<double>& y) {
  require_product("subtract_transposed_product", y, a, x);
  return product_job("transposed product", a, {x, y},
                     [a](TaskStream& tasks, const WideProduct& one) {
                       return multiply_transposed(tasks, one.y, one.column, a, one.x, one.column,
                                                  one.temporaries);
                     });
}

JobSpec subtract_transposed_product(const Matrix<double>& x, const Matrix<double>& a,
                                    const Matrix<double>& y, TileColumn side) {
  require(TileColumn{0} <= side && side < y.layout().end_column(),
          "subtract_transposed_product: tile column {} of y, which has {}", side.value(),
          y.layout().tile_columns());
  require(
      fits(y, a, x) && x.layout().tile_columns() == 1 &&
          x.columns() == y.layout().column_count(side),
      "subtract_transposed_product: x is {} x {} in tiles of {}, A is {} x {} in tiles of {} x "
      "{}, tile column {} of y is {} x {} in tiles of {}; x = A^T y must fit, with one tile column "
      "of x",
      x.rows(), x.columns(), x.layout().tile, a.rows(), a.columns(), a.layout().tile,
      a.layout().wide_width(), side.value(), y.rows(), y.layout().column_count(side),
      y.layout().tile);
  const std::vector<Products> products{solve::make_products_for(a, x.columns())};
  return solve::job_of("transposed product", {x, a, y}, products,
                       {[=, p = products.front()](TaskStream& tasks) {
                         return multiply_transposed(tasks, x, TileColumn{0}, a, y, side, p);
                       }});
}

MatrixSpec passing_spec(const MatrixSpec& a) {
  MatrixSpec spec = a;
  spec.temporary = true;
  spec.distribution.devices = 0;
  return spec;
}

namespace {

/// A job of one program in which each tile of `a` serves all of `products`, then `back`.
template <class Make>
JobSpec passing_job(const PassingMatrix& a, const std::vector<Product>& products,
                    const std::vector<Product>& back, const Make& make) {
  require(a.tiles.spec().temporary, "a product with a matrix that passes by: its tiles must be "
                                    "temporary (passing_spec)");
  std::vector<Matrix<double>> matrices{a.tiles};
  std::vector<WideProduct> forward;
  std::vector<WideProduct> backward;
  const auto add = [&](const std::vector<Product>& from, std::vector<WideProduct>& to) {
    for (const Product& product : from) {
      matrices.insert(matrices.end(), {product.y, product.x});
      const std::vector<WideProduct> wide = wide_products(a.tiles, product);
      to.insert(to.end(), wide.begin(), wide.end());
    }
  };
  add(products, forward);
  add(back, backward);
  std::vector<Products> temporaries = temporaries_of(forward);
  const std::vector<Products> others = temporaries_of(backward);
  temporaries.insert(temporaries.end(), others.begin(), others.end());
  const auto set = a.set ? std::make_shared<const SetPart>(a.set) : nullptr;
  return solve::job_of("products", std::move(matrices), temporaries,
                       {[=](TaskStream& tasks) {
                         return make(tasks, Operator{a.tiles, set}, forward, backward);
                       }});
}

}  // namespace

JobSpec subtract_symmetric_products(const PassingMatrix& a, const std::vector<Product>& products) {
  require_symmetric("subtract_symmetric_products", a.tiles);
  for (const Product& product : products) {
    require_product("subtract_symmetric_products", product.y, a.tiles, product.x);
  }
  return passing_job(a, products, {},
                     [](TaskStream& tasks, const Operator& tiles,
                        const std::vector<WideProduct>& forward,
                        const std::vector<WideProduct>& /*backward*/) {
                       return multiply_symmetric(tasks, tiles, forward);
                     });
}

JobSpec subtract_products(const PassingMatrix& a, const std::vector<Product>& products,
                          const std::vector<Product>& back) {
  for (const Product& product : products) {
    require_product("subtract_products", product.y, a.tiles, product.x);
  }
  for (const Product& product : back) {
    require_product("subtract_products", product.x, a.tiles, product.y);
  }
  return passing_job(a, products, back, multiply_general);
}

}  // namespace heddle
