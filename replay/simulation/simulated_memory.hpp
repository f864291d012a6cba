#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/flat_map.hpp"
#include "node-runtime/residency/residency.hpp"
#include "replay/simulation/block_uses.hpp"
#include "replay/simulation/simulated_job.hpp"

namespace heddle::replay {

/// Pool numbers of the job start here, by place; smaller ones are of matrices.
inline constexpr std::int32_t job_pool_base = 1 << 20;

/// Location of device blocks if they move: CPU workers use them too, or not all fit. Runs the
/// runtime's Residency for each device; the counterpart of DeviceCache for waiters named by a
/// number. Pure; not thread-safe.
class SimulatedMemory {
 public:
  enum class Side : std::uint8_t { device, host };

  /// A transfer of a block between its device and the host.
  struct Transfer {
    PlaceId device;
    protocol::BlockRef block;
    protocol::TileId tile;
    bool is_fetch = false;
  };

  /// `bytes` per device, `job_block_bytes` per block of the job's pools.
  SimulatedMemory(const SimulatedJob& job, std::int32_t devices, std::uint64_t bytes,
                  std::uint64_t job_block_bytes);
  /// The same for devices with room for all, whose tiles are present from the start.
  SimulatedMemory(const SimulatedJob& job, std::int32_t devices);

  /// Writes a device's tiles one after the other before the job begins: the earlier ones are on the
  /// host if the later ones left no room.
  void fill(PlaceId place, std::span<const BlockUse> tiles);

  /// As DeviceCache's; take_ready() returns `waiter`.
  [[nodiscard]] bool try_acquire(PlaceId place, std::span<const BlockUse> uses);
  void request(PlaceId place, Side side, std::span<const BlockUse> uses, std::int32_t waiter);
  void release(PlaceId place, Side side, std::span<const BlockUse> uses);
  /// Whether a use on the host needs a write-back first.
  [[nodiscard]] bool lacks_on_host(PlaceId place, const BlockUse& use) const;
  /// The content is no longer needed.
  void freed(PlaceId place, protocol::BlockRef block);

  /// Memory of a message, as DeviceCache::acquire_for_message(); `nowhere` while a transfer of this
  /// block is in progress.
  enum class Reach : std::uint8_t { nowhere, device, backing };
  [[nodiscard]] Reach reach(PlaceId place, const BlockUse& use);
  void end_reach(PlaceId place, const BlockUse& use, Reach reach);

  void transfer_ends(const Transfer& transfer);
  /// Since the last call.
  [[nodiscard]] std::vector<Transfer> take_transfers();
  /// Present priority of a block's transfer.
  [[nodiscard]] std::int32_t priority_of(PlaceId place, protocol::BlockRef block) const;
  [[nodiscard]] std::vector<std::int32_t> take_ready();

  /// Number of tiles evicted from a device.
  [[nodiscard]] std::int64_t evictions() const;

 private:
  struct Hash {
    std::size_t operator()(const protocol::BlockRef& block) const;
  };
  struct Device {
    explicit Device(std::uint64_t bytes) : residency({.bytes = bytes}) {}

    Residency residency;
    mutable FlatMap<protocol::BlockRef, ResidentBlock, Hash> blocks{};  // lookups do not change it
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
  std::deque<Device> devices_;  ///< a Residency does not move
  Residency::Actions actions_;
  std::vector<Residency::Use> uses_;  ///< scratch
  std::vector<Transfer> transfers_;
  std::vector<std::int32_t> ready_;
};

/// SimulatedMemory::reach() for any place. On the host, and where `memory` is null, every block can
/// be reached. False while the block is in transfer.
[[nodiscard]] bool try_reach(SimulatedMemory* memory, PlaceId place, const BlockUse& use,
                             SimulatedMemory::Reach& reach);
void end_reach(SimulatedMemory* memory, PlaceId place, const BlockUse& use,
               SimulatedMemory::Reach reach);

}  // namespace heddle::replay
