#include "node-runtime/protocol/version_table.hpp"

#include <utility>

#include "base/assert.hpp"

namespace heddle::protocol {

MatrixId VersionTable::add_matrix(MatrixOptions options) {
  HEDDLE_CHECK(options.tile_count >= 0 && options.spare_count >= 0 && options.class_count >= 1);
  HEDDLE_CHECK(!options.classes || std::cmp_equal(options.classes->size(), options.tile_count));
  HEDDLE_CHECK(options.temporary || std::cmp_equal(options.pools.size(), places_));
  auto matrix = std::make_unique<Matrix>();
  const auto tile_count = static_cast<std::size_t>(options.tile_count);
  matrix->tiles = PagedArray<Tile>(tile_count);
  matrix->remote_writes = PagedArray<RemoteWrites>(tile_count);
  for (std::int32_t p = 0; p < places_; ++p) {
    for (std::int32_t k = 0; k < options.class_count; ++k) {
      const std::int32_t first = options.tile_count + k * options.spare_count;
      auto& spares = matrix->spares.emplace_back();
      for (std::int32_t i = options.spare_count; i-- > 0;) spares.push_back(first + i);
    }
  }
  matrix->options = std::move(options);
  return matrices_.push_back(std::move(matrix));
}

void VersionTable::skip_matrix() {
  auto none = std::make_unique<Matrix>();
  none->clear();
  matrices_.push_back(std::move(none));
}

void VersionTable::remove_matrix(MatrixId id) {
  Matrix& matrix = *matrices_[id];
  matrix.tiles.for_each_touched([&](Tile& tile) {
    if (tile.current == nullptr) return;
    HEDDLE_CHECK(tile.current->sends == nullptr, "matrix {} is removed while a job sends of it",
                 id.value());
    HEDDLE_CHECK(tile.current->present && tile.current->actual == tile.current->expected &&
                     !matrix.options.temporary,
                 "matrix {} is removed while a task uses it", id.value());
    HEDDLE_CHECK(tile.current->previous == nullptr,
                 "version {} of tile {} is left: {} visits of {}",
                 tile.current->previous->number.value(), tile.current->tile.index,
                 tile.current->previous->actual, tile.current->previous->expected);
    destroy(*tile.current);
  });
  matrix.clear();
}

void VersionTable::remove_all_matrices() {
  for (MatrixId id{0}; id < next_matrix(); ++id) {
    if (matrices_[id]->in_use) remove_matrix(id);
  }
}

void VersionTable::Matrix::clear() {
  tiles.clear();
  remote_writes.clear();
  in_use = false;
}

LocalVersion& VersionTable::current(const Access& access) {
  Matrix& matrix = *matrices_[access.tile.matrix];
  Tile& tile = matrix.tiles[access.tile.position()];
  if (tile.current == nullptr) {
    HEDDLE_CHECK(!matrix.options.temporary, "temporary tile {} is read before it is written",
                 access.tile.index);
    LocalVersion& version = *versions_.create();
    version.tile = access.tile;
    version.job = JobId{-1};
    version.place = access.home.place;
    version.present = true;
    version.home_pool = pool(matrix, access.home.place);
    version.block = {version.home_pool, access.tile.index};
    tile.current = &version;
  }
  return *tile.current;
}

LocalVersion& VersionTable::add_version(const Access& access, JobId job) {
  const Matrix& matrix = *matrices_[access.tile.matrix];
  Tile& tile = this->tile(access.tile);
  LocalVersion* previous = matrix.options.temporary ? tile.current : &current(access);
  LocalVersion& version = *versions_.create();
  tile.number = tile.job == job ? tile.number + 1 : 1;
  tile.job = job;
  tile.current = &version;
  version.tile = access.tile;
  version.job = job;
  version.place = access.home.place;
  version.number = Version{tile.number};
  version.temporary = matrix.options.temporary;
  if (!version.temporary) version.home_pool = pool(matrix, access.home.place);
  if (previous != nullptr) {
    version.previous = previous;
    previous->next = &version;
  }
  return version;
}

std::vector<std::int32_t>& VersionTable::spares_for(const LocalVersion& version) {
  Matrix& matrix = *matrices_[version.tile.matrix];
  const MatrixOptions& options = matrix.options;
  const std::int32_t tile_class = options.classes ? (*options.classes)[version.tile.position()] : 0;
  const std::int32_t list = version.place.value() * options.class_count + tile_class;
  return matrix.spares[static_cast<std::size_t>(list)];
}

bool VersionTable::take_spare_block(LocalVersion& version) {
  std::vector<std::int32_t>& spares = spares_for(version);
  if (spares.empty()) return false;
  version.block = {version.home_pool, spares.back()};
  spares.pop_back();
  version.previous->superseded = true;
  ++renamings_;
  return true;
}

void VersionTable::give_back_spare_block(const LocalVersion& version) {
  spares_for(version).push_back(version.block.index);
}

void VersionTable::take_block_of_previous(LocalVersion& version) {
  LocalVersion& before = *version.previous;
  version.block = before.block;
  version.pool_block = std::exchange(before.pool_block, nullptr);
  if (version.pool_block != nullptr) version.pool_block->version = &version;
  destroy(before);
}

void VersionTable::destroy(LocalVersion& version) {
  HEDDLE_DEBUG(version.first == nullptr && version.pool_block == nullptr &&
               version.sends == nullptr);
  for (Replica* r = version.replicas; r != nullptr; r = r->sibling) r->source = nullptr;
  if (version.next != nullptr) version.next->previous = nullptr;
  if (version.previous != nullptr) version.previous->next = nullptr;
  versions_.destroy(&version);
}

BlockRef VersionTable::current_block(TileId id, PlaceId place) const {
  const Matrix& matrix = *matrices_[id.matrix];
  const Tile& tile = std::as_const(matrix.tiles)[id.position()];
  if (tile.current != nullptr) return tile.current->block;
  return {pool(matrix, place), id.index};
}

Version VersionTable::counted_version(TileId id, JobId job) const {
  const RemoteWrites& writes = std::as_const(matrices_[id.matrix]->remote_writes)[id.position()];
  return Version{writes.job == job ? writes.count : 0};
}

Version VersionTable::count_write(TileId id, JobId job) {
  const Version before = counted_version(id, job);
  matrices_[id.matrix]->remote_writes[id.position()] = {job, before.value() + 1};
  return before;
}

bool VersionTable::is_valid() const {
  bool valid = true;
  for (const auto& matrix : matrices_) {
    std::as_const(matrix->tiles).for_each_touched([&](const Tile& tile) {
      for (const LocalVersion* v = tile.current; v != nullptr; v = v->previous) {
        const bool is_linked = v->previous == nullptr || v->previous->next == v;
        valid = valid && v->Copy::is_valid() && is_linked && (v == tile.current || v->closed);
      }
    });
  }
  return valid;
}

void VersionTable::abandon() {
  for (const auto& matrix : matrices_) matrix->clear();
  versions_.abandon();
}

}  // namespace heddle::protocol
