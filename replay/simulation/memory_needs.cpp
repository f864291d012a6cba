#include "replay/simulation/memory_needs.hpp"

#include <algorithm>

namespace heddle::replay {

void MemoryNeeds::meet(std::span<const protocol::Access> accesses) {
  for (const protocol::Access& access : accesses) {
    const std::int32_t matrix = access.tile.matrix.value();
    const auto [at, is_new] = tiles_.try_emplace({matrix, access.tile.index}, PlaceId{-1});
    if (!is_new) continue;
    const std::uint64_t bytes = job_.tile_bytes(access.tile);
    largest_tile_bytes_ = std::max(largest_tile_bytes_, bytes);
    const SimulatedMatrixSpec& spec = job_.matrices()[static_cast<std::size_t>(matrix)];
    if (access.home.node != node_ || spec.temporary) continue;
    at->second = access.home.place;
    std::uint64_t& taken = bytes_[static_cast<std::size_t>(access.home.place.value())];
    taken += bytes;
    const std::int32_t of_class =
        spec.classes ? (*spec.classes)[static_cast<std::size_t>(access.tile.index)] : 0;
    if (renamings_.emplace(matrix, of_class, access.home.place.value()).second) {
      taken += static_cast<std::uint64_t>(spec.spare_count) * bytes;
    }
  }
}

std::vector<protocol::TileId> MemoryNeeds::tiles(PlaceId place) const {
  std::vector<protocol::TileId> tiles;
  for (const auto& [tile, home] : tiles_) {
    if (home == place) tiles.push_back({protocol::MatrixId{tile.first}, tile.second});
  }
  return tiles;
}

}  // namespace heddle::replay
