#include "node-runtime/progress/tile_messages.hpp"

#include <algorithm>

namespace heddle {

TileMessage TileMessages::message(const TileView& tile, const TilePart& wanted) {
  const TilePart part = wanted.of_tile(tile.rows);
  const std::int64_t elements = part.element_count(tile.columns);
  if (elements == 0) return {.data = tile.data};
  double* const first = tile.data + part.first_row;
  const bool whole_columns = part.shape == TilePart::Shape::full && part.row_count == tile.leading;
  if (whole_columns || tile.columns == 1) {
    return {first + part.begin_of(0), elements, Scalar::float64, elements};
  }
  return {first, 1, type_of({part.shape, part.row_count, tile.columns, tile.leading}), elements};
}

const Datatype& TileMessages::type_of(const Key& key) {
  const auto found =
      std::find_if(types_.begin(), types_.end(), [&](const Kept& kept) { return kept.key == key; });
  if (found != types_.end()) {
    std::rotate(types_.begin(), found, found + 1);
    return types_.front().type;
  }
  if (types_.size() >= capacity_) types_.pop_back();
  using Part = Datatype::TriangleShape::Part;
  const bool is_upper = key.shape == TilePart::Shape::upper;
  types_.insert(
      types_.begin(),
      {key, key.shape == TilePart::Shape::full
                ? Datatype::vector(key.columns, key.row_count, key.leading, Scalar::float64)
                : Datatype::triangle({.part = is_upper ? Part::upper : Part::lower,
                                      .diagonal = is_upper,
                                      .rows = key.row_count,
                                      .columns = key.columns,
                                      .leading = key.leading},
                                     Scalar::float64)});
  return types_.front().type;
}

}  // namespace heddle
