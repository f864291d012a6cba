#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/index.hpp"

namespace heddle {

/// Rows and columns of a tile of doubles. Blocks hold their tile column by column without gaps,
/// except where they are the caller's own memory.
struct TileShape {
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) * sizeof(double);
  }
  friend bool operator==(const TileShape&, const TileShape&) = default;
};

/// A matrix as the store needs to know it; vectors are indexed by tile.
struct TileTable {
  std::vector<TileShape> shapes;
  std::vector<PlaceId> home_places;  ///< meaningful for tiles of this node
  std::vector<bool> is_local;
  bool temporary = false;
  /// Blocks for renaming of each size, at each place that keeps tiles of that size.
  std::int32_t spare_count = 0;
  /// The caller's memory instead of the store's own: where each local tile begins, and the distance
  /// of its columns in doubles. Empty otherwise. Such tiles are not renamed.
  std::vector<double*> wrapped;
  std::int64_t wrapped_leading = 0;

  /// The vectors have an entry for each tile.
  [[nodiscard]] bool is_valid() const {
    const std::size_t tiles = shapes.size();
    return home_places.size() == tiles && is_local.size() == tiles &&
           (wrapped.empty() || wrapped.size() == tiles) && spare_count >= 0;
  }
};

/// Tiles of equal size, which may take each other's blocks when they are renamed.
struct TileClasses {
  std::vector<std::int32_t> of_tile;  ///< by tile; empty where all are of one class
  std::vector<std::size_t> bytes;     ///< by class, at least one
};
[[nodiscard]] TileClasses classes_of(const std::vector<TileShape>& shapes);

}  // namespace heddle
