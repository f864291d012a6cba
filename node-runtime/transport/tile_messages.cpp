#include "node-runtime/transport/tile_messages.hpp"

#include <algorithm>

#include "node-runtime/transport/communicator.hpp"

namespace heddle {
namespace {

MPI_Datatype make_type(const TilePart& part, std::int64_t columns, std::int64_t leading) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (part.shape == TilePart::Shape::full) {
    check_mpi(MPI_Type_vector_c(columns, part.row_count, leading, MPI_DOUBLE, &type),
              "describing rows of a tile");
  } else {
    std::vector<MPI_Count> counts;
    std::vector<MPI_Count> bytes_before;
    for (std::int64_t j = 0; j < columns; ++j) {
      if (part.count_of(j) == 0) continue;
      counts.push_back(part.count_of(j));
      bytes_before.push_back((part.begin_of(j) + j * leading) *
                             static_cast<MPI_Count>(sizeof(double)));
    }
    check_mpi(MPI_Type_create_hindexed_c(static_cast<MPI_Count>(counts.size()), counts.data(),
                                         bytes_before.data(), MPI_DOUBLE, &type),
              "describing a triangle of a tile");
  }
  check_mpi(MPI_Type_commit(&type), "describing a part of a tile");
  return type;
}

}  // namespace

TileMessage TileMessages::message(const TileView& tile, const TilePart& wanted) {
  const TilePart part = wanted.of_tile(tile.rows);
  const std::int64_t elements = part.element_count(tile.columns);
  if (elements == 0) return {tile.data, 0, MPI_DOUBLE, 0};
  double* const first = tile.data + part.first_row;
  const bool whole_columns = part.shape == TilePart::Shape::full && part.row_count == tile.leading;
  if (whole_columns || tile.columns == 1) {
    return {first + part.begin_of(0), elements, MPI_DOUBLE, elements};
  }
  const Key key{part.shape, part.row_count, tile.columns, tile.leading};
  return {first, 1, type_of(key, part), elements};
}

MPI_Datatype TileMessages::type_of(const Key& key, const TilePart& part) {
  const auto found =
      std::find_if(types_.begin(), types_.end(), [&](const Kept& kept) { return kept.key == key; });
  if (found != types_.end()) {
    std::rotate(types_.begin(), found, found + 1);
    return types_.front().type;
  }
  if (types_.size() >= capacity_) {
    check_mpi(MPI_Type_free(&types_.back().type), "freeing a datatype");
    types_.pop_back();
  }
  types_.insert(types_.begin(), {key, make_type(part, key.columns, key.leading)});
  return types_.front().type;
}

void TileMessages::clear() {
  for (Kept& kept : types_) check_mpi(MPI_Type_free(&kept.type), "freeing a datatype");
  types_.clear();
}

}  // namespace heddle
