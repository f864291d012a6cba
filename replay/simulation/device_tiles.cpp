#include <algorithm>

#include "replay/simulation/node_needs.hpp"
#include "replay/simulation/simulated_node.hpp"

/// Device blocks that are evicted and fetched, and their waiters: the simulated counterpart of
/// threads/device_manager.cpp and threads/copy_thread.cpp with DeviceCache.
namespace heddle::replay {

using protocol::AccessMode;

using Side = SimulatedMemory::Side;

/// Blocks of devices move if workers use them too, or if not all of them fit.
void SimulatedNode::begin_memory(const NodeNeeds& needs) {
  const std::int32_t devices = world_.machine.devices;
  if (needs.fit() && !world_.options.lends) return;
  if (needs.fit()) {
    memory_ = std::make_unique<SimulatedMemory>(world_.job, devices);
  } else {
    std::uint64_t block_bytes = 0;
    for (PlaceId place{1}; place.value() <= devices; ++place) {
      block_bytes = std::max(block_bytes, needs.block_bytes(place));
    }
    memory_ = std::make_unique<SimulatedMemory>(world_.job, devices,
                                                world_.machine.device_memory_bytes, block_bytes);
    for (PlaceId place{1}; place.value() <= devices; ++place) {
      std::vector<BlockUse> tiles;
      for (const protocol::TileId tile : needs.memory()->tiles(place)) {
        tiles.push_back({protocol_.current_block(tile, place), AccessMode::write, tile});
      }
      memory_->fill(place, tiles);
    }
  }
  if (world_.options.lends) begin_lending(needs);
  copies_.use(memory_.get());
  messages_.use(memory_.get());
  direct_copies_.use(memory_.get());
}

/// Where lending is not worth it, blocks that fit stay on their devices.
void SimulatedNode::begin_lending(const NodeNeeds& needs) {
  lending_ = std::make_unique<SimulatedLending>(world_, *memory_);
  if (lending_->is_worth_lending()) return;
  lending_.reset();
  if (needs.fit()) memory_.reset();
}

/// Starts transfers that the memories request, and serves waiters whose blocks arrived. False if
/// there were none.
bool SimulatedNode::serve_memory() {
  if (!memory_) return false;
  bool any = false;
  for (;;) {
    for (const SimulatedMemory::Transfer& transfer : memory_->take_transfers()) {
      copies_.post(transfer);
    }
    const std::vector<std::int32_t> ready = memory_->take_ready();
    if (ready.empty()) return any;
    for (const std::int32_t number : ready) tiles_came(number);
    any = true;
  }
}

void SimulatedNode::transfer_ends(const SimulatedCopy& copy) {
  const bool is_fetch = copy.action.to_place != host_place;
  const PlaceId device = is_fetch ? copy.action.to_place : copy.action.from_place;
  memory_->transfer_ends({device, copy.action.to, copy.action.tile, is_fetch});
  devices_[static_cast<std::size_t>(device.value()) - 1].tasks.look_again();
  // Messages that waited for this block's transfer.
  messages_.retry();
  direct_copies_.retry();
  for (const std::int32_t number : std::exchange(unreached_receives_, {})) message_seen(number);
  collect();
}

void SimulatedNode::tiles_came(std::int32_t number) {
  const MemoryWait wait = waits_.at(number);
  waits_.remove(number);
  switch (wait.kind) {
    case MemoryWait::Kind::lent:
      return ready_[0]->push(*wait.task);
    case MemoryWait::Kind::kernel: {
      const auto device = static_cast<std::size_t>(wait.task->place.value()) - 1;
      return devices_[device].tasks.arrive(*wait.task);
    }
    case MemoryWait::Kind::copy:
      return copies_.block_came(wait.copy);
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
                     waits_.add({MemoryWait::Kind::kernel, task, 0}));
  }
  // It may be requested after a pause of the work in progress.
  if (device.tasks.is_held_back() && !std::exchange(device.is_going_to_look, true)) {
    world_.post(Event::Kind::manager_looks, world_.now_ns + WaitingTasks::front_pause_ns + 1,
                number, id_);
  }
}

void SimulatedNode::manager_looks(std::int32_t number) {
  devices_[static_cast<std::size_t>(number)].is_going_to_look = false;
  collect();
}

}  // namespace heddle::replay
