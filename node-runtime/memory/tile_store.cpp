#include "node-runtime/memory/tile_store.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/units.hpp"

namespace heddle {
namespace {

/// Blocks begin on a cache line pair; tiles of a power of two in size do not all begin at the same
/// cache set.
constexpr std::size_t block_alignment = 128;

std::size_t padded(std::size_t bytes) {
  const std::size_t lines = (bytes + block_alignment - 1) / block_alignment;
  return (lines | 1) * block_alignment;
}

}  // namespace

TileStore::TileStore(std::vector<Device*> devices, std::uint64_t host_bytes_max)
    : devices_(std::move(devices)), host_bytes_max_(host_bytes_max) {
  for (std::int32_t i = static_cast<std::int32_t>(pools_max); i-- > 0;) free_pools_.push_back(i);
}

TileStore::~TileStore() {
  for (auto& slot : pools_) delete slot.load(std::memory_order_acquire);
  for (auto& slot : chunks_) {
    const std::unique_ptr<Chunk> chunk(slot.load(std::memory_order_acquire));
    if (chunk == nullptr) continue;
    for (auto& matrix : *chunk) delete matrix.load(std::memory_order_acquire);
  }
}

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

std::byte* TileStore::allocate(PoolMemory& pool, std::size_t bytes, const char* purpose) {
  pool.bytes = bytes;
  if (bytes == 0) return nullptr;
  if (pool.place == host_place) {
    if (host_bytes_ + bytes > host_bytes_max_) {
      throw Error(ErrorCode::usage,
                  fmt::format("{} take {} of host memory, but of the {} that this node may use {} "
                              "are taken; use more nodes or a smaller problem",
                              purpose, format_bytes(bytes), format_bytes(host_bytes_max_),
                              format_bytes(host_bytes_)));
    }
    pool.host = HostRegion(bytes, purpose);
    host_bytes_ += bytes;
    peak_host_bytes_ = std::max(peak_host_bytes_, host_bytes_);
    return pool.host.address();
  }
  Device& device = *devices_[static_cast<std::size_t>(pool.place.value()) - 1];
  if (const std::uint64_t available = device.memory_available(); bytes > available) {
    throw Error(ErrorCode::usage,
                fmt::format("{} take {} of device {}'s memory, but {} of {} are left; use more "
                            "devices or nodes, a wider strip or a smaller problem",
                            purpose, format_bytes(bytes), pool.place.value() - 1,
                            format_bytes(available), format_bytes(device.info().memory_bytes)));
  }
  pool.device.emplace(device, bytes);
  device_bytes_ += bytes;
  peak_device_bytes_ = std::max(peak_device_bytes_, device_bytes_);
  return pool.device->address();
}

std::int32_t TileStore::add_pool(std::unique_ptr<PoolMemory> pool) {
  if (free_pools_.empty()) {
    throw Error(ErrorCode::usage,
                fmt::format("more than {} matrices and jobs exist at one time; release some",
                            pools_max / static_cast<std::size_t>(places())));
  }
  const std::int32_t id = free_pools_.back();
  free_pools_.pop_back();
  pools_[static_cast<std::size_t>(id)].store(pool.release(), std::memory_order_release);
  return id;
}

std::vector<std::int32_t> TileStore::add_matrix(protocol::MatrixId id, TileTable table) {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::size_t>(id.value());
  if (index >= chunk_count * matrices_per_chunk) {
    throw Error(ErrorCode::usage, fmt::format("a node can make {} matrices in its life",
                                              chunk_count * matrices_per_chunk));
  }
  std::atomic<Chunk*>& chunk = chunks_[index / matrices_per_chunk];
  if (chunk.load(std::memory_order_acquire) == nullptr) {
    chunk.store(std::make_unique<Chunk>().release(), std::memory_order_release);
  }
  auto created = std::make_unique<Matrix>();
  created->table = std::move(table);
  const TileTable& t = created->table;
  for (const TileShape& shape : t.shapes) {
    created->largest_bytes = std::max(created->largest_bytes, shape.bytes());
  }
  const TileClasses classes = classes_of(t.shapes);
  for (std::int32_t p = 0; p < places() && !t.temporary; ++p) {
    auto pool = std::make_unique<PoolMemory>();
    pool->place = PlaceId{p};
    std::size_t bytes = 0;
    std::vector<bool> has_class(classes.bytes.size(), false);
    const auto here = [&](std::size_t i) { return t.is_local[i] && t.home_places[i].value() == p; };
    for (std::size_t i = 0; i < t.shapes.size(); ++i) {
      if (!here(i)) continue;
      bytes += padded(t.shapes[i].bytes());
      has_class[classes.of_tile.empty() ? 0 : static_cast<std::size_t>(classes.of_tile[i])] = true;
    }
    const bool wrapped = !t.wrapped.empty() && p == 0;
    if (wrapped) bytes = 0;
    const auto spares = static_cast<std::size_t>(wrapped ? 0 : t.spare_count);
    for (std::size_t k = 0; k < has_class.size(); ++k) {
      if (has_class[k]) bytes += spares * padded(classes.bytes[k]);
    }
    std::byte* next = allocate(*pool, bytes, "the tiles of a matrix");
    pool->blocks.resize(t.shapes.size() + has_class.size() * spares);
    for (std::size_t i = 0; i < t.shapes.size(); ++i) {
      if (!here(i)) continue;
      if (wrapped) {
        pool->blocks[i] = reinterpret_cast<std::byte*>(t.wrapped[i]);
        continue;
      }
      pool->blocks[i] = next;
      next += padded(t.shapes[i].bytes());
    }
    for (std::size_t k = 0; k < has_class.size(); ++k) {
      for (std::size_t s = 0; s < spares && has_class[k]; ++s) {
        pool->blocks[t.shapes.size() + k * spares + s] = next;
        next += padded(classes.bytes[k]);
      }
    }
    created->pools.push_back(add_pool(std::move(pool)));
  }
  std::vector<std::int32_t> pools = created->pools;
  slot(id).store(created.release(), std::memory_order_release);
  return pools;
}

void TileStore::remove_matrix(protocol::MatrixId id) {
  Matrix* removed = nullptr;
  {
    const std::lock_guard lock(mutex_);
    removed = slot(id).exchange(nullptr, std::memory_order_acq_rel);
  }
  HEDDLE_CHECK(removed != nullptr, "matrix {} is unknown", id.value());
  for (const std::int32_t pool : removed->pools) remove_job_pool(pool);
  delete removed;
}

std::int32_t TileStore::add_job_pool(PlaceId place, std::size_t block_bytes,
                                     std::int32_t capacity) {
  const std::lock_guard lock(mutex_);
  auto pool = std::make_unique<PoolMemory>();
  pool->place = place;
  pool->block_bytes = padded(block_bytes);
  pool->base =
      allocate(*pool, pool->block_bytes * static_cast<std::size_t>(capacity), "copies of tiles");
  return add_pool(std::move(pool));
}

void TileStore::remove_job_pool(std::int32_t id) {
  const std::lock_guard lock(mutex_);
  const std::unique_ptr<PoolMemory> pool(
      pools_[static_cast<std::size_t>(id)].exchange(nullptr, std::memory_order_acq_rel));
  HEDDLE_CHECK(pool != nullptr, "pool {} is unknown", id);
  (pool->place == host_place ? host_bytes_ : device_bytes_) -= pool->bytes;
  free_pools_.push_back(id);
}

std::int64_t TileStore::blocks_available(PlaceId place, std::size_t block_bytes) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t bytes =
      place == host_place
          ? host_bytes_max_ - std::min(host_bytes_max_, host_bytes_)
          : devices_[static_cast<std::size_t>(place.value()) - 1]->memory_available();
  return static_cast<std::int64_t>(bytes / padded(std::max<std::size_t>(1, block_bytes)));
}

TileShape TileStore::shape(protocol::TileId tile) const {
  return matrix(tile.matrix).table.shapes[static_cast<std::size_t>(tile.index)];
}

bool TileStore::is_local(protocol::TileId tile) const {
  return matrix(tile.matrix).table.is_local[static_cast<std::size_t>(tile.index)];
}

PlaceId TileStore::home_place(protocol::TileId tile) const {
  return matrix(tile.matrix).table.home_places[static_cast<std::size_t>(tile.index)];
}

std::size_t TileStore::largest_tile_bytes(protocol::MatrixId id) const {
  return matrix(id).largest_bytes;
}

std::byte* TileStore::address(protocol::BlockRef block) const {
  const PoolMemory* pool =
      pools_[static_cast<std::size_t>(block.pool)].load(std::memory_order_acquire);
  if (pool->blocks.empty()) {
    return pool->base + static_cast<std::size_t>(block.index) * pool->block_bytes;
  }
  return pool->blocks[static_cast<std::size_t>(block.index)];
}

TileView TileStore::view(protocol::TileId tile, protocol::BlockRef block) const {
  const Matrix& m = matrix(tile.matrix);
  const TileShape s = m.table.shapes[static_cast<std::size_t>(tile.index)];
  const bool wrapped = !m.table.wrapped.empty() && block.pool == m.pools.front();
  return {reinterpret_cast<double*>(address(block)), s.rows, s.columns,
          wrapped ? m.table.wrapped_leading : std::max<std::int64_t>(1, s.rows)};
}

}  // namespace heddle
