#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/walk/broadcast.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/matrix.hpp"
#include "node-runtime/threads/program.hpp"

/// What the programs of solves and products share. Tiles of the matrix stay where they are: a tile
/// times a row of x is a product tile at the same place, which travels to the row that it is added
/// to (docs/decisions/006, 032).
namespace heddle::solve {

/// Temporaries for one wide column of right-hand sides. Products of tile (i, j) with rows of x
/// become a tile of `down` (added into row i) or `across` (added into row j), made where the
/// remainder of tile (i, j) lives; a tile is used again after its release, and its versions count
/// on.
struct Products {
  Matrix<double> down;
  Matrix<double> across;
  /// What strips on the host make beside remainders on devices.
  std::optional<Matrix<double>> strips_down = std::nullopt;
  std::optional<Matrix<double>> strips_across = std::nullopt;
};

/// For `width` columns, of which none is cut.
[[nodiscard]] Products make_products_for(const Matrix<double>& a, std::int64_t width);
/// For each wide column of `x`.
[[nodiscard]] std::vector<Products> make_products(const Matrix<double>& a, const Matrix<double>& x);

/// The tile row of x that wide column j of the matrix is multiplied by, and the other way round.
[[nodiscard]] constexpr TileRow row_of(WideColumn j) {
  return TileRow{j.value()};
}
[[nodiscard]] constexpr WideColumn wide_of(TileRow i) {
  return WideColumn{i.value()};
}

/// The product of a tile with a row of x. Its pieces add to it from left to right: those of the
/// strip on the host, then the remainder where it lives.
class TileProduct {
 public:
  TileProduct(Broadcast result, std::optional<protocol::Access> strips)
      : result_(std::move(result)), strips_(strips) {}

  /// What is subtracted from a row.
  [[nodiscard]] const protocol::Access& tile() const { return result_.tile(); }
  /// What the strip left on the host and the remainder's place takes over; nothing where all pieces
  /// live at one place.
  [[nodiscard]] const std::optional<protocol::Access>& strips() const { return strips_; }

  void to(NodeId reader, std::int32_t priority) { result_.to(reader, priority); }
  /// No later task reads the product.
  void release() { result_.release(); }

 private:
  Broadcast result_;
  std::optional<protocol::Access> strips_;
};

/// A matrix and one wide column of right-hand sides, as a program walks them. Every node walks all
/// tiles, so each counts the writes to all product tiles.
class Walk {
 public:
  Walk(TaskStream& stream, const Matrix<double>& matrix, TileColumn side,
       const Products& temporaries, kernel::Term what = kernel::Term::product);

  TaskStream& tasks;
  const Matrix<double> a;
  const TileColumn column;  ///< of the right-hand sides
  const kernel::Term term;
  const NodeId me;

  [[nodiscard]] NodeId node(TileRow i, WideColumn j) const { return a.distribution().node(i, j); }
  /// Tile row i of a matrix of right-hand sides, and where it lives.
  [[nodiscard]] TileRef sides(const Matrix<double>& matrix, TileRow i) const {
    return matrix(i, column);
  }
  [[nodiscard]] TileColumn begin(WideColumn j) const { return a.layout().wide_begin(j); }
  [[nodiscard]] TileColumn end(WideColumn j) const { return a.layout().wide_begin(j + 1); }
  [[nodiscard]] std::int32_t pieces_of(WideColumn j) const { return end(j) - begin(j); }

  /// The product of tile (i, j) that row i gets, or row j; the pieces of the tile write it next.
  [[nodiscard]] TileProduct next_down(TileRow i, WideColumn j);
  [[nodiscard]] TileProduct next_across(TileRow i, WideColumn j);

  /// Where a remainder follows pieces on the host, a task that takes over what these made; the next
  /// task of piece c is its product.
  [[nodiscard]] TaskStream::Room take_strips(const TileProduct& product, TileColumn c,
                                             std::int32_t priority) const;
  /// All pieces' products have been inserted.
  void release_strips(const TileProduct& product) const;

 private:
  /// Temporaries and the number of writes to each of their tiles so far.
  struct Written {
    explicit Written(const Matrix<double>& matrix);
    /// The version after that number of further writes.
    [[nodiscard]] protocol::Access after(TileRow row, TileColumn slot, std::int32_t writes);

    Matrix<double> tiles;
    std::vector<std::int32_t> counts;
  };
  [[nodiscard]] TileProduct next(Written& products, std::optional<Written>& strips, TileRow row,
                                 TileColumn slot, TileColumn strips_slot, WideColumn j);
  [[nodiscard]] static std::optional<Written> written_of(
      const std::optional<Matrix<double>>& matrix);

  Written down_;
  Written across_;
  std::optional<Written> strips_down_;
  std::optional<Written> strips_across_;
};

/// The access of piece c's product to its product tile: the first piece overwrites it.
[[nodiscard]] protocol::Access written(const Walk& w, const TileProduct& product, TileColumn c);

/// Options of a product with tile column c of the matrix; `accumulate`: added to what is there.
[[nodiscard]] TaskOptions product_options(const Walk& w, TileColumn c, bool accumulate,
                                          std::int32_t priority);

using MakeProgram = std::function<Program(TaskStream&)>;

/// A job of these programs, one after the other.
[[nodiscard]] JobSpec job_of(std::string name, std::vector<Matrix<double>> matrices,
                             const std::vector<Products>& products,
                             std::vector<MakeProgram> programs);

}  // namespace heddle::solve
