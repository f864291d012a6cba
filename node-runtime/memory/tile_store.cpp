#include "node-runtime/memory/tile_store.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/require.hpp"
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

/// Sizes of a matrix's blocks at one place: its tiles there, then the spare ones of each size that
/// occurs there.
std::vector<std::size_t> block_sizes(const TileTable& t, const TileClasses& classes, PlaceId place,
                                     std::size_t spares) {
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
  return bytes;
}

}  // namespace

TileStore::TileStore(std::vector<Device*> devices, std::uint64_t host_bytes_max, Backings backings)
    : devices_(std::move(devices)), backings_(backings), host_(host_bytes_max) {
  for (std::int32_t i = static_cast<std::int32_t>(pools_max); i-- > 0;) free_pools_.push_back(i);
  for (Device* device : devices_) {
    HEDDLE_CHECK(device != nullptr);
    caches_.push_back(std::make_unique<DeviceCache>(
        *device, [this, device](std::size_t bytes) { return make_backing(*device, bytes); }));
  }
}

TileStore::~TileStore() {
  for (auto& slot : pools_) delete slot.load(std::memory_order_acquire);
}

// ---- memory of devices -------------------------------------------------------------------------

std::shared_ptr<Backing> TileStore::make_backing(Device& device, std::size_t bytes) {
  constexpr const char* purpose = "tiles of devices";
  host_.reserve(bytes, purpose);
  const auto give_back = [this, bytes](Backing* backing) {
    delete backing;
    host_.release(bytes);
  };
  std::unique_ptr<Backing> backing;
  try {
    backing = std::make_unique<Backing>(HostRegion(bytes, purpose), device);
  } catch (...) {
    host_.release(bytes);
    throw;
  }
  return {backing.release(), give_back};
}

/// Refuses a device whose blocks do not fit and cannot take turns either.
void TileStore::require_progress(PlaceId place, const char* purpose) const {
  const DeviceCache& cache = this->cache(place);
  const std::size_t largest = cache.largest_block_bytes();
  const std::uint64_t least = least_device_bytes(largest, devices_.size());
  require(cache.bytes() >= least,
          "{} make {} at device {}, which has {} of memory for them; out of core it needs {} at "
          "least with tiles of up to {}; use smaller tiles, more devices or nodes, or a smaller "
          "problem",
          purpose, format_bytes(cache.block_bytes()), place.value() - 1,
          format_bytes(cache.bytes()), format_bytes(least), format_bytes(largest));
}

/// `locking`: if all blocks of the device fit.
std::unique_ptr<TilePool> TileStore::device_pool(PlaceId place,
                                                 const std::vector<std::size_t>& bytes,
                                                 const char* purpose,
                                                 DeviceCache::Locking locking) {
  DeviceCache& cache = this->cache(place);
  std::vector<std::size_t> sizes;
  for (const std::size_t size : bytes) {
    if (size > 0) sizes.push_back(size);
  }
  const std::vector<ResidentBlock> added = cache.add_pool(sizes);
  std::vector<ResidentBlock> residents;
  residents.reserve(bytes.size());
  auto next = added.begin();
  for (const std::size_t size : bytes) residents.push_back(size > 0 ? *next++ : no_block);
  HEDDLE_CHECK(next == added.end());
  auto pool = std::make_unique<TilePool>(place, std::move(residents));
  const bool fits = cache.holds_all();
  if (fits && backings_ == Backings::as_needed) return pool;
  host_.drop_kept();  // what follows takes memory of the host
  try {
    if (!fits) require_progress(place, purpose);
    cache.back_all(fits ? locking : DeviceCache::Locking::now);
  } catch (...) {
    cache.remove_pool(added);
    throw;
  }
  return pool;
}

// ---- pools -------------------------------------------------------------------------------------

std::int32_t TileStore::add_pool(std::unique_ptr<TilePool> pool) {
  HEDDLE_CHECK(pool != nullptr && !free_pools_.empty());
  const std::int32_t id = free_pools_.back();
  free_pools_.pop_back();
  auto& slot = pools_[static_cast<std::size_t>(id)];
  HEDDLE_CHECK(slot.load(std::memory_order_acquire) == nullptr, "pool {} exists", id);
  slot.store(pool.release(), std::memory_order_release);
  return id;
}

TilePool& TileStore::mutable_pool(std::int32_t id) {
  TilePool* const found = pools_[static_cast<std::size_t>(id)].load(std::memory_order_acquire);
  HEDDLE_CHECK(found != nullptr, "pool {} is unknown", id);
  return *found;
}

void TileStore::give_back(const TilePool& pool) {
  host_.release(pool.host_bytes());
  if (pool.place() == host_place) return;
  std::vector<ResidentBlock> blocks(pool.residents().begin(), pool.residents().end());
  std::erase(blocks, no_block);
  cache(pool.place()).remove_pool(blocks);
}

/// Takes a pool out, so that no thread finds it any more, and gives its memory back.
std::unique_ptr<TilePool> TileStore::take_pool(std::int32_t id) {
  const std::lock_guard lock(mutex_);
  HEDDLE_CHECK(id >= 0 && static_cast<std::size_t>(id) < pools_max, "pool {}", id);
  std::unique_ptr<TilePool> pool(
      pools_[static_cast<std::size_t>(id)].exchange(nullptr, std::memory_order_acq_rel));
  HEDDLE_CHECK(pool != nullptr, "pool {} is unknown", id);
  std::erase(to_populate_, id);
  give_back(*pool);
  free_pools_.push_back(id);
  return pool;
}

std::unique_ptr<TilePool> TileStore::matrix_pool(const TileTable& t, const TileClasses& classes,
                                                 PlaceId place) {
  constexpr const char* purpose = "the tiles of a matrix";
  const bool wrapped = !t.wrapped.empty() && place == host_place;
  const auto spares = static_cast<std::size_t>(wrapped ? 0 : t.spare_count);
  const std::vector<std::size_t> bytes = block_sizes(t, classes, place, spares);
  if (place != host_place) return device_pool(place, bytes, purpose, DeviceCache::Locking::now);
  std::vector<std::byte*> blocks(bytes.size());
  if (wrapped) {
    for (std::size_t i = 0; i < t.wrapped.size(); ++i) {
      blocks[i] = reinterpret_cast<std::byte*>(t.wrapped[i]);
    }
    return std::make_unique<TilePool>(HostRegion(), std::move(blocks));
  }
  std::size_t total = 0;
  for (const std::size_t size : bytes) total += size > 0 ? padded(size) : 0;
  HostRegion region = total > 0 ? host_.allocate(total, purpose) : HostRegion();
  std::byte* next = region.address();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0) continue;
    blocks[i] = next;
    next += padded(bytes[i]);
  }
  HEDDLE_CHECK(next == region.address() + total, "{} bytes", total);
  return std::make_unique<TilePool>(std::move(region), std::move(blocks));
}

std::vector<std::int32_t> TileStore::add_matrix(protocol::MatrixId id, TileTable table) {
  const std::lock_guard lock(mutex_);
  StoredMatrices::require_possible(id);
  HEDDLE_CHECK(table.is_valid(), "{} tiles, {} homes", table.shapes.size(),
               table.home_places.size());
  auto created = std::make_unique<StoredMatrix>();
  created->table = std::move(table);
  const TileTable& t = created->table;
  for (const TileShape& shape : t.shapes) {
    created->largest_bytes = std::max(created->largest_bytes, shape.bytes());
  }
  const TileClasses classes = classes_of(t.shapes);
  std::vector<std::unique_ptr<TilePool>> pools;
  try {
    if (!t.temporary) require_free_pools(static_cast<std::size_t>(places()));
    for (std::int32_t p = 0; p < places() && !t.temporary; ++p) {
      pools.push_back(matrix_pool(t, classes, PlaceId{p}));
    }
  } catch (...) {
    for (const auto& pool : pools) give_back(*pool);
    throw;
  }
  for (auto& pool : pools) created->pools.push_back(add_pool(std::move(pool)));
  std::vector<std::int32_t> ids = created->pools;
  matrices_.put(id, std::move(created));
  return ids;
}

void TileStore::require_free_pools(std::size_t count) const {
  require(free_pools_.size() >= count,
          "more than {} matrices and jobs exist at one time; release some",
          pools_max / static_cast<std::size_t>(places()));
}

void TileStore::remove_matrix(protocol::MatrixId id) {
  std::unique_ptr<StoredMatrix> removed;
  {
    const std::lock_guard lock(mutex_);
    removed = matrices_.take(id);
  }
  for (const std::int32_t pool : removed->pools) take_pool(pool).reset();
}

std::int32_t TileStore::add_job_pool(PlaceId place, std::size_t block_bytes, std::int32_t capacity,
                                     std::vector<std::size_t> soon) {
  constexpr const char* purpose = "copies of tiles";
  HEDDLE_CHECK(capacity >= 0 && place.value() < places(), "{} blocks at place {}", capacity,
               place.value());
  const std::lock_guard lock(mutex_);
  require_free_pools(1);
  const auto count = static_cast<std::size_t>(capacity);
  if (place != host_place) {
    // A job begins here, and the host may never use its copies.
    return add_pool(device_pool(place, std::vector<std::size_t>(count, block_bytes), purpose,
                                DeviceCache::Locking::later));
  }
  const std::size_t bytes = padded(block_bytes) * count;
  HostRegion region = host_.reuse(bytes, purpose);
  if (region.bytes() == 0 && bytes > 0) region = host_.allocate(bytes, purpose);
  const bool populates = !soon.empty();
  const std::int32_t id = add_pool(
      std::make_unique<TilePool>(std::move(region), padded(block_bytes), count, std::move(soon)));
  if (populates) to_populate_.push_back(id);
  return id;
}

void TileStore::remove_job_pool(std::int32_t id) {
  const std::unique_ptr<TilePool> pool = take_pool(id);
  const std::lock_guard lock(mutex_);
  host_.keep(pool->take_region());
}

bool TileStore::populate_some() {
  constexpr std::size_t at_once = std::size_t{512} << 10;
  const std::lock_guard lock(mutex_);
  if (to_populate_.empty()) return false;
  TilePool& pool = mutable_pool(to_populate_.front());
  const std::span<std::byte> pages = pool.next_pages(at_once);
  if (!pages.empty()) populate_pages(pages.data(), pages.size());
  if (!pool.lacks_pages()) to_populate_.erase(to_populate_.begin());
  return true;
}

void TileStore::populate(std::int32_t id) {
  TilePool* pool = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (std::erase(to_populate_, id) == 0) return;
    pool = &mutable_pool(id);
  }
  // No other thread gives this one pages any more.
  while (pool->lacks_pages()) {
    const std::span<std::byte> pages = pool->next_pages(std::numeric_limits<std::size_t>::max());
    if (!pages.empty()) populate_pages(pages.data(), pages.size());
  }
}

std::int64_t TileStore::blocks_available(PlaceId place, std::size_t block_bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t size = bytes_of_block(place, std::max<std::size_t>(1, block_bytes));
  if (place == host_place) return static_cast<std::int64_t>(host_.available() / size);
  const DeviceCache& cache = this->cache(place);
  return static_cast<std::int64_t>((cache.bytes() - std::min(cache.bytes(), cache.block_bytes())) /
                                   size);
}

// ---- tiles -------------------------------------------------------------------------------------

void TileStore::discard(protocol::BlockRef block) {
  const TilePool& pool = this->pool(block.pool);
  if (pool.place() == host_place) return;
  const ResidentBlock resident = pool.resident(block.index);
  if (resident != no_block) cache(pool.place()).discard(resident);
}

std::byte* TileStore::address(protocol::BlockRef block) const {
  const TilePool& pool = this->pool(block.pool);
  if (pool.place() == host_place) return pool.address(block.index);
  const ResidentBlock resident = pool.resident(block.index);
  return resident == no_block ? nullptr : cache(pool.place()).address(resident);
}

TileView TileStore::view(protocol::TileId tile, protocol::BlockRef block) const {
  const StoredMatrix& m = matrices_.at(tile.matrix);
  const TileShape s = m.table.shapes[static_cast<std::size_t>(tile.index)];
  const bool wrapped = !m.table.wrapped.empty() && block.pool == m.pools.front();
  return {reinterpret_cast<double*>(address(block)), s.rows, s.columns,
          wrapped ? m.table.wrapped_leading : std::max<std::int64_t>(1, s.rows)};
}

TileView TileStore::host_view(protocol::TileId tile, protocol::BlockRef block) const {
  const TilePool& pool = this->pool(block.pool);
  if (pool.place() == host_place) return view(tile, block);
  const TileShape s = shape(tile);
  const ResidentBlock resident = pool.resident(block.index);
  std::byte* const at = resident == no_block ? nullptr : cache(pool.place()).host_address(resident);
  return {reinterpret_cast<double*>(at), s.rows, s.columns, std::max<std::int64_t>(1, s.rows)};
}

// ---- sums --------------------------------------------------------------------------------------

std::size_t TileStore::bytes_of_block(PlaceId place, std::size_t bytes) {
  if (bytes == 0) return 0;
  return place == host_place ? padded(bytes) : Residency::frame_bytes(bytes);
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

std::uint64_t TileStore::evictions() const {
  std::int64_t count = 0;
  for (const auto& cache : caches_) count += cache->statistics().evictions;
  return static_cast<std::uint64_t>(count);
}

bool TileStore::is_valid() {
  const std::lock_guard lock(mutex_);
  std::uint64_t host_bytes = 0;
  std::size_t existing = 0;
  for (const auto& slot : pools_) {
    const TilePool* const pool = slot.load(std::memory_order_acquire);
    if (pool == nullptr) continue;
    if (!pool->is_valid()) return false;
    ++existing;
    host_bytes += pool->host_bytes();
  }
  for (const auto& cache : caches_) {
    if (!cache->is_valid()) return false;
    host_bytes += cache->backing_bytes();
  }
  const auto exists = [this](std::int32_t id) {
    return pools_[static_cast<std::size_t>(id)].load(std::memory_order_acquire) != nullptr;
  };
  bool matrices_have_pools = true;
  matrices_.for_each([&](const StoredMatrix& matrix) {
    const std::size_t wanted = matrix.table.temporary ? 0 : static_cast<std::size_t>(places());
    matrices_have_pools = matrices_have_pools && matrix.pools.size() == wanted &&
                          std::ranges::all_of(matrix.pools, exists);
  });
  const bool populating_is_valid = std::ranges::all_of(
      to_populate_, [&](std::int32_t id) { return exists(id) && pool(id).lacks_pages(); });
  return existing + free_pools_.size() == pools_max && matrices_have_pools && populating_is_valid &&
         matrices_.is_valid() && host_.is_valid() && host_bytes == host_.taken();
}

}  // namespace heddle
