#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/assert.hpp"
#include "base/index.hpp"
#include "kernels/kernel.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/memory/counted_memory.hpp"
#include "node-runtime/memory/device_cache.hpp"
#include "node-runtime/memory/stored_matrices.hpp"
#include "node-runtime/memory/tile_pool.hpp"
#include "node-runtime/memory/tile_table.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle {

/// The memory of one node: for each place the indirect table of tile addresses (001 section 5.4)
/// and the pools of jobs.
///
/// A matrix takes, at each place, one block per local tile plus `spare_count` for renaming of each
/// size of tile (a write that finds none waits for readers, which never wait for it). A job takes,
/// at each place, `capacity` blocks of its largest tile for replicas, arrivals, temporaries and
/// minor outputs in flight; the protocol's plan shows that `minimum` of them suffice. No other
/// memory holds tiles.
///
/// Blocks of a device's place share the device's memory (DeviceCache): unused ones may be in host
/// memory instead, so all of them together can be more than the device has. A pool is refused when
/// its backing does not fit in host memory, or when the device's memory is too small for tasks to
/// advance.
///
/// It has more than 30 functions because it is what all threads know of tiles' memory; matrices
/// (StoredMatrices), the blocks of a pool (TilePool), host memory (CountedMemory) and devices'
/// memories (DeviceCache) are classes of their own.
///
/// Invariant (`is_valid()`), while no other thread changes anything:
///   free pools + pools that exist = pools_max
///   a matrix that is not temporary has a pool at each place, which exists
///   host memory taken = sum of the pools' host bytes + sum of the devices' backings
///   a pool that is in `to_populate` exists and lacks pages
///   those of the classes above
///
/// Thread: registration and removal by one thread at a time; view() and address() by any thread for
/// pools that exist.
class TileStore {
 public:
  /// Most pools that may exist at one time.
  static constexpr std::size_t pools_max = 4096;

  /// Host memory behind the blocks of devices. as_needed: where they do not fit. all: always, from
  /// the beginning, so that no task on the host (host_view) waits for memory.
  enum class Backings : std::uint8_t { as_needed, all };

  /// `devices[d]` is place d + 1. The store outlives no device. At most `host_bytes_max` of host
  /// memory are taken.
  TileStore(std::vector<Device*> devices, std::uint64_t host_bytes_max,
            Backings backings = Backings::as_needed);
  ~TileStore();
  TileStore(const TileStore&) = delete;
  TileStore& operator=(const TileStore&) = delete;

  [[nodiscard]] std::int32_t places() const {
    return static_cast<std::int32_t>(devices_.size()) + 1;
  }

  /// Allocates the blocks of a matrix. Returns the pool of each place; empty for a temporary
  /// matrix. `id` must be the next unused one.
  std::vector<std::int32_t> add_matrix(protocol::MatrixId id, TileTable table);
  void remove_matrix(protocol::MatrixId id);

  /// Allocates `capacity` blocks of `block_bytes` at `place`; the pool's id. Throws, like
  /// add_matrix, Error(usage) that says what was asked for and what there is.
  /// `soon`: of the first blocks, the bytes that are used before long (populate_some).
  std::int32_t add_job_pool(PlaceId place, std::size_t block_bytes, std::int32_t capacity,
                            std::vector<std::size_t> soon = {});
  /// Its host memory counts as given back at once, and is kept for the next pool
  /// (CountedMemory::reuse), which has its pages then.
  void remove_job_pool(std::int32_t id);

  /// Gives pages to a few blocks on the host that are used soon, for less than a millisecond: the
  /// first write to a block would wait for the system to clear them, at a third of the rate of a
  /// message. False: there are none. Any one thread that has nothing better to do.
  bool populate_some();
  /// Gives all these pages to a pool at once, by several threads.
  void populate(std::int32_t pool);

  /// Blocks of `block_bytes` that add_job_pool would get at `place` now.
  [[nodiscard]] std::int64_t blocks_available(PlaceId place, std::size_t block_bytes);

  /// It has been added, and was not removed.
  [[nodiscard]] bool has_matrix(protocol::MatrixId id) const {
    return matrices_.find(id) != nullptr;
  }
  [[nodiscard]] TileShape shape(protocol::TileId tile) const {
    return matrices_.at(tile.matrix).table.shapes[static_cast<std::size_t>(tile.index)];
  }
  [[nodiscard]] std::size_t largest_tile_bytes(protocol::MatrixId id) const {
    return matrices_.at(id).largest_bytes;
  }
  [[nodiscard]] bool is_local(protocol::TileId tile) const {
    return matrices_.at(tile.matrix).table.is_local[static_cast<std::size_t>(tile.index)];
  }
  [[nodiscard]] PlaceId home_place(protocol::TileId tile) const {
    return matrices_.at(tile.matrix).table.home_places[static_cast<std::size_t>(tile.index)];
  }
  /// A block of a device's place: while it is acquired.
  [[nodiscard]] std::byte* address(protocol::BlockRef block) const;
  [[nodiscard]] TileView view(protocol::TileId tile, protocol::BlockRef block) const;
  /// In host memory; a block of a device's place: while it is in use on the host.
  [[nodiscard]] TileView host_view(protocol::TileId tile, protocol::BlockRef block) const;

  /// The memory of a device's place, and a block of it there.
  [[nodiscard]] DeviceCache& cache(PlaceId place) const {
    HEDDLE_DEBUG(place != host_place && place.value() < places(), "place {}", place.value());
    return *caches_[static_cast<std::size_t>(place.value()) - 1];
  }
  [[nodiscard]] ResidentBlock resident(protocol::BlockRef block) const {
    return pool(block.pool).resident(block.index);
  }
  /// The protocol has freed the block: its content is no longer needed.
  void discard(protocol::BlockRef block);

  /// Bytes that a block of `bytes` takes at a place, gaps between blocks included: the plan of a
  /// run counts as this store does.
  [[nodiscard]] static std::size_t bytes_of_block(PlaceId place, std::size_t bytes);
  /// Host memory that backs blocks of a device at most, which take `block_bytes` there.
  [[nodiscard]] static std::uint64_t backing_bytes_max(std::uint64_t block_bytes) {
    return DeviceCache::backing_bytes_max(block_bytes);
  }

  /// Memory that a device needs at least for tasks to advance when not all blocks fit, the largest
  /// of `block_bytes`.
  [[nodiscard]] static std::uint64_t least_device_bytes(std::size_t block_bytes,
                                                        std::size_t devices);

  /// Bytes of devices' blocks beyond the devices' memory: what is out of core.
  [[nodiscard]] std::uint64_t out_of_core_bytes() const;

  /// Most bytes of pools that existed at one time; of devices, that were in their memory.
  [[nodiscard]] std::uint64_t peak_host_bytes() const { return host_.peak(); }
  [[nodiscard]] std::uint64_t peak_device_bytes() const;
  /// Times that a block left a device's memory for another one to have room.
  [[nodiscard]] std::uint64_t evictions() const;
  /// O(everything); for tests.
  [[nodiscard]] bool is_valid();

 private:
  [[nodiscard]] const TilePool& pool(std::int32_t id) const {
    const TilePool* const found =
        pools_[static_cast<std::size_t>(id)].load(std::memory_order_acquire);
    HEDDLE_DEBUG(found != nullptr, "pool {} is unknown", id);
    return *found;
  }
  /// A pool that gets pages.
  [[nodiscard]] TilePool& mutable_pool(std::int32_t id);
  std::int32_t add_pool(std::unique_ptr<TilePool> pool);
  [[nodiscard]] std::unique_ptr<TilePool> take_pool(std::int32_t id);
  void give_back(const TilePool& pool);
  [[nodiscard]] std::unique_ptr<TilePool> matrix_pool(const TileTable& table,
                                                      const TileClasses& classes, PlaceId place);
  /// Gives blocks of these sizes (0 bytes: there is none) to a device's cache.
  [[nodiscard]] std::unique_ptr<TilePool> device_pool(PlaceId place,
                                                      const std::vector<std::size_t>& bytes,
                                                      const char* purpose,
                                                      DeviceCache::Locking locking);
  void require_free_pools(std::size_t count) const;
  void require_progress(PlaceId place, const char* purpose) const;
  std::shared_ptr<Backing> make_backing(Device& device, std::size_t bytes);

  std::vector<Device*> devices_;
  const Backings backings_;
  std::mutex mutex_;  ///< registration
  /// Release when a pool is added, acquire where it is used: a thread that has learned a pool's id
  /// sees the pool. Ids are reused only after the job or matrix is gone.
  std::array<std::atomic<TilePool*>, pools_max> pools_{};
  StoredMatrices matrices_;
  std::vector<std::int32_t> free_pools_;
  std::vector<std::int32_t> to_populate_;  ///< pools that lack pages
  /// Counted with caches' locks held, so not under `mutex_`, which is taken before those.
  CountedMemory host_;
  std::vector<std::unique_ptr<DeviceCache>> caches_;  ///< by device; gone before what they count in
};

}  // namespace heddle
