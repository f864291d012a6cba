#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/solve/passing.hpp"
#include "algorithms/solve/product_programs.hpp"
#include "algorithms/solve/solve.hpp"
#include "algorithms/solve/tile_products.hpp"
#include "base/require.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

using solve::multiply_general;
using solve::multiply_symmetric;
using solve::multiply_transposed;
using solve::Operator;
using solve::Products;
using solve::WideProduct;

/// The wide columns of a product, each with temporaries of its own.
std::vector<WideProduct> wide_products(const Matrix<double>& a, const Product& product) {
  const std::vector<Products> temporaries = solve::make_products(a, product.x);
  std::vector<WideProduct> all;
  for (TileColumn c{0}; c < product.x.layout().end_column(); ++c) {
    all.push_back({product, c, temporaries[static_cast<std::size_t>(c.value())]});
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
  return product_job(
      "transposed product", a, {x, y}, [a](TaskStream& tasks, const WideProduct& one) {
        return multiply_transposed(tasks, one.y, one.column, a, one.x, one.column, one.temporaries);
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

MatrixSpec passing_spec(const MatrixSpec& a, PassingFrom from) {
  MatrixSpec spec = a;
  spec.temporary = true;
  if (from == PassingFrom::host) spec.distribution.devices = 0;
  return spec;
}

namespace {

/// A job of one program in which each tile of `a` serves all of `products`, then `back`.
template <class Make>
JobSpec products_job(const MatrixOperand& a, const std::vector<Product>& products,
                     const std::vector<Product>& back, const Make& make) {
  std::vector<Matrix<double>> matrices{a.tiles};
  if (a.generated) {
    for (const Matrix<double>& numbers : a.generated->numbers()) matrices.push_back(numbers);
  }
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
  return solve::job_of("products", std::move(matrices), temporaries, {[=](TaskStream& tasks) {
                         return make(tasks, Operator{a.tiles, set, a.generated}, forward, backward);
                       }});
}

}  // namespace

JobSpec subtract_symmetric_products(const MatrixOperand& a, const std::vector<Product>& products) {
  require_symmetric("subtract_symmetric_products", a.tiles);
  for (const Product& product : products) {
    require_product("subtract_symmetric_products", product.y, a.tiles, product.x);
  }
  return products_job(
      a, products, {},
      [](TaskStream& tasks, const Operator& tiles, const std::vector<WideProduct>& forward,
         const std::vector<WideProduct>& /*backward*/) {
        return multiply_symmetric(tasks, tiles, forward);
      });
}

JobSpec subtract_products(const MatrixOperand& a, const std::vector<Product>& products,
                          const std::vector<Product>& back) {
  for (const Product& product : products) {
    require_product("subtract_products", product.y, a.tiles, product.x);
  }
  for (const Product& product : back) {
    require_product("subtract_products", product.x, a.tiles, product.y);
  }
  return products_job(a, products, back, multiply_general);
}

}  // namespace heddle
