#include "node-runtime/memory/tile_store.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "node-runtime/device/populate.hpp"
#include "node-runtime/residency/least_memory.hpp"

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

TileStore::TileStore(std::vector<Device*> devices, std::uint64_t host_bytes_max, Backings backings)
    : devices_(std::move(devices)), host_bytes_max_(host_bytes_max), backings_(backings) {
  for (std::int32_t i = static_cast<std::int32_t>(pools_max); i-- > 0;) free_pools_.push_back(i);
  for (Device* device : devices_) {
    caches_.push_back(std::make_unique<DeviceCache>(
        *device, [this, device](std::size_t bytes) { return make_backing(*device, bytes); }));
  }
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

void TileStore::reserve_host(std::size_t bytes, const char* purpose) {
  std::uint64_t taken = host_bytes_.load(std::memory_order_relaxed);
  do {
    if (taken + bytes > host_bytes_max_) {
      throw Error(ErrorCode::usage,
                  fmt::format("{} take {} of host memory, but of the {} that this node may use {} "
                              "are taken; use more nodes or a smaller problem",
                              purpose, format_bytes(bytes), format_bytes(host_bytes_max_),
                              format_bytes(taken)));
    }
  } while (!host_bytes_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
  std::uint64_t peak = peak_host_bytes_.load(std::memory_order_relaxed);
  while (peak < taken + bytes &&
         !peak_host_bytes_.compare_exchange_weak(peak, taken + bytes, std::memory_order_relaxed)) {
  }
}

std::byte* TileStore::allocate(PoolMemory& pool, std::size_t bytes, const char* purpose) {
  if (bytes == 0) return nullptr;
  reserve_host(bytes, purpose);
  pool.bytes = bytes;
  kept_.clear();  // so that there is never more than is counted when memory is taken
  try {
    pool.host = HostRegion(bytes, purpose);
  } catch (...) {
    host_bytes_.fetch_sub(std::exchange(pool.bytes, 0), std::memory_order_relaxed);
    throw;
  }
  return pool.host.address();
}

/// Memory of a removed pool, the smallest that does, all of which counts; false: there is none of
/// about that size.
bool TileStore::reuse(PoolMemory& pool, std::size_t bytes, const char* purpose) {
  std::ranges::sort(kept_, {}, &HostRegion::bytes);
  const auto found = std::ranges::lower_bound(kept_, bytes, {}, &HostRegion::bytes);
  if (bytes == 0 || found == kept_.end() || found->bytes() > 2 * bytes) return false;
  if (host_bytes_.load(std::memory_order_relaxed) + found->bytes() > host_bytes_max_) return false;
  reserve_host(found->bytes(), purpose);
  pool.bytes = found->bytes();
  pool.host = std::move(*found);
  kept_.erase(found);
  return true;
}

std::shared_ptr<Backing> TileStore::make_backing(Device& device, std::size_t bytes) {
  constexpr const char* purpose = "tiles of devices";
  reserve_host(bytes, purpose);
  const auto give_back = [this, bytes](Backing* backing) {
    delete backing;
    host_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  };
  std::unique_ptr<Backing> backing;
  try {
    backing = std::make_unique<Backing>(HostRegion(bytes, purpose), device);
  } catch (...) {
    host_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    throw;
  }
  return {backing.release(), give_back};
}

/// `locking`: if all that the device holds fits.
void TileStore::add_to_device(PoolMemory& pool, const std::vector<std::size_t>& bytes,
                              const char* purpose, DeviceCache::Locking locking) {
  DeviceCache& cache = this->cache(pool.place);
  std::vector<std::size_t> sizes;
  for (const std::size_t size : bytes) {
    if (size > 0) sizes.push_back(size);
  }
  const std::vector<ResidentBlock> added = cache.add_pool(sizes);
  auto next = added.begin();
  for (const std::size_t size : bytes) pool.residents.push_back(size > 0 ? *next++ : no_block);
  const bool fits = cache.block_bytes() <= cache.bytes();
  if (fits && backings_ == Backings::as_needed) return;
  kept_.clear();  // as in allocate(): what follows takes memory of the host
  try {
    const std::size_t largest = cache.largest_block_bytes();
    const std::uint64_t least = least_device_bytes(largest, devices_.size());
    if (!fits && cache.bytes() < least) {
      throw Error(
          ErrorCode::usage,
          fmt::format("{} make {} at device {}, which has {} of memory for them; out of "
                      "core it needs {} at least with tiles of up to {}; use smaller tiles, "
                      "more devices or nodes, or a smaller problem",
                      purpose, format_bytes(cache.block_bytes()), pool.place.value() - 1,
                      format_bytes(cache.bytes()), format_bytes(least), format_bytes(largest)));
    }
    cache.back_all(fits ? locking : DeviceCache::Locking::now);
  } catch (...) {
    cache.remove_pool(added);
    throw;
  }
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

/// The blocks of a matrix at one place: its tiles there, then the spare ones of each size that
/// occurs there.
std::unique_ptr<TileStore::PoolMemory> TileStore::matrix_pool(const TileTable& t,
                                                              const TileClasses& classes,
                                                              PlaceId place) {
  constexpr const char* purpose = "the tiles of a matrix";
  auto pool = std::make_unique<PoolMemory>();
  pool->place = place;
  const bool wrapped = !t.wrapped.empty() && place == host_place;
  const auto spares = static_cast<std::size_t>(wrapped ? 0 : t.spare_count);
  const std::size_t tiles = t.shapes.size();
  std::vector<std::size_t> bytes(tiles + classes.bytes.size() * spares, 0);
  for (std::size_t i = 0; i < tiles; ++i) {
    if (!t.is_local[i] || t.home_places[i] != place) continue;
    bytes[i] = t.shapes[i].bytes();
    const auto of_class =
        classes.of_tile.empty() ? 0 : static_cast<std::size_t>(classes.of_tile[i]);
    for (std::size_t k = 0; k < spares; ++k) {
      bytes[tiles + of_class * spares + k] = classes.bytes[of_class];
    }
  }
  if (place != host_place) {
    add_to_device(*pool, bytes, purpose, DeviceCache::Locking::now);
    return pool;
  }
  pool->blocks.resize(bytes.size());
  if (wrapped) {
    for (std::size_t i = 0; i < tiles; ++i) {
      pool->blocks[i] = reinterpret_cast<std::byte*>(t.wrapped[i]);
    }
    return pool;
  }
  std::size_t total = 0;
  for (const std::size_t size : bytes) total += size > 0 ? padded(size) : 0;
  std::byte* next = allocate(*pool, total, purpose);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0) continue;
    pool->blocks[i] = next;
    next += padded(bytes[i]);
  }
  return pool;
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
  std::vector<std::unique_ptr<PoolMemory>> memories;
  try {
    for (std::int32_t p = 0; p < places() && !t.temporary; ++p) {
      memories.push_back(matrix_pool(t, classes, PlaceId{p}));
    }
  } catch (...) {
    for (auto& memory : memories) give_back(*memory);
    throw;
  }
  for (auto& memory : memories) created->pools.push_back(add_pool(std::move(memory)));
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
  for (const std::int32_t pool : removed->pools) take_pool(pool).reset();
  delete removed;
}

std::int32_t TileStore::add_job_pool(PlaceId place, std::size_t block_bytes, std::int32_t capacity,
                                     std::vector<std::size_t> soon) {
  const std::lock_guard lock(mutex_);
  auto pool = std::make_unique<PoolMemory>();
  pool->place = place;
  pool->block_bytes = padded(block_bytes);
  constexpr const char* purpose = "copies of tiles";
  const auto count = static_cast<std::size_t>(capacity);
  if (place == host_place) {
    const std::size_t bytes = pool->block_bytes * count;
    pool->base =
        reuse(*pool, bytes, purpose) ? pool->host.address() : allocate(*pool, bytes, purpose);
    pool->soon = std::move(soon);
    HEDDLE_CHECK(pool->soon.size() <= count, "{} blocks soon of {}", pool->soon.size(), count);
  } else {
    // A job begins here, and the host may never use its copies.
    add_to_device(*pool, std::vector<std::size_t>(count, block_bytes), purpose,
                  DeviceCache::Locking::later);
  }
  const bool populates = !pool->soon.empty();
  const std::int32_t id = add_pool(std::move(pool));
  if (populates) to_populate_.push_back(id);
  return id;
}

/// What is to get pages next, as far as it lies together; empty: all of it has them.
std::span<std::byte> TileStore::next_pages(PoolMemory& pool, std::size_t bytes_max) {
  // What lies between two blocks is not worth another call.
  constexpr std::ptrdiff_t near = 64 << 10;
  std::byte* begin = nullptr;
  std::byte* end = nullptr;
  for (; pool.populated_blocks < pool.soon.size(); ++pool.populated_blocks) {
    const std::size_t block = pool.populated_blocks;
    const std::size_t of_block = std::min(pool.soon[block], pool.block_bytes);
    if (of_block == 0) continue;
    std::byte* const at = pool.base + block * pool.block_bytes + pool.populated_bytes;
    if (begin == nullptr) {
      begin = end = at;
    } else if (at - end > near) {
      break;
    }
    const auto before = static_cast<std::size_t>(at - begin);
    const std::size_t left = of_block - pool.populated_bytes;
    const std::size_t bytes = std::min(left, bytes_max - std::min(bytes_max, before));
    if (bytes > 0) end = at + bytes;
    if (bytes < left) {
      pool.populated_bytes += bytes;
      break;
    }
    pool.populated_bytes = 0;
  }
  return {begin, end};
}

bool TileStore::populate_some() {
  constexpr std::size_t at_once = std::size_t{512} << 10;
  const std::lock_guard lock(mutex_);
  if (to_populate_.empty()) return false;
  const auto id = static_cast<std::size_t>(to_populate_.front());
  PoolMemory& pool = *pools_[id].load(std::memory_order_acquire);
  const std::span<std::byte> pages = next_pages(pool, at_once);
  if (!pages.empty()) populate_pages(pages.data(), pages.size());
  if (pool.populated_blocks == pool.soon.size()) to_populate_.erase(to_populate_.begin());
  return true;
}

void TileStore::populate(std::int32_t id) {
  PoolMemory* pool = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (std::erase(to_populate_, id) == 0) return;
    pool = pools_[static_cast<std::size_t>(id)].load(std::memory_order_acquire);
  }
  // Nobody else gives this one pages any more.
  while (pool->populated_blocks < pool->soon.size()) {
    const std::span<std::byte> pages = next_pages(*pool, std::numeric_limits<std::size_t>::max());
    if (!pages.empty()) populate_pages(pages.data(), pages.size());
  }
}

void TileStore::give_back(PoolMemory& pool) {
  host_bytes_.fetch_sub(pool.bytes, std::memory_order_relaxed);
  if (pool.place == host_place) return;
  std::vector<ResidentBlock> blocks = pool.residents;
  std::erase(blocks, no_block);
  cache(pool.place).remove_pool(blocks);
}

void TileStore::remove_job_pool(std::int32_t id) {
  const std::unique_ptr<PoolMemory> pool = take_pool(id);
  if (pool->host.bytes() == 0) return;
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(pool->host));
}

/// Nobody finds it any more.
std::unique_ptr<TileStore::PoolMemory> TileStore::take_pool(std::int32_t id) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<PoolMemory> pool(
      pools_[static_cast<std::size_t>(id)].exchange(nullptr, std::memory_order_acq_rel));
  HEDDLE_CHECK(pool != nullptr, "pool {} is unknown", id);
  std::erase(to_populate_, id);
  give_back(*pool);
  free_pools_.push_back(id);
  return pool;
}

std::int64_t TileStore::blocks_available(PlaceId place, std::size_t block_bytes) {
  const std::lock_guard lock(mutex_);
  const auto difference = [](std::uint64_t all, std::uint64_t taken) {
    return all - std::min(all, taken);
  };
  const std::size_t size = bytes_of_block(place, std::max<std::size_t>(1, block_bytes));
  const std::uint64_t bytes =
      place == host_place ? difference(host_bytes_max_, host_bytes_.load(std::memory_order_relaxed))
                          : difference(cache(place).bytes(), cache(place).block_bytes());
  return static_cast<std::int64_t>(bytes / size);
}

ResidentBlock TileStore::resident(protocol::BlockRef block) const {
  const PoolMemory* pool =
      pools_[static_cast<std::size_t>(block.pool)].load(std::memory_order_acquire);
  return pool->residents[static_cast<std::size_t>(block.index)];
}

void TileStore::discard(protocol::BlockRef block) {
  const PoolMemory* pool =
      pools_[static_cast<std::size_t>(block.pool)].load(std::memory_order_acquire);
  if (pool->place == host_place) return;
  const ResidentBlock resident = pool->residents[static_cast<std::size_t>(block.index)];
  if (resident != no_block) cache(pool->place).discard(resident);
}

std::size_t TileStore::bytes_of_block(PlaceId place, std::size_t bytes) {
  if (bytes == 0) return 0;
  return place == host_place ? padded(bytes) : Residency::frame_bytes(bytes);
}

std::uint64_t TileStore::backing_bytes_max(std::uint64_t block_bytes) {
  return DeviceCache::backing_bytes_max(block_bytes);
}

std::uint64_t TileStore::least_device_bytes(std::size_t block_bytes, std::size_t devices) {
  return heddle::least_device_bytes(block_bytes, devices);
}

std::uint64_t TileStore::out_of_core_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& cache : caches_) {
    bytes += cache->block_bytes() - std::min(cache->block_bytes(), cache->bytes());
  }
  return bytes;
}

std::uint64_t TileStore::peak_device_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& cache : caches_) bytes += cache->statistics().resident_bytes_max;
  return bytes;
}

bool TileStore::has_matrix(protocol::MatrixId id) const {
  const auto index = static_cast<std::size_t>(id.value());
  if (index / matrices_per_chunk >= chunk_count) return false;
  const Chunk* chunk = chunks_[index / matrices_per_chunk].load(std::memory_order_acquire);
  return chunk != nullptr &&
         (*chunk)[index % matrices_per_chunk].load(std::memory_order_acquire) != nullptr;
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
  if (!pool->residents.empty()) {
    const ResidentBlock resident = pool->residents[static_cast<std::size_t>(block.index)];
    return resident == no_block ? nullptr : cache(pool->place).address(resident);
  }
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

TileView TileStore::host_view(protocol::TileId tile, protocol::BlockRef block) const {
  const PoolMemory* pool =
      pools_[static_cast<std::size_t>(block.pool)].load(std::memory_order_acquire);
  if (pool->place == host_place) return view(tile, block);
  const TileShape s = shape(tile);
  const ResidentBlock resident = pool->residents[static_cast<std::size_t>(block.index)];
  std::byte* const at = resident == no_block ? nullptr : cache(pool->place).host_address(resident);
  return {reinterpret_cast<double*>(at), s.rows, s.columns, std::max<std::int64_t>(1, s.rows)};
}

std::uint64_t TileStore::evictions() const {
  std::int64_t count = 0;
  for (const auto& cache : caches_) count += cache->statistics().evictions;
  return static_cast<std::uint64_t>(count);
}

}  // namespace heddle
