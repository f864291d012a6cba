#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/flat_map.hpp"
#include "node-runtime/residency/residency.hpp"
#include "replay/simulation/block_uses.hpp"
#include "replay/simulation/simulated_job.hpp"

namespace heddle::replay {

/// Pools of the job have numbers from here on, by place; those of matrices are below.
inline constexpr std::int32_t job_pool_base = 1 << 20;

/// Where the contents of the blocks of a node's devices are, once these do not just stay there:
/// CPU workers use them too, or not all of them fit. For each device the runtime's own state
/// machine; what DeviceCache is to the runtime, for who waits by a number. Pure; not thread-safe.
class SimulatedMemory {
 public:
  enum class Side : std::uint8_t { device, host };

  /// A block's content between its device and the host.
  struct Transfer {
    PlaceId device;
    protocol::BlockRef block;
    protocol::TileId tile;
    bool is_fetch = false;
  };

  /// `bytes` of each device, `job_block_bytes` of each block of the job's pools.
  SimulatedMemory(const SimulatedJob& job, std::int32_t devices, std::uint64_t bytes,
                  std::uint64_t job_block_bytes);
  /// The same for devices with room for all, whose tiles are there from the beginning.
  SimulatedMemory(const SimulatedJob& job, std::int32_t devices);

  /// A device's tiles have been written one after the other before the job begins: those that the
  /// last ones have left no room for are on the host.
  void fill(PlaceId place, std::span<const BlockUse> tiles);

  /// As DeviceCache's; `waiter` comes back from take_ready().
  [[nodiscard]] bool try_acquire(PlaceId place, std::span<const BlockUse> uses);
  void request(PlaceId place, Side side, std::span<const BlockUse> uses, std::int32_t waiter);
  void release(PlaceId place, Side side, std::span<const BlockUse> uses);
  /// Whether a use on the host needs a write-back first.
  [[nodiscard]] bool lacks_on_host(PlaceId place, const BlockUse& use) const;
  /// Nobody needs the content any more.
  void freed(PlaceId place, protocol::BlockRef block);

  /// What a message reads or writes, as DeviceCache::reach(); `nowhere`: while a transfer of this
  /// very block is under way.
  enum class Reach : std::uint8_t { nowhere, device, backing };
  [[nodiscard]] Reach reach(PlaceId place, const BlockUse& use);
  void end_reach(PlaceId place, const BlockUse& use, Reach reach);

  void transfer_ends(const Transfer& transfer);
  /// Since they were last taken.
  [[nodiscard]] std::vector<Transfer> take_transfers();
  /// How urgent the transfer of a block is now.
  [[nodiscard]] std::int32_t priority_of(PlaceId place, protocol::BlockRef block) const;
  [[nodiscard]] std::vector<std::int32_t> take_ready();

  /// Times that a tile left a device for others to have room.
  [[nodiscard]] std::int64_t evictions() const;

 private:
  struct Hash {
    std::size_t operator()(const protocol::BlockRef& block) const;
  };
  struct Device {
    explicit Device(std::uint64_t bytes) : residency({.bytes = bytes}) {}

    Residency residency;
    mutable FlatMap<protocol::BlockRef, ResidentBlock, Hash> blocks{};  // finding changes nothing
    std::vector<protocol::BlockRef> refs{};                             ///< by ResidentBlock
    std::unordered_map<std::int64_t, std::int32_t> waiters{};           ///< by ticket
  };

  [[nodiscard]] Device& at(PlaceId place) {
    return devices_[static_cast<std::size_t>(place.value()) - 1];
  }
  [[nodiscard]] const Device& at(PlaceId place) const {
    return devices_[static_cast<std::size_t>(place.value()) - 1];
  }
  [[nodiscard]] std::uint64_t bytes_of(const BlockUse& use) const;
  [[nodiscard]] ResidentBlock resident(Device& device, const BlockUse& use);
  [[nodiscard]] std::span<const Residency::Use> residents(Device& device,
                                                          std::span<const BlockUse> uses);
  void define(Device& device, const Residency::Use& use);
  void collect(PlaceId place);

  const SimulatedJob& job_;
  std::uint64_t job_block_bytes_ = 0;
  std::vector<Device> devices_;
  Residency::Actions actions_;
  std::vector<Residency::Use> uses_;  ///< of the one who asks
  std::vector<Transfer> transfers_;
  std::vector<std::int32_t> ready_;
};

}  // namespace heddle::replay
