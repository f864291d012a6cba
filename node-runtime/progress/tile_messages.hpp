#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernel.hpp"
#include "node-runtime/threads/tile_part.hpp"
#include "node-runtime/transport/datatype/datatype.hpp"

namespace heddle {

/// Part of a tile as an endpoint takes it: straight from, or into, the tile's memory.
struct TileMessage {
  double* data = nullptr;
  std::int64_t count = 0;
  Datatype type = Scalar::float64;
  std::int64_t elements = 0;  ///< doubles that travel; the same at both ends

  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(elements) * sizeof(double);
  }
};

/// Makes messages of parts of tiles. What lies in one piece travels as a run of doubles, anything
/// else as a derived datatype. Both ends may differ in it: only the order of the elements, column
/// by column, must agree.
///
/// Datatypes are kept for the next tile of their kind, so that endpoints know them again: at most
/// `capacity`, then the one that was not used for longest goes.
///
/// Invariant: types_.size() <= capacity; most recently used first.
///
/// Thread: one.
class TileMessages {
 public:
  /// More than the kinds of tiles that a factorization sends at one time. A type of some hundred
  /// columns takes some kilobytes.
  static constexpr std::size_t capacity_default = 256;

  explicit TileMessages(std::size_t capacity = capacity_default) : capacity_(capacity) {}

  [[nodiscard]] TileMessage message(const TileView& tile, const TilePart& wanted);
  [[nodiscard]] std::size_t types() const { return types_.size(); }

 private:
  /// What a type depends on; where the part begins is left to the address.
  struct Key {
    TilePart::Shape shape{};
    std::int64_t row_count = 0;
    std::int64_t columns = 0;
    std::int64_t leading = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Kept {
    Key key;
    Datatype type;
  };
  [[nodiscard]] const Datatype& type_of(const Key& key);

  std::size_t capacity_;
  std::vector<Kept> types_;
};

}  // namespace heddle
