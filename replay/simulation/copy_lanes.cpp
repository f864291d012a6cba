#include "replay/simulation/copy_lanes.hpp"

#include <algorithm>
#include <utility>

namespace heddle::replay {

using protocol::AccessMode;
using protocol::CopyAction;

CopyLanes::CopyLanes(SimulatedWorld& world, NodeId node, Records<MemoryWait>& waits)
    : world_(world),
      node_(node),
      waits_(waits),
      lanes_(2 * static_cast<std::size_t>(world.machine.devices)) {}

void CopyLanes::post(const CopyAction& action) {
  const std::int32_t number = lane_of(action);
  Lane& lane = lanes_[static_cast<std::size_t>(number)];
  lane.waiting.push_back(copies_.add({action, world_.now_ns, 0}));
  std::ranges::push_heap(lane.waiting, {}, priority());
  start(number);
}

void CopyLanes::post(const SimulatedMemory::Transfer& transfer) {
  CopyAction action;
  action.job = protocol::JobId{-1};
  action.tile = transfer.tile;
  action.number = Version{-1};
  action.from_place = transfer.is_fetch ? host_place : transfer.device;
  action.to_place = transfer.is_fetch ? transfer.device : host_place;
  action.from = action.to = transfer.block;
  const std::int32_t number = lane_of(action);
  lanes_[static_cast<std::size_t>(number)].transfers.push_back(
      copies_.add({action, world_.now_ns, 0, true}));
  start(number);
}

void CopyLanes::lane_is_free(std::int32_t lane) {
  lanes_[static_cast<std::size_t>(lane)].is_awaited = false;
  start(lane);
}

void CopyLanes::block_came(std::int32_t copy) {
  ++copies_.at(copy).acquired;
  acquire_ends(copy);
  start(lane_of(copies_.at(copy).action));
}

SimulatedCopy CopyLanes::take_ended(std::int32_t copy) {
  copies_.remove(copy);
  return copies_.at(copy);
}

void CopyLanes::release_ends(const CopyAction& action) {
  if (memory_ == nullptr) return;
  const Ends ends = ends_of(action);
  for (std::size_t i = 0; i < ends.count; ++i) {
    const Ends::End& end = ends.all.at(i);
    memory_->release(end.place, SimulatedMemory::Side::device, {&end.use, 1});
  }
}

bool CopyLanes::is_valid() const {
  return std::ranges::all_of(lanes_, [this](const Lane& lane) {
    return lane.acquiring >= 0 &&
           lane.acquired.size() + static_cast<std::size_t>(lane.acquiring) <= at_a_time() &&
           std::ranges::is_heap(lane.waiting, {}, priority());
  });
}

std::int32_t CopyLanes::lane_of(const CopyAction& action) {
  const bool to_host = action.to_place == host_place;
  const std::int32_t device = (to_host ? action.from_place : action.to_place).value() - 1;
  return 2 * device + (to_host ? 1 : 0);
}

CopyLanes::Ends CopyLanes::ends_of(const CopyAction& action) {
  Ends ends;
  const auto add = [&](PlaceId place, protocol::BlockRef block, AccessMode mode) {
    if (place == host_place) return;
    ends.all.at(ends.count++) = {place, {block, mode, action.tile, action.priority}};
  };
  add(action.from_place, action.from, AccessMode::read);
  add(action.to_place, action.to, AccessMode::write);
  if (ends.count == 2 && ends.all[1].place < ends.all[0].place) std::swap(ends.all[0], ends.all[1]);
  return ends;
}

/// The most urgent copies acquire their ends.
void CopyLanes::acquire_for_next(Lane& lane) {
  const std::size_t running = lane.free_ns > world_.now_ns ? 1 : 0;
  while (!lane.waiting.empty() &&
         running + lane.acquired.size() + static_cast<std::size_t>(lane.acquiring) < at_a_time()) {
    std::ranges::pop_heap(lane.waiting, {}, priority());
    const std::int32_t copy = lane.waiting.back();
    lane.waiting.pop_back();
    ++lane.acquiring;
    acquire_ends(copy);
  }
}

/// Acquires missing ends; the copy may start with the last. All copies acquire in one order: no
/// deadlock.
void CopyLanes::acquire_ends(std::int32_t number) {
  SimulatedCopy& copy = copies_.at(number);
  const Ends ends = memory_ != nullptr ? ends_of(copy.action) : Ends{};
  for (; copy.acquired < ends.count; ++copy.acquired) {
    const Ends::End& end = ends.all.at(copy.acquired);
    if (memory_->try_acquire(end.place, {&end.use, 1})) continue;
    memory_->request(end.place, SimulatedMemory::Side::device, {&end.use, 1},
                     waits_.add({MemoryWait::Kind::copy, nullptr, number}));
    return;
  }
  Lane& lane = lanes_[static_cast<std::size_t>(lane_of(copy.action))];
  --lane.acquiring;
  lane.acquired.push_back(number);
}

/// The most urgent waiting transfer, first-in-first-out among equals.
std::int32_t CopyLanes::take_transfer(Lane& lane) {
  const auto urgency = [this](std::int32_t number) {
    const CopyAction& action = copies_.at(number).action;
    const PlaceId device = action.to_place == host_place ? action.from_place : action.to_place;
    return memory_->priority_of(device, action.to);
  };
  const auto first = std::ranges::max_element(lane.transfers, {}, urgency);
  const std::int32_t number = *first;
  lane.transfers.erase(first);
  return number;
}

/// Starts the lane's next copy if the lane is free, otherwise when it will be.
void CopyLanes::start(std::int32_t number) {
  Lane& lane = lanes_[static_cast<std::size_t>(number)];
  acquire_for_next(lane);
  const bool has_waiting = memory_ == nullptr && !lane.waiting.empty();
  if ((!has_waiting && lane.acquired.empty() && lane.transfers.empty()) || lane.is_awaited) return;
  if (lane.free_ns > world_.now_ns) {
    lane.is_awaited = true;
    return world_.post(Event::Kind::lane_is_free, lane.free_ns, number, node_);
  }
  std::int32_t record = 0;
  if (lane.transfers.empty()) {
    record = lane.acquired.front();
    lane.acquired.pop_front();
  } else {
    record = take_transfer(lane);
  }
  SimulatedCopy& copy = copies_.at(record);
  copy.start_ns = world_.now_ns;
  const Way& way = world_.machine.way(copy.action.from_place, copy.action.to_place);
  const std::uint64_t bytes = world_.job.tile_bytes(copy.action.tile);
  lane.free_ns = world_.now_ns + ns_of(static_cast<double>(bytes) / way.bytes_per_s);
  count(copy, bytes);
  world_.post(Event::Kind::copy_ends, lane.free_ns + ns_of(way.latency_s), record, node_);
  start(number);
}

void CopyLanes::count(const SimulatedCopy& copy, std::uint64_t bytes) {
  SimulationResult& result = world_.result;
  if (!copy.is_transfer) {
    ++result.copies;
    result.copied_bytes += bytes;
  } else if (copy.action.to_place == host_place) {
    ++result.write_backs;
    result.written_bytes += bytes;
  } else {
    ++result.fetches;
    result.fetched_bytes += bytes;
  }
}

}  // namespace heddle::replay
