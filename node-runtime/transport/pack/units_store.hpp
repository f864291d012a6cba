#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "node-runtime/device/block_allocator.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/datatype/pack_plan.hpp"

namespace heddle::packing {

/// Brings plans' work units to a device and keeps them there (000 section 4.2.2).
///
/// Units travel in chunks, on a stream of their own, and each chunk's kernel is queued as soon as
/// the chunk is: while it runs, the next one is on its way. Once a plan's units are there they
/// stay, until room is needed and no queued kernel reads them; those that were not used for
/// longest go first. Units of a plan that finds no room pass through the chunks each time.
///
/// All memory, the device's and the page-locked one, is taken by the constructor.
///
/// Invariant (`is_valid()`): entries_ is ordered from the most recently used; by_plan_ has each
/// entry once; their blocks are what allocator_ has given out.
///
/// Threads: any. Destroyed when all kernels that read units have finished.
class UnitsStore {
 public:
  struct Options {
    std::size_t cache_bytes = std::size_t{16} << 20U;  ///< for units that stay
    std::size_t chunk_units = std::size_t{1} << 15U;   ///< of 24 bytes
    std::size_t chunks = 3;                            ///< at least 2: one travels, one is used
  };
  struct Statistics {
    std::int64_t found = 0;     ///< uses of units that were there
    std::int64_t prepared = 0;  ///< plans whose units were brought to stay
    std::int64_t passed = 0;    ///< uses for which units passed through
    std::int64_t dropped = 0;   ///< plans whose units made room for others
  };
  using Plan = std::shared_ptr<const PackPlan>;
  /// Queues a kernel that reads `count` units, from number `first` of the plan on, at `units`.
  using Launch = std::function<void(const WorkUnit* units, std::int64_t first, std::int64_t count)>;

  UnitsStore(Device& device, const Options& options);
  UnitsStore(const UnitsStore&) = delete;
  UnitsStore& operator=(const UnitsStore&) = delete;
  ~UnitsStore();

  /// Calls `launch`, which queues on `stream`, for pieces that make up units [first, end) of the
  /// plan. Blocks while chunks of earlier calls are on their way, not longer.
  void use(Stream& stream, const Plan& plan, std::int64_t first, std::int64_t end,
           const Launch& launch);

  [[nodiscard]] Statistics statistics() const;
  [[nodiscard]] bool is_valid() const;

 private:
  /// Page-locked memory that is given back with its owner.
  class HostMemory {
   public:
    HostMemory(Device& device, std::size_t bytes)
        : device_(device), address_(device.allocate_host(bytes)) {}
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;
    ~HostMemory() { device_.free_host(address_); }
    [[nodiscard]] std::byte* address() const { return static_cast<std::byte*>(address_); }

   private:
    Device& device_;
    void* address_;
  };
  /// The last kernel of a stream that reads some units.
  struct Use {
    const Stream* stream = nullptr;
    std::unique_ptr<Event> event;
  };
  struct Entry {
    Plan plan;
    std::uint64_t offset = 0;   ///< in memory_
    std::int64_t uploaded = 0;  ///< units, from the first on
    bool has_arrived = false;   ///< those that are uploaded, for certain
    std::unique_ptr<Event> arrived;
    std::vector<Use> uses;
  };
  struct Chunk {
    WorkUnit* host = nullptr;
    WorkUnit* device = nullptr;  ///< for units that do not stay
    bool is_lost = false;        ///< the stream that used it has failed and may still use it
    std::unique_ptr<Event> copied;
    std::unique_ptr<Event> used;
  };
  using Entries = std::list<Entry>;

  [[nodiscard]] Entry* entry_for(const Plan& plan);
  [[nodiscard]] bool make_room(std::uint64_t bytes);
  [[nodiscard]] static bool is_in_use(const Entry& entry);
  void use_kept(Stream& stream, Entry& entry, std::int64_t first, std::int64_t end,
                const Launch& launch);
  void upload_next(Stream& stream, Entry& entry, std::int64_t first, std::int64_t end,
                   const Launch& launch);
  void pass_through(Stream& stream, const PackPlan& plan, std::int64_t first, std::int64_t end,
                    const Launch& launch);
  void record_use(Stream& stream, Entry& entry);
  [[nodiscard]] Chunk& next_chunk();
  /// Copies units [first, first + count) of the plan to `to`, by way of the chunk, and lets
  /// `stream` wait for them. Records `arrived`, if any, behind the copy.
  void bring(Stream& stream, Chunk& chunk, const PackPlan& plan, std::int64_t first,
             std::int64_t count, WorkUnit* to, Event* arrived);
  [[nodiscard]] WorkUnit* units_of(const Entry& entry) const;
  [[nodiscard]] bool holds_invariant() const;

  Device& device_;
  const Options options_;
  DeviceBuffer memory_;
  HostMemory host_;
  std::unique_ptr<Stream> copies_;

  mutable std::mutex mutex_;  ///< of all below
  BlockAllocator allocator_;  ///< of the part of memory_ where units stay
  Entries entries_;
  std::unordered_map<const PackPlan*, Entries::iterator> by_plan_;
  std::vector<Chunk> chunks_;
  std::size_t next_chunk_ = 0;
  Statistics statistics_;
};

}  // namespace heddle::packing
