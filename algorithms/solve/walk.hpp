#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "node-runtime/matrix.hpp"
#include "node-runtime/threads/program.hpp"

/// What the programs of solves and products share. Tiles of the matrix stay where they are: what a
/// tile makes of a row of x is a product tile beside it, which travels to the row that it belongs
/// to (docs/decisions/006).
namespace heddle::solve {

/// Temporaries for one wide column of right-hand sides. Products of tile (i, j) with rows of x
/// become a tile of `down` (added into row i) or `across` (added into row j), made where tile (i,
/// j) lives; a tile is used again after its release, and its versions count on.
struct Products {
  Matrix<double> down;
  Matrix<double> across;
};

/// For `width` columns, of which none is cut.
[[nodiscard]] Products make_products_for(const Matrix<double>& a, std::int64_t width);
/// For each wide column of `x`.
[[nodiscard]] std::vector<Products> make_products(const Matrix<double>& a, const Matrix<double>& x);

/// What the programs know: the matrix, one wide column of right-hand sides, and who is
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
  /// Where tile row i of a matrix of sides lives.
  [[nodiscard]] NodeId home(const Matrix<double>& matrix, std::int32_t i) const {
    return matrix.home(TileRow{i}, column).node;
  }
  /// The version of a product's tile after its `use`-th use (from 0), each of which writes `pieces`
  /// times.
  [[nodiscard]] Version after(std::int32_t use) const { return Version{(use + 1) * pieces}; }
};

/// Options of a product with tile column `piece` of the matrix.
[[nodiscard]] TaskOptions product_options(const Walk& w, std::int32_t piece, bool accumulate,
                                          std::int32_t priority);

using MakeProgram = std::function<Program(TaskStream&)>;

/// A job of these programs, one after the other.
[[nodiscard]] JobSpec job_of(std::string name, std::vector<Matrix<double>> matrices,
                             const std::vector<Products>& products,
                             std::vector<MakeProgram> programs);

}  // namespace heddle::solve
