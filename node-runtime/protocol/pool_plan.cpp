#include "node-runtime/protocol/pool_plan.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace heddle::protocol {

PoolPlan::PoolPlan(NodeId node, std::int32_t places)
    : node_(node), alive_(places), maximum_alive_(places), takers_(places) {
  HEDDLE_CHECK(places >= 1 && places <= places_max, "{} places", places);
}

void PoolPlan::set_temporary(MatrixId matrix) {
  if (!temporary_.contains(matrix)) temporary_.resize(matrix.value() + 1);
  temporary_[matrix] = true;
}

bool PoolPlan::is_temporary(MatrixId matrix) const {
  return temporary_.contains(matrix) && temporary_[matrix];
}

void PoolPlan::record_take(PlaceId place, TileId tile) {
  std::vector<MatrixId>& takers = takers_[place];
  // A job has few matrices, and most takes are of the last one.
  if (std::find(takers.rbegin(), takers.rend(), tile.matrix) == takers.rend()) {
    takers.push_back(tile.matrix);
  }
  if (place == host_place && host_takes_.size() < host_takes_max) host_takes_.push_back(tile);
}

void PoolPlan::take(Alive& alive, PlaceId place, TileId tile) {
  if (alive[bit(place)]) return;
  alive[bit(place)] = true;
  record_take(place, tile);
  count_alive(place);
}

void PoolPlan::count_alive(PlaceId place) {
  maximum_alive_[place] = std::max(maximum_alive_[place], ++alive_[place]);
}

/// Counts a block that lives only while one task or message is the oldest.
void PoolPlan::count_transient(PlaceId place) {
  count_alive(place);
  transient_.push_back(place);
}

/// Counts a read of `access` at `place` of this node.
void PoolPlan::use(const Access& access, PlaceId place) {
  const bool here = access.home.node == node_;
  if (here && access.home.place == place) return;
  take(copies_[key(access)], place, access.tile);
}

void PoolPlan::close(const Key& key) {
  const auto found = copies_.find(key);
  if (found == copies_.end()) return;
  for (PlaceId place{0}; place < alive_.end_index(); ++place) {
    if (found->second[bit(place)]) --alive_[place];
  }
  copies_.erase(found);
}

void PoolPlan::append(std::span<const Access> accesses) {
  ++walked_;
  const Access& main = accesses.front();
  const bool mine = main.home.node == node_;
  if (mine) ++tasks_;
  for (const Access& access : accesses) {
    if (!mine || access.mode == AccessMode::write) continue;
    if (access.mode == AccessMode::read || access.home != main.home) {
      use(access, main.home.place);
    }
  }
  for (const Access& access : accesses) {
    if (access.mode == AccessMode::read) continue;
    if (mine && access.home != main.home) {
      record_take(main.home.place, access.tile);
      count_transient(main.home.place);
    }
    write(access, access.home.node == node_);
  }
  for (const PlaceId place : transient_) --alive_[place];
  transient_.clear();
}

/// A new version of a tile: copies of the old one close while the task is still the oldest, so they
/// count until its end; the block of a temporary tile passes on.
void PoolPlan::write(const Access& access, bool here) {
  const auto found = copies_.find(key(access));
  const bool temporary = here && is_temporary(access.tile.matrix);
  if (found != copies_.end()) {
    Alive& places = found->second;
    for (PlaceId place{0}; place < alive_.end_index(); ++place) {
      const bool stays = temporary && place == access.home.place;
      if (!places[bit(place)] || stays) continue;
      transient_.push_back(place);
      places[bit(place)] = false;
    }
    if (places.none() && !temporary) copies_.erase(found);
  }
  if (temporary) take(copies_[key(access)], access.home.place, access.tile);
}

void PoolPlan::release(const Access& access) {
  ++walked_;
  close(key(access));
}

}  // namespace heddle::protocol
