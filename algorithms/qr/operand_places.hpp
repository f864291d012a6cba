#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "algorithms/qr/qr_matrix.hpp"

namespace heddle::qr_tree {

/// The place of each tile of an operand during one walk: the tile's home, or the place of the panel
/// that last used it, where the tile lies in one of QrOperand::elsewhere. Only the node's own tiles
/// are asked for.
class OperandPlaces {
 public:
  /// All tiles are at home. The operand outlives it.
  explicit OperandPlaces(const QrOperand& x);

  /// False: all tiles stay at home.
  [[nodiscard]] bool moves() const { return !x_.elsewhere.empty(); }
  /// The tile where it is now.
  [[nodiscard]] TileRef tile(TileRow i, TileColumn d) const { return matrix(i, d)(i, d); }

  /// The copy that brings a tile to another place.
  struct Move {
    TileRef from;
    TileRef to;
  };
  /// Moves a tile to `place`, which has room for it; nothing if the tile is there. The caller
  /// inserts the copy.
  std::optional<Move> move(TileRow i, TileColumn d, PlaceId place);
  std::optional<Move> move_home(TileRow i, TileColumn d);

 private:
  [[nodiscard]] std::size_t index(TileRow i, TileColumn d) const;
  [[nodiscard]] const Matrix<double>& matrix(TileRow i, TileColumn d) const;

  const QrOperand& x_;
  std::vector<const Matrix<double>*> at_;  ///< by tile, if tiles move; null: at home
};

}  // namespace heddle::qr_tree
