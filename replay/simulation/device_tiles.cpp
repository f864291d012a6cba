#include <algorithm>

#include "replay/simulation/simulated_node.hpp"

/// Device blocks that are evicted and fetched, and their waiters: the simulated counterpart of
/// threads/device_manager.cpp and threads/copy_thread.cpp with DeviceCache.
namespace heddle::replay {

using protocol::AccessMode;
using protocol::CopyAction;

using Side = SimulatedMemory::Side;

/// Blocks of devices move if workers use them too, or if not all of them fit.
void SimulatedNode::begin_memory(const Needs& needs) {
  const std::int32_t devices = world_.machine.devices;
  if (needs.fit && !world_.options.lends) return;
  if (needs.fit) {
    memory_ = std::make_unique<SimulatedMemory>(world_.job, devices);
  } else {
    memory_ = std::make_unique<SimulatedMemory>(
        world_.job, devices, world_.machine.device_memory_bytes,
        *std::max_element(needs.block_bytes.begin() + 1, needs.block_bytes.end()));
    for (PlaceId place{1}; place.value() <= devices; ++place) {
      std::vector<BlockUse> tiles;
      for (const protocol::TileId tile : needs.memory->tiles(place)) {
        tiles.push_back({protocol_.current_block(tile, place), AccessMode::write, tile});
      }
      memory_->fill(place, tiles);
    }
  }
  if (!world_.options.lends) return;
  lending_ = std::make_unique<SimulatedLending>(world_, *memory_);
  if (lending_->is_worth_lending()) return;
  lending_.reset();
  if (needs.fit) memory_.reset();
}

/// Starts transfers that the memories request, and serves waiters whose blocks arrived. False if
/// there were none.
bool SimulatedNode::serve_memory() {
  if (!memory_) return false;
  bool any = false;
  for (;;) {
    for (const SimulatedMemory::Transfer& transfer : memory_->take_transfers()) {
      start_transfer(transfer);
    }
    const std::vector<std::int32_t> ready = memory_->take_ready();
    if (ready.empty()) return any;
    for (const std::int32_t number : ready) tiles_came(number);
    any = true;
  }
}

void SimulatedNode::start_transfer(const SimulatedMemory::Transfer& transfer) {
  CopyAction action;
  action.job = protocol::JobId{-1};
  action.tile = transfer.tile;
  action.number = Version{-1};
  action.from_place = transfer.is_fetch ? host_place : transfer.device;
  action.to_place = transfer.is_fetch ? transfer.device : host_place;
  action.from = action.to = transfer.block;
  const std::int32_t lane = lane_of(action);
  lanes_[static_cast<std::size_t>(lane)].transfers.push_back(
      copies_.add({action, world_.now_ns, 0, true}));
  start_copies(lane);
}

/// The most urgent waiting transfer, first-in-first-out among equals.
std::int32_t SimulatedNode::take_transfer(CopyLane& lane) {
  const auto priority = [this](std::int32_t number) {
    const CopyAction& action = copies_.at(number).action;
    const PlaceId device = action.to_place == host_place ? action.from_place : action.to_place;
    return memory_->priority_of(device, action.to);
  };
  const auto first = std::ranges::max_element(lane.transfers, {}, priority);
  const std::int32_t number = *first;
  lane.transfers.erase(first);
  return number;
}

void SimulatedNode::transfer_ends(const SimulatedCopy& copy) {
  const bool is_fetch = copy.action.to_place != host_place;
  const PlaceId device = is_fetch ? copy.action.to_place : copy.action.from_place;
  memory_->transfer_ends({device, copy.action.to, copy.action.tile, is_fetch});
  devices_[static_cast<std::size_t>(device.value()) - 1].tasks.look_again();
  // Messages that waited for this block's transfer.
  for (const std::int32_t number : std::exchange(unreached_sends_, {})) message_starts(number);
  for (const std::int32_t number : std::exchange(unreached_receives_, {})) message_seen(number);
  collect();
}

void SimulatedNode::tiles_came(std::int32_t number) {
  const Wait wait = waits_.at(number);
  waits_.remove(number);
  switch (wait.kind) {
    case Wait::Kind::lent:
      return ready_[0]->push(*wait.task);
    case Wait::Kind::kernel: {
      const auto device = static_cast<std::size_t>(wait.task->place.value()) - 1;
      return devices_[device].tasks.arrive(*wait.task);
    }
    case Wait::Kind::copy:
      ++copies_.at(wait.copy).acquired;
      acquire_ends(wait.copy);
      return start_copies(lane_of(copies_.at(wait.copy).action));
  }
}

/// Before the protocol learns of the task's end.
void SimulatedNode::release_tiles(const protocol::Task& task) {
  if (!memory_ || task.place == host_place) return;
  const BlockUses uses(task);
  if (task.is_lent) return memory_->release(task.place, Side::host, uses.span());
  memory_->release(task.place, Side::device, uses.span());
  devices_[static_cast<std::size_t>(task.place.value()) - 1].tasks.look_again();
}

// ---- devices ---------------------------------------------------------------------------------

/// The next task of a device whose tiles are present, as its manager chooses it; null without one.
protocol::Task* SimulatedNode::next_of_device(std::int32_t number) {
  ReadyQueue& queue = *ready_[static_cast<std::size_t>(number) + 1];
  if (!memory_) return queue.pop();
  return devices_[static_cast<std::size_t>(number)].tasks.next(
      WaitingTasks::nothing,
      [this](const protocol::Task& task) {
        return memory_->try_acquire(task.place, BlockUses(task).span());
      },
      [&](std::int32_t /*above*/) { return queue.pop(); });
}

/// Requests the tiles of the most urgent waiting tasks, so that they arrive during computation.
void SimulatedNode::ask_ahead(std::int32_t number) {
  Device& device = devices_[static_cast<std::size_t>(number)];
  std::int32_t highest = WaitingTasks::nothing;
  for (const DeviceStream& stream : device.streams) {
    for (const std::int32_t kernel : stream.kernels) {
      highest = std::max(highest, kernels_.at(kernel).task->priority);
    }
  }
  device.tasks.follow_front(highest, world_.now_ns);
  const auto span_of = [this](const protocol::Task&) { return world_.job.priority_span(); };
  while (protocol::Task* const task = device.tasks.ask(span_of)) {
    memory_->request(task->place, Side::device, BlockUses(*task).span(),
                     waits_.add({Wait::Kind::kernel, task, 0}));
  }
  // It may be requested after a pause of the work in progress.
  if (device.tasks.is_held_back() && !std::exchange(device.is_going_to_look, true)) {
    post(Event::Kind::manager_looks, world_.now_ns + WaitingTasks::front_pause_ns + 1, number, id_);
  }
}

void SimulatedNode::manager_looks(std::int32_t number) {
  devices_[static_cast<std::size_t>(number)].is_going_to_look = false;
  collect();
}

// ---- copies ----------------------------------------------------------------------------------

/// A copy's ends on devices, in the order of places.
SimulatedNode::CopyEnds SimulatedNode::ends_of(const CopyAction& action) {
  CopyEnds ends;
  const auto add = [&](PlaceId place, protocol::BlockRef block, AccessMode mode) {
    if (place == host_place) return;
    ends.all.at(ends.count++) = {place, {block, mode, action.tile, action.priority}};
  };
  add(action.from_place, action.from, AccessMode::read);
  add(action.to_place, action.to, AccessMode::write);
  if (ends.count == 2 && ends.all[1].place < ends.all[0].place) std::swap(ends.all[0], ends.all[1]);
  return ends;
}

/// Acquires missing ends; the copy may start with the last. All copies acquire in one order: no
/// deadlock.
void SimulatedNode::acquire_ends(std::int32_t number) {
  SimulatedCopy& copy = copies_.at(number);
  const CopyEnds ends = memory_ ? ends_of(copy.action) : CopyEnds{};
  for (; copy.acquired < ends.count; ++copy.acquired) {
    const CopyEnds::End& end = ends.all.at(copy.acquired);
    if (memory_->try_acquire(end.place, {&end.use, 1})) continue;
    memory_->request(end.place, Side::device, {&end.use, 1},
                     waits_.add({Wait::Kind::copy, nullptr, number}));
    return;
  }
  CopyLane& lane = lanes_[static_cast<std::size_t>(lane_of(copy.action))];
  --lane.acquiring;
  lane.acquired.push_back(number);
}

void SimulatedNode::release_ends(const CopyAction& action) {
  if (!memory_) return;
  const CopyEnds ends = ends_of(action);
  for (std::size_t i = 0; i < ends.count; ++i) {
    memory_->release(ends.all.at(i).place, Side::device, {&ends.all.at(i).use, 1});
  }
}

// ---- messages --------------------------------------------------------------------------------

/// Memory that a message reads or writes. False while the block is in transfer.
bool SimulatedNode::reach(PlaceId place, const BlockUse& use, SimulatedMemory::Reach& reach) {
  if (!memory_ || place == host_place) return true;
  reach = memory_->reach(place, use);
  return reach != SimulatedMemory::Reach::nowhere;
}

void SimulatedNode::end_reach(PlaceId place, const BlockUse& use, SimulatedMemory::Reach reach) {
  if (memory_ && place != host_place) memory_->end_reach(place, use, reach);
}

}  // namespace heddle::replay
