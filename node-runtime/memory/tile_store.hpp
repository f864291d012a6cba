#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/index.hpp"
#include "kernels/kernel.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/memory/device_cache.hpp"
#include "node-runtime/memory/host_region.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle {

/// Rows and columns of a tile of doubles. Blocks hold their tile column by column without gaps,
/// except where they are the caller's own memory.
struct TileShape {
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) * sizeof(double);
  }
  friend bool operator==(const TileShape&, const TileShape&) = default;
};

/// A matrix as the store needs to know it; vectors are indexed by tile.
struct TileTable {
  std::vector<TileShape> shapes;
  std::vector<PlaceId> home_places;  ///< meaningful for tiles of this node
  std::vector<bool> is_local;
  bool temporary = false;
  /// Blocks for renaming of each size, at each place that keeps tiles of that size.
  std::int32_t spare_count = 0;
  /// The caller's memory instead of the store's own: where each local tile begins, and the distance
  /// of its columns in doubles. Empty otherwise. Such tiles are not renamed.
  std::vector<double*> wrapped;
  std::int64_t wrapped_leading = 0;
};

/// Tiles of equal size, which may take each other's blocks when they are renamed.
struct TileClasses {
  std::vector<std::int32_t> of_tile;  ///< by tile; empty where all are of one class
  std::vector<std::size_t> bytes;     ///< by class, at least one
};
[[nodiscard]] TileClasses classes_of(const std::vector<TileShape>& shapes);

/// The memory of one node: for each place the indirect table of tile addresses (001 section 5.4)
/// and the pools of jobs.
///
/// Pools held per matrix and place: one block per local tile plus `spare_count` for renaming of
/// each size of tile (a write that finds none waits for readers, which never wait for it). Per job
/// and place: `capacity` blocks of the job's largest tile for replicas, arrivals, temporaries and
/// minor outputs on their way; the protocol's plan shows that `minimum` of them suffice. Nothing
/// else takes memory that tiles live in.
///
/// Blocks of a device's place share the device's memory (DeviceCache): those that are not in use
/// may be in host memory instead, so that all of them together can be more than the device has.
/// Pools are refused when their backing does not fit in host memory, or when the device's memory is
/// too small for tasks to advance.
///
/// Thread: registration and removal by one thread at a time; view() and address() by any thread for
/// pools that exist.
class TileStore {
 public:
  /// Most pools that may exist at one time.
  static constexpr std::size_t pools_max = 4096;

  /// Host memory behind what devices' memories hold. as_needed: for what does not fit. all: for all
  /// of it from the beginning, so that no task on the host (host_view) waits for memory.
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
  /// `soon`: of the first blocks, the bytes that are going to be used before long (populate_some).
  std::int32_t add_job_pool(PlaceId place, std::size_t block_bytes, std::int32_t capacity,
                            std::vector<std::size_t> soon = {});
  /// Its host memory counts as given back at once. It is kept for the next pool of half its size at
  /// least, which has its pages then, and goes back to the system before anything else is taken
  /// from there.
  void remove_job_pool(std::int32_t id);

  /// Gives pages to a few blocks on the host that are going to be used, for less than a
  /// millisecond: who writes a block for the first time would wait for the system to clear them, at
  /// a third of the rate of a message. False: there are none. Any one thread that has nothing
  /// better to do.
  bool populate_some();
  /// Gives all these pages to a pool at once, by several threads.
  void populate(std::int32_t pool);

  /// Blocks of `block_bytes` that add_job_pool would get at `place` now.
  [[nodiscard]] std::int64_t blocks_available(PlaceId place, std::size_t block_bytes);

  /// It has been added, and was not removed.
  [[nodiscard]] bool has_matrix(protocol::MatrixId id) const;
  [[nodiscard]] TileShape shape(protocol::TileId tile) const;
  /// Of a device's place: while the block is acquired.
  [[nodiscard]] std::byte* address(protocol::BlockRef block) const;
  [[nodiscard]] TileView view(protocol::TileId tile, protocol::BlockRef block) const;
  /// In host memory, of a device's place too: while the block is in use there.
  [[nodiscard]] TileView host_view(protocol::TileId tile, protocol::BlockRef block) const;
  [[nodiscard]] std::size_t largest_tile_bytes(protocol::MatrixId id) const;
  [[nodiscard]] bool is_local(protocol::TileId tile) const;
  [[nodiscard]] PlaceId home_place(protocol::TileId tile) const;

  /// The memory of a device's place, and a block of it there.
  [[nodiscard]] DeviceCache& cache(PlaceId place) const {
    return *caches_[static_cast<std::size_t>(place.value()) - 1];
  }
  [[nodiscard]] ResidentBlock resident(protocol::BlockRef block) const;
  /// The protocol has freed the block: nobody needs its content any more.
  void discard(protocol::BlockRef block);

  /// What a block of so many bytes takes at a place, with what lies between blocks: the plan of a
  /// run counts as this store does.
  [[nodiscard]] static std::size_t bytes_of_block(PlaceId place, std::size_t bytes);
  /// Host memory that backs blocks of a device at most, which take `block_bytes` there.
  [[nodiscard]] static std::uint64_t backing_bytes_max(std::uint64_t block_bytes);

  /// Memory that a device needs at least for tasks to advance when not all blocks fit, the largest
  /// of `block_bytes`.
  [[nodiscard]] static std::uint64_t least_device_bytes(std::size_t block_bytes,
                                                        std::size_t devices);

  /// Bytes that devices' places have beyond the devices' memory: what is out of core.
  [[nodiscard]] std::uint64_t out_of_core_bytes() const;

  /// Most bytes of pools that existed at one time; of devices, that were in their memory.
  [[nodiscard]] std::uint64_t peak_host_bytes() const {
    return peak_host_bytes_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t peak_device_bytes() const;
  /// Times that a block left a device's memory for another one to have room.
  [[nodiscard]] std::uint64_t evictions() const;

 private:
  struct PoolMemory {
    PlaceId place;
    std::size_t block_bytes = 0;     ///< of a job's pool
    std::byte* base = nullptr;       ///< of a job's pool
    std::vector<std::byte*> blocks;  ///< of a matrix's pool, by block index
    HostRegion host;
    std::size_t bytes = 0;                 ///< of host memory
    std::vector<std::size_t> soon;         ///< bytes of the first blocks that get their pages
    std::size_t populated_blocks = 0;      ///< of those
    std::size_t populated_bytes = 0;       ///< of the next one
    std::vector<ResidentBlock> residents;  ///< of a device's pool, by block index
  };
  struct Matrix {
    TileTable table;
    std::size_t largest_bytes = 0;
    std::vector<std::int32_t> pools;
  };

  [[nodiscard]] std::atomic<Matrix*>& slot(protocol::MatrixId id) const {
    const auto index = static_cast<std::size_t>(id.value());
    Chunk* chunk = chunks_[index / matrices_per_chunk].load(std::memory_order_acquire);
    return (*chunk)[index % matrices_per_chunk];
  }
  [[nodiscard]] const Matrix& matrix(protocol::MatrixId id) const {
    return *slot(id).load(std::memory_order_acquire);
  }
  std::int32_t add_pool(std::unique_ptr<PoolMemory> pool);
  void reserve_host(std::size_t bytes, const char* purpose);
  std::byte* allocate(PoolMemory& pool, std::size_t bytes, const char* purpose);
  [[nodiscard]] static std::span<std::byte> next_pages(PoolMemory& pool, std::size_t bytes_max);
  [[nodiscard]] bool reuse(PoolMemory& pool, std::size_t bytes, const char* purpose);
  std::unique_ptr<PoolMemory> matrix_pool(const TileTable& table, const TileClasses& classes,
                                          PlaceId place);
  /// Gives the blocks (0 bytes: there is none) of a device's pool to its cache.
  void add_to_device(PoolMemory& pool, const std::vector<std::size_t>& bytes, const char* purpose,
                     DeviceCache::Locking locking);
  void give_back(PoolMemory& pool);
  [[nodiscard]] std::unique_ptr<PoolMemory> take_pool(std::int32_t id);
  std::shared_ptr<Backing> make_backing(Device& device, std::size_t bytes);

  std::vector<Device*> devices_;
  const std::uint64_t host_bytes_max_;
  const Backings backings_;
  std::mutex mutex_;  ///< registration
  /// Release on registration, acquire on use: a reader that has got hold of a pool's id sees the
  /// pool. Ids are reused only after the job or matrix is gone.
  std::array<std::atomic<PoolMemory*>, pools_max> pools_{};
  /// Matrices are never renumbered (all nodes count alike), so their table grows, by chunks that
  /// stay where they are.
  static constexpr std::size_t chunk_count = 4096;
  static constexpr std::size_t matrices_per_chunk = 1024;
  using Chunk = std::array<std::atomic<Matrix*>, matrices_per_chunk>;
  std::array<std::atomic<Chunk*>, chunk_count> chunks_{};
  std::vector<std::int32_t> free_pools_;
  std::vector<std::int32_t> to_populate_;  ///< pools with blocks that are going to be used
  std::vector<HostRegion> kept_;           ///< of removed pools, counted no more
  /// Relaxed: sums for refusals and the report. Changed with caches' locks held, so not under
  /// `mutex_`, which is taken before those.
  std::atomic<std::uint64_t> host_bytes_{0};
  std::atomic<std::uint64_t> peak_host_bytes_{0};
  std::vector<std::unique_ptr<DeviceCache>> caches_;  ///< by device; gone before what they count in
};

}  // namespace heddle
