#include <optional>
#include <utility>
#include <vector>

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
using solve::wide_of;

/// Rows of a matrix of right-hand sides, as given.
std::vector<Broadcast> given_rows(const Walk& w, const Matrix<double>& x) {
  std::vector<Broadcast> rows;
  for (TileRow i{0}; i < x.layout().end_row(); ++i) {
    rows.emplace_back(w.tasks, read(w.sides(x, i), Version{0}));
  }
  return rows;
}

/// y -= A x: each stored tile off the diagonal is used twice, as it is and transposed.
Program multiply_symmetric(TaskStream& tasks, Matrix<double> y, Matrix<double> a, Matrix<double> x,
                           TileColumn side, Products temporaries) {
  Walk w(tasks, a, side, temporaries);
  std::vector<Broadcast> rows = given_rows(w, x);

  for (WideColumn j{0}; j < a.layout().end_wide(); ++j) {
    Broadcast& x_j = rows[static_cast<std::size_t>(j.value())];
    for (TileRow i = row_of(j); i < a.layout().end_row(); ++i) {
      Broadcast& x_i = rows[static_cast<std::size_t>(i.value())];
      const bool diagonal = i == row_of(j);
      const NodeId at = w.node(i, j);
      TileProduct down = w.next_down(i, j);
      co_await x_j.to(at, 0);
      if (!diagonal) co_await x_i.to(at, 0);
      std::optional<TileProduct> across;
      if (!diagonal) across = w.next_across(i, j);
      for (TileColumn c = w.begin(j); at == w.me && c < w.end(j); ++c) {
        const protocol::Access tile = read(a(i, c), Version{0});
        const bool first = c == w.begin(j);
        co_await w.take_strips(down, c, 0);
        co_await tasks.insert(diagonal ? kernel::product_symmetric : kernel::product,
                              {written(w, down, c), tile, x_j.tile()},
                              product_options(w, c, !first, 0));
        if (!diagonal) {
          co_await w.take_strips(*across, c, 0);
          co_await tasks.insert(kernel::product_transposed,
                                {written(w, *across, c), tile, x_i.tile()},
                                product_options(w, c, false, 0));
        }
        tasks.release(tile);
      }
      if (at == w.me) w.release_strips(down);
      if (at == w.me && across) w.release_strips(*across);
      const TileRef y_i = w.sides(y, i);
      const TileRef y_j = w.sides(y, row_of(j));
      co_await down.to(y_i.home.node, 0);
      if (y_i.home.node == w.me) {
        co_await tasks.insert(kernel::subtract, {read_write(y_i), down.tile()});
      }
      down.release();
      if (diagonal) continue;
      co_await across->to(y_j.home.node, 0);
      if (y_j.home.node == w.me) {
        co_await tasks.insert(kernel::subtract, {read_write(y_j), across->tile()});
      }
      across->release();
    }
  }
}

/// to -= op(A) from, with tile column `from_side` of `from`: each tile of A makes a product of its
/// part of `from`, where it lives.
Program multiply_general(TaskStream& tasks, Matrix<double> to, TileColumn to_side, Matrix<double> a,
                         Matrix<double> from, TileColumn from_side, Products temporaries,
                         bool transposed) {
  Walk w(tasks, a, from_side, temporaries);
  const Kernel& multiply = transposed ? kernel::product_transposed : kernel::product;

  for (TileRow k{0}; k < from.layout().end_row(); ++k) {
    Broadcast operand(tasks, read(w.sides(from, k), Version{0}));
    for (TileRow o{0}; o < to.layout().end_row(); ++o) {
      const TileRow i = transposed ? k : o;
      const WideColumn j = wide_of(transposed ? o : k);
      const NodeId at = w.node(i, j);
      const NodeId receiver = to.home(o, to_side).node;
      TileProduct product = transposed ? w.next_across(i, j) : w.next_down(i, j);
      co_await operand.to(at, 0);
      for (TileColumn c = w.begin(j); at == w.me && c < w.end(j); ++c) {
        const protocol::Access tile = read(a(i, c), Version{0});
        const bool accumulates = !transposed && c != w.begin(j);
        co_await w.take_strips(product, c, 0);
        co_await tasks.insert(multiply, {written(w, product, c), tile, operand.tile()},
                              product_options(w, c, accumulates, 0));
        tasks.release(tile);
      }
      if (at == w.me) w.release_strips(product);
      co_await product.to(receiver, 0);
      if (receiver == w.me) {
        co_await tasks.insert(kernel::subtract, {read_write(to(o, to_side)), product.tile()});
      }
      product.release();
    }
    operand.release();
  }
}

/// A job of a program for each wide column of `from`.
template <class Make>
JobSpec product_job(std::string name, const Matrix<double>& to, const Matrix<double>& a,
                    const Matrix<double>& from, const Make& make) {
  const std::vector<Products> products = solve::make_products(a, from);
  std::vector<solve::MakeProgram> programs;
  for (TileColumn c{0}; c < from.layout().end_column(); ++c) {
    programs.emplace_back([=, p = products[static_cast<std::size_t>(c.value())]](
                              TaskStream& tasks) { return make(tasks, c, p); });
  }
  return solve::job_of(std::move(name), {to, a, from}, products, std::move(programs));
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
  require(a.rows() == a.columns() && a.storage() == Storage::lower,
          "subtract_symmetric_product: A is {} x {}; it must be square with Storage::lower",
          a.rows(), a.columns());
  require_product("subtract_symmetric_product", y, a, x);
  return product_job("product", y, a, x, [=](TaskStream& tasks, TileColumn c, const Products& p) {
    return multiply_symmetric(tasks, y, a, x, c, p);
  });
}

JobSpec subtract_product(const Matrix<double>& y, const Matrix<double>& a,
                         const Matrix<double>& x) {
  require_product("subtract_product", y, a, x);
  return product_job("product", y, a, x, [=](TaskStream& tasks, TileColumn c, const Products& p) {
    return multiply_general(tasks, y, c, a, x, c, p, false);
  });
}

JobSpec subtract_transposed_product(const Matrix<double>& x, const Matrix<double>& a,
                                    const Matrix<double>& y) {
  require_product("subtract_transposed_product", y, a, x);
  return product_job("transposed product", x, a, y,
                     [=](TaskStream& tasks, TileColumn c, const Products& p) {
                       return multiply_general(tasks, x, c, a, y, c, p, true);
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
                         return multiply_general(tasks, x, TileColumn{0}, a, y, side, p, true);
                       }});
}

}  // namespace heddle
