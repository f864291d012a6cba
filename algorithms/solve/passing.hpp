#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "algorithms/generated/generated_tiles.hpp"
#include "base/index.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/matrix.hpp"

/// Several products at once with one matrix, each of whose tiles serves all of them. A matrix that
/// is not stored passes by: its tiles are made one after the other, each for the tasks that use it,
/// and given up behind them.
namespace heddle {

/// Sets all elements of a part of a matrix that begins at (row, column). Called by several threads;
/// an exception fails the job.
using SetPart = std::function<void(GlobalRow row, GlobalColumn column, TileView part)>;

/// A of these products.
struct MatrixOperand {
  Matrix<double> tiles;  ///< a stored matrix, or made from passing_spec()
  SetPart set = {};      ///< for tiles that pass by; not called while a job is only planned
  std::optional<GeneratedTiles> generated = std::nullopt;  ///< or how tasks make them
};

/// What makes tiles that pass by, and where.
enum class PassingFrom : std::uint8_t {
  host,       ///< a function, in host memory
  generated,  ///< tasks, where the tiles of the matrix live
};
/// Tiles of a matrix like `a` that pass by: temporaries, on the nodes of `a`.
[[nodiscard]] MatrixSpec passing_spec(const MatrixSpec& a, PassingFrom from = PassingFrom::host);

/// y and x of a product, shapes as for subtract_product(), and what it adds up. Below, A x and A^T
/// x stand for products with |A| too, and A^T x for sums of squares.
struct Product {
  Matrix<double> y;
  Matrix<double> x;
  kernel::Term term = kernel::Term::product;
};

/// y -= A x for each of `products`, with the symmetric A, whose parts above the diagonal are set
/// but not used.
[[nodiscard]] JobSpec subtract_symmetric_products(const MatrixOperand& a,
                                                  const std::vector<Product>& products);

/// y -= A x for each of `products`; then y -= A^T x for each of `back`, whose x may be one of the
/// former y and counts as it is after its product. The rows of A pass by once: a node holds the
/// tiles of one tile row at a time.
[[nodiscard]] JobSpec subtract_products(const MatrixOperand& a,
                                        const std::vector<Product>& products,
                                        const std::vector<Product>& back = {});

}  // namespace heddle
