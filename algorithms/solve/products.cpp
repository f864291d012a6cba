#include "algorithms/solve/products.hpp"

#include "algorithms/solve/walk.hpp"
#include "base/assert.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

using solve::Products;
using solve::Walk;

/// y -= A x: each stored tile off the diagonal is used twice, as it is and transposed.
Program multiply_symmetric(TaskStream& tasks, Matrix<double> y, Matrix<double> a, Matrix<double> x,
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

/// to -= op(A) from: each tile of A makes a product of its part of `from`, where it lives.
Program multiply_general(TaskStream& tasks, Matrix<double> to, TileColumn to_side, Matrix<double> a,
                         Matrix<double> from, TileColumn side, Products temporaries,
                         bool transposed) {
  const Walk w(tasks, a, from, side, std::move(temporaries));
  const Distribution& d = a.distribution();
  const Version given{0};
  const Kernel& multiply = transposed ? kernel::product_transposed : kernel::product;
  const std::int32_t wides = a.layout().wide_columns();
  const std::int32_t outer = transposed ? w.rows : wides;  // rows of `from`
  const std::int32_t inner = transposed ? wides : w.rows;  // rows of `to`
  const std::int32_t nodes = transposed ? d.grid_columns : d.grid_rows;

  for (std::int32_t k = 0; k < outer; ++k) {
    const protocol::Access operand = read(w.sides(from, k), given);
    const bool has_operand = w.home(from, k) == w.me;
    bool reads = has_operand;
    for (std::int32_t o = 0; o < inner; ++o) {
      const std::int32_t i = transposed ? k : o;
      const std::int32_t j = transposed ? o : k;
      const NodeId at = w.node(i, j);
      const NodeId receiver = to.home(TileRow{o}, to_side).node;
      if (has_operand && at != w.me && o < nodes) co_await tasks.announce(operand, at, 0);
      const TileRef product = transposed ? w.across(j, i) : w.down(i, j);
      for (std::int32_t c = w.begin(j); at == w.me && c < w.begin(j + 1); ++c) {
        const bool first = c == w.begin(j);
        const protocol::Access tile = read(a(TileRow{i}, TileColumn{c}), given);
        reads = true;
        co_await tasks.insert(multiply, product_options(w, c, !first && !transposed, 0),
                              first ? write(product) : read_write(product), tile, operand);
        tasks.release(tile);
      }
      // A product's tile is used again by every row of `from` whose turn comes round to it.
      const std::int32_t writes = transposed ? (k / d.grid_rows + 1) * w.pieces_of(j)
                                             : k / d.grid_columns * w.pieces + w.pieces_of(k);
      const protocol::Access ready = read(product, Version{writes});
      if (at == w.me && receiver != w.me) co_await tasks.announce(ready, receiver, 0);
      if (receiver == w.me) {
        co_await tasks.insert(kernel::subtract, TaskOptions{}, read_write(to(TileRow{o}, to_side)),
                              ready);
      }
      if (at == w.me || receiver == w.me) tasks.release(ready);
    }
    if (reads) tasks.release(operand);
  }
}

/// A job of a program for each wide column of `from`.
template <class Make>
JobSpec product_job(std::string name, const Matrix<double>& to, const Matrix<double>& a,
                    const Matrix<double>& from, const Make& make) {
  const std::vector<Products> products = solve::make_products(a, from);
  std::vector<solve::MakeProgram> programs;
  for (TileColumn c{0}; c.value() < from.layout().tile_columns(); ++c) {
    programs.emplace_back([=, p = products[static_cast<std::size_t>(c.value())]](
                              TaskStream& tasks) { return make(tasks, c, p); });
  }
  return solve::job_of(std::move(name), {to, a, from}, products, std::move(programs));
}

void check_product(const Matrix<double>& tall, const Matrix<double>& a, const Matrix<double>& x) {
  HEDDLE_CHECK(tall.rows() == a.rows() && tall.layout().tile == a.layout().tile &&
                   x.rows() == a.columns() && x.layout().tile == a.layout().wide_width() &&
                   tall.columns() == x.columns() && tall.layout().wide == x.layout().wide,
               "{} x {}, {} x {} and {} x {}", tall.rows(), tall.columns(), a.rows(), a.columns(),
               x.rows(), x.columns());
}

}  // namespace

JobSpec subtract_symmetric_product(const Matrix<double>& y, const Matrix<double>& a,
                                   const Matrix<double>& x) {
  HEDDLE_CHECK(y.layout() == x.layout() && a.rows() == x.rows());
  return product_job("product", y, a, x, [=](TaskStream& tasks, TileColumn c, const Products& p) {
    return multiply_symmetric(tasks, y, a, x, c, p);
  });
}

JobSpec subtract_product(const Matrix<double>& y, const Matrix<double>& a,
                         const Matrix<double>& x) {
  check_product(y, a, x);
  return product_job("product", y, a, x, [=](TaskStream& tasks, TileColumn c, const Products& p) {
    return multiply_general(tasks, y, c, a, x, c, p, false);
  });
}

JobSpec subtract_transposed_product(const Matrix<double>& x, const Matrix<double>& a,
                                    const Matrix<double>& y) {
  check_product(y, a, x);
  return product_job("transposed product", x, a, y,
                     [=](TaskStream& tasks, TileColumn c, const Products& p) {
                       return multiply_general(tasks, x, c, a, y, c, p, true);
                     });
}

JobSpec subtract_transposed_product(const Matrix<double>& x, const Matrix<double>& a,
                                    const Matrix<double>& y, TileColumn side) {
  HEDDLE_CHECK(y.rows() == a.rows() && y.layout().tile == a.layout().tile &&
                   x.rows() == a.columns() && x.layout().tile == a.layout().wide_width() &&
                   x.columns() == y.layout().column_count(side) && x.layout().tile_columns() == 1,
               "{} x {}, {} x {} and column {} of {} x {}", x.rows(), x.columns(), a.rows(),
               a.columns(), side.value(), y.rows(), y.columns());
  const std::vector<Products> products{solve::make_products_for(a, x.columns())};
  return solve::job_of("transposed product", {x, a, y}, products,
                       {[=, p = products.front()](TaskStream& tasks) {
                         return multiply_general(tasks, x, TileColumn{0}, a, y, side, p, true);
                       }});
}

}  // namespace heddle
