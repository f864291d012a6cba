#include "replay/simulation/simulated_memory.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace heddle::replay {

using protocol::AccessMode;
using protocol::BlockRef;

namespace {

/// More than all tiles of any job.
constexpr std::uint64_t room_for_all = std::uint64_t{1} << 60U;

}  // namespace

std::size_t SimulatedMemory::Hash::operator()(const BlockRef& block) const {
  std::uint64_t z = static_cast<std::uint64_t>(static_cast<std::uint32_t>(block.pool)) << 32U |
                    static_cast<std::uint32_t>(block.index);
  z = (z ^ z >> 30U) * 0xBF58476D1CE4E5B9U;
  z = (z ^ z >> 27U) * 0x94D049BB133111EBU;
  return z ^ z >> 31U;
}

SimulatedMemory::SimulatedMemory(const SimulatedJob& job, std::int32_t devices, std::uint64_t bytes,
                                 std::uint64_t job_block_bytes)
    : job_(job), job_block_bytes_(job_block_bytes) {
  for (std::int32_t d = 0; d < devices; ++d) devices_.emplace_back(bytes);
}

SimulatedMemory::SimulatedMemory(const SimulatedJob& job, std::int32_t devices)
    : SimulatedMemory(job, devices, room_for_all, 0) {}

// ---- blocks ----------------------------------------------------------------------------------

std::uint64_t SimulatedMemory::bytes_of(const BlockUse& use) const {
  const bool is_of_job = use.block.pool >= job_pool_base && job_block_bytes_ > 0;
  return is_of_job ? job_block_bytes_ : job_.tile_bytes(use.tile);
}

/// `no_block` for an empty tile.
ResidentBlock SimulatedMemory::resident(Device& device, const BlockUse& use) {
  if (const ResidentBlock* const known = device.blocks.find(use.block)) return *known;
  const std::uint64_t bytes = bytes_of(use);
  if (bytes == 0) return no_block;
  const ResidentBlock block = device.residency.add_block(bytes);
  device.blocks[use.block] = block;
  const auto index = static_cast<std::size_t>(block.value());
  if (device.refs.size() <= index) device.refs.resize(index + 1);
  device.refs[index] = use.block;
  return block;
}

/// Valid until the next call. Blocks to be read are given content.
std::span<const Residency::Use> SimulatedMemory::residents(Device& device,
                                                           std::span<const BlockUse> uses) {
  uses_.clear();
  for (const BlockUse& use : uses) {
    const ResidentBlock block = resident(device, use);
    if (block == no_block) continue;
    uses_.push_back({block, use.mode, use.tile, use.priority});
    define(device, uses_.back());
  }
  return uses_;
}

/// Gives content to a tile that is read but was never written, as DeviceCache::define(): with room
/// for all, a tile is on its device from the start.
void SimulatedMemory::define(Device& device, const Residency::Use& use) {
  Residency& residency = device.residency;
  if (use.mode == AccessMode::write) return;
  if (residency.content(use.block) != Residency::Content::invalid) return;
  if (!residency.adopt_frame(use.block)) residency.adopt_backing(use.block);
}

void SimulatedMemory::fill(PlaceId place, std::span<const BlockUse> tiles) {
  Device& device = at(place);
  Residency& residency = device.residency;
  std::uint64_t left = residency.bytes();
  std::size_t first = tiles.size();  // on the device
  while (first > 0 && bytes_of(tiles[first - 1]) <= left) left -= bytes_of(tiles[--first]);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const ResidentBlock block = resident(device, tiles[i]);
    if (block == no_block) continue;
    const Residency::Use use{block, AccessMode::write, tiles[i].tile};
    if (i < first || !residency.try_acquire({&use, 1})) {
      residency.adopt_backing(block);
      continue;
    }
    residency.release({&use, 1}, actions_);
    // Early write-backs are complete.
    while (!actions_.write_backs.empty()) {
      const Residency::Transfer transfer = actions_.write_backs.back();
      actions_.write_backs.pop_back();
      residency.write_back_finished(transfer.block, actions_);
    }
  }
}

// ---- use -------------------------------------------------------------------------------------

bool SimulatedMemory::try_acquire(PlaceId place, std::span<const BlockUse> uses) {
  Device& device = at(place);
  return device.residency.try_acquire(residents(device, uses));
}

void SimulatedMemory::request(PlaceId place, Side side, std::span<const BlockUse> uses,
                              std::int32_t waiter) {
  Device& device = at(place);
  const std::span<const Residency::Use> wanted = residents(device, uses);
  const Residency::TicketId ticket = side == Side::host
                                         ? device.residency.request_host(wanted, actions_)
                                         : device.residency.request(wanted, actions_);
  device.waiters.emplace(ticket.value(), waiter);
  collect(place);
}

void SimulatedMemory::release(PlaceId place, Side side, std::span<const BlockUse> uses) {
  Device& device = at(place);
  const std::span<const Residency::Use> used = residents(device, uses);
  if (side == Side::host) {
    device.residency.release_host(used, actions_);
  } else {
    device.residency.release(used, actions_);
  }
  collect(place);
}

bool SimulatedMemory::lacks_on_host(PlaceId place, const BlockUse& use) const {
  if (use.mode == AccessMode::write) return false;
  const Device& device = at(place);
  const ResidentBlock* const block = device.blocks.find(use.block);
  const bool is_known =
      block != nullptr && device.residency.content(*block) != Residency::Content::invalid;
  if (!is_known) return bytes_of(use) > 0;
  const Residency::Use wanted{*block, use.mode, use.tile};
  return device.residency.missing_host_bytes({&wanted, 1}) > 0;
}

void SimulatedMemory::freed(PlaceId place, BlockRef block) {
  Device& device = at(place);
  const ResidentBlock* const known = device.blocks.find(block);
  if (known == nullptr) return;
  device.residency.discard(*known, actions_);
  collect(place);
}

SimulatedMemory::Reach SimulatedMemory::reach(PlaceId place, const BlockUse& use) {
  Device& device = at(place);
  const std::span<const Residency::Use> uses = residents(device, {&use, 1});
  if (uses.empty()) return Reach::backing;  // nothing to transfer
  Residency& residency = device.residency;
  if (residency.try_acquire(uses, Residency::Overtaking::free)) return Reach::device;
  const ResidentBlock block = uses.front().block;
  const bool is_backed =
      use.mode == AccessMode::read && residency.content(block) == Residency::Content::backed;
  const bool may_move = residency.is_in_transfer(block) || residency.is_resident(block);
  return may_move && !is_backed ? Reach::nowhere : Reach::backing;
}

void SimulatedMemory::end_reach(PlaceId place, const BlockUse& use, Reach reach) {
  if (reach == Reach::device) return release(place, Side::device, {&use, 1});
  if (use.mode == AccessMode::read) return;
  Device& device = at(place);
  const ResidentBlock block = resident(device, use);
  if (block == no_block) return;
  device.residency.discard(block, actions_);
  device.residency.adopt_backing(block);
  collect(place);
}

// ---- transfers -------------------------------------------------------------------------------

void SimulatedMemory::transfer_ends(const Transfer& transfer) {
  Device& device = at(transfer.device);
  const ResidentBlock* const block = device.blocks.find(transfer.block);
  HEDDLE_CHECK(block != nullptr, "block {} of pool {}", transfer.block.index, transfer.block.pool);
  if (transfer.is_fetch) {
    device.residency.fetch_finished(*block, actions_);
  } else {
    device.residency.write_back_finished(*block, actions_);
  }
  collect(transfer.device);
}

void SimulatedMemory::collect(PlaceId place) {
  Device& device = at(place);
  const auto add = [&](const Residency::Transfer& transfer, bool is_fetch) {
    const BlockRef block = device.refs[static_cast<std::size_t>(transfer.block.value())];
    transfers_.push_back({place, block, transfer.tile, is_fetch});
  };
  for (const Residency::Transfer& transfer : actions_.write_backs) add(transfer, false);
  for (const Residency::Transfer& transfer : actions_.fetches) add(transfer, true);
  for (const Residency::TicketId ticket : actions_.ready) {
    const auto found = device.waiters.find(ticket.value());
    HEDDLE_CHECK(found != device.waiters.end(), "ticket {}", ticket.value());
    ready_.push_back(found->second);
    device.waiters.erase(found);
  }
  actions_.clear();
}

std::vector<SimulatedMemory::Transfer> SimulatedMemory::take_transfers() {
  return std::exchange(transfers_, {});
}

std::int32_t SimulatedMemory::priority_of(PlaceId place, BlockRef block) const {
  const Device& device = at(place);
  const ResidentBlock* const known = device.blocks.find(block);
  HEDDLE_CHECK(known != nullptr, "block {} of pool {}", block.index, block.pool);
  return device.residency.priority_of(*known);
}

std::vector<std::int32_t> SimulatedMemory::take_ready() {
  return std::exchange(ready_, {});
}

std::int64_t SimulatedMemory::evictions() const {
  std::int64_t count = 0;
  for (const Device& device : devices_) count += device.residency.statistics().evictions;
  return count;
}

bool try_reach(SimulatedMemory* memory, PlaceId place, const BlockUse& use,
               SimulatedMemory::Reach& reach) {
  if (memory == nullptr || place == host_place) return true;
  reach = memory->reach(place, use);
  return reach != SimulatedMemory::Reach::nowhere;
}

void end_reach(SimulatedMemory* memory, PlaceId place, const BlockUse& use,
               SimulatedMemory::Reach reach) {
  if (memory != nullptr && place != host_place) memory->end_reach(place, use, reach);
}

}  // namespace heddle::replay
