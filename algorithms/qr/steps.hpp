#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/qr/qr_matrix.hpp"

/// The trees of a QR panel as data: which tasks make one R of its tall tiles, in which order, and
/// which task takes the rows beside R from which (docs/decisions/012).
namespace heddle::qr_tree {

/// Where the rows beside R stand on their way through a panel: as many as the panel is wide, of one
/// tile column.
struct Rows {
  enum class Slot : std::uint8_t {
    r,        ///< R's own tile, or that of the result
    kept,     ///< a tile's own, from its leaf or (on the way up) for it
    carried,  ///< those of another tile that a pair ends with
  };
  TileRow tile;  ///< the tall tile whose task left them there; with Slot::r the top one
  Slot slot = Slot::r;
  friend bool operator==(const Rows&, const Rows&) = default;
};

/// Slots that each tall tile needs beside R's own tile.
[[nodiscard]] constexpr std::int32_t slots(QrTree tree) {
  return tree == QrTree::flat ? 1 : 2;
}

/// A task of a panel on some tile column.
struct Step {
  enum class Kind : std::uint8_t {
    leaf,   ///< a tile by itself
    below,  ///< a whole tile under the rows of others
    pair,   ///< two sets of rows to one; ends those of its tile
    home,   ///< R back to its own tile
  };
  Kind kind = Kind::leaf;
  TileRow tile;  ///< the tall tile that it is on
  Rows in;       ///< what it takes; a leaf only on the way up
  Rows own;      ///< pair: the rows of its own tile, taken on the way down, left on the way up
  Rows out;      ///< what it leaves; a leaf only on the way down
};

/// Down: Q^T, and the factorization. Up: Q.
enum class Way : std::uint8_t { down, up };

/// The tasks of a panel on tall tiles [top, end), whose diagonal passes through `top`, in
/// sequential order; `has_short`: the last tile, below top, has too few rows for an R of its own,
/// and goes with the one before it.
///
/// A binomial tree pairs tiles far from each other first: where the tall tiles go round a power of
/// two of grid rows, all but its last levels stay on one node.
[[nodiscard]] std::vector<Step> make_steps(QrTree tree, TileRow top, TileRow end, bool has_short,
                                           Way way);

/// The tall tile whose task takes these rows, in closed form: the task of make_steps() that has
/// them as `in` or `own` (on the way up: as `in`). They must be rows that one of its tasks leaves
/// or, on the way up, R's.
[[nodiscard]] TileRow taker_of(QrTree tree, TileRow top, TileRow end, bool has_short, Way way,
                               const Rows& rows);

}  // namespace heddle::qr_tree
