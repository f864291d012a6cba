#include "node-runtime/memory/tile_table.hpp"

#include <algorithm>

namespace heddle {

TileClasses classes_of(const std::vector<TileShape>& shapes) {
  TileClasses classes;
  for (const TileShape& shape : shapes) {
    const auto found = std::find(classes.bytes.begin(), classes.bytes.end(), shape.bytes());
    classes.of_tile.push_back(static_cast<std::int32_t>(found - classes.bytes.begin()));
    if (found == classes.bytes.end()) classes.bytes.push_back(shape.bytes());
  }
  if (classes.bytes.empty()) classes.bytes.push_back(0);
  if (classes.bytes.size() == 1) classes.of_tile.clear();
  return classes;
}

}  // namespace heddle
