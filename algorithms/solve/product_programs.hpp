#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "algorithms/solve/passing.hpp"
#include "algorithms/solve/tile_products.hpp"
#include "node-runtime/matrix.hpp"
#include "node-runtime/threads/program.hpp"

/// Programs of products with a few columns.
namespace heddle::solve {

/// A of a product: tiles that are there, or that pass by, which are then made by tasks.
struct Operator {
  Matrix<double> tiles;
  std::shared_ptr<const SetPart> set = nullptr;  ///< null: nothing passes by, or is only planned
  std::optional<GeneratedTiles> generated = std::nullopt;  ///< how tasks make what passes by

  [[nodiscard]] bool passes() const { return tiles.spec().temporary; }
  /// What products read.
  [[nodiscard]] protocol::Access tile(TileRow i, TileColumn c) const {
    return read(tiles(i, c), Version{passes() ? 1 : 0});
  }
};

/// A product for one wide column of both y and x.
struct WideProduct : Product {
  TileColumn column;
  Products temporaries;
};

/// y -= A x for each product, A symmetric: each stored tile off the diagonal is used twice, as it
/// is and transposed. A tile that passes by is loaded before its products and given up behind them.
Program multiply_symmetric(TaskStream& tasks, Operator a, std::vector<WideProduct> products);

/// x -= A^T y, with tile column `y_side` of y: each tile of A makes a product where it lives.
Program multiply_transposed(TaskStream& tasks, Matrix<double> x, TileColumn x_side,
                            Matrix<double> a, Matrix<double> y, TileColumn y_side,
                            Products temporaries);

/// y -= A x for each product, by the rows of A, whose tiles that are not stored count as zeros.
/// `back`: then y -= A^T x with each row of x as it is then, which takes the rows of A while they
/// are there.
Program multiply_general(TaskStream& tasks, Operator a, std::vector<WideProduct> products,
                         std::vector<WideProduct> back);

}  // namespace heddle::solve
