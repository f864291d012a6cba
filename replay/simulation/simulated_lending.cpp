#include "replay/simulation/simulated_lending.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "replay/simulation/simulated_node.hpp"

/// Devices' tasks that CPU workers or other devices run: the simulation's side of
/// threads/lending.hpp and threads/visits.hpp, and of the copies that they need.
namespace heddle::replay {

using protocol::AccessMode;
using protocol::CopyAction;
using protocol::Task;

namespace {

// As a device's manager has them (threads/device_manager.cpp).
constexpr std::size_t waiting_max = 256;  ///< tasks looked through for one whose tiles are there
constexpr std::int32_t ahead_max = 4;     ///< tasks whose tiles come at a time
constexpr std::int32_t visits_max = 2;    ///< other devices' tasks at a time

LendingChoice::Transfer transfer_of(const SimulatedMachine& machine) {
  return [&machine](Location from, Location to, std::uint64_t bytes) {
    const Way& way = machine.way(from.place, to.place);
    return way.latency_s + static_cast<double>(bytes) / way.bytes_per_s;
  };
}

void insert_by_priority(std::vector<Task*>& tasks, Task& task) {
  const auto at = std::ranges::upper_bound(tasks, task.priority, std::ranges::greater{},
                                           [](const Task* one) { return one->priority; });
  tasks.insert(at, &task);
}

}  // namespace

BlockUses::BlockUses(const Task& task) {
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const protocol::Operand& operand = task.operands[i];
    const bool is_renamed = operand.copy_from.valid();
    // A renamed output gets the old content first.
    add({operand.block, is_renamed ? AccessMode::write : operand.mode, operand.tile});
    if (is_renamed) add({operand.copy_from, AccessMode::read, operand.tile});
  }
}

void BlockUses::add(const Use& use) {
  const auto is_same = [&](const Use& other) { return other.block == use.block; };
  if (std::ranges::none_of(span(), is_same)) uses_.at(count_++) = use;
}

SimulatedLending::SimulatedLending(const SimulatedWorld& world)
    : world_(world),
      choice_(std::make_shared<const DynamicPlacement>(), transfer_of(world.machine), *this,
              world.machine.devices, world.machine.cpu_workers) {}

LendableTasks::Costs SimulatedLending::costs(const Task& task) {
  const TaskKind& kind = world_.kind_of(task);
  const auto number = static_cast<std::size_t>(task.work.parameters[0]);
  if (worker_s_.size() <= number) worker_s_.resize(number + 1, -1);
  double& worker = worker_s_[number];
  if (worker < 0) {
    worker = kind.seconds_host;
    if (kind.fine) {
      worker = std::accumulate(kind.fine->seconds.begin(), kind.fine->seconds.end(), 0.0);
    }
  }
  return {worker, kind.seconds_device, kind.fine ? kind.fine->width : 1};
}

bool SimulatedLending::lacks_any(const Task& task) const {
  const BlockUses uses(task);
  return std::ranges::any_of(uses.span(),
                             [&](const auto& use) { return lacks(use, side_of(task)); });
}

LendableTasks::Lacking SimulatedLending::lacking(const Task& task) const {
  Lacking bytes;
  const BlockUses uses(task);
  for (const BlockUses::Use& use : uses.span()) {
    if (lacks(use, Side::device)) bytes.device += world_.job.tile_bytes(use.tile);
    if (lacks(use, Side::host)) bytes.host += world_.job.tile_bytes(use.tile);
  }
  return bytes;
}

LendableTasks::Visit SimulatedLending::visit(const Task& task) const {
  Visit bytes;
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const protocol::Operand& operand = task.operands[i];
    const std::uint64_t size = world_.job.tile_bytes(operand.tile);
    if (operand.mode != AccessMode::write) bytes.there += size;
    if (operand.mode != AccessMode::read) bytes.back += size;
  }
  return bytes;
}

SimulatedLending::VisitSeconds SimulatedLending::visit_seconds(const Task& task) const {
  const Visit bytes = visit(task);
  const Way& way = world_.machine.to_peer;
  const auto seconds = [&](std::uint64_t amount) {
    return amount == 0 ? 0.0 : way.latency_s + static_cast<double>(amount) / way.bytes_per_s;
  };
  return {seconds(bytes.there), seconds(bytes.back)};
}

bool SimulatedLending::counts(const Task& task) const {
  return task.place == host_place || task.is_lent_to_host() ||
         world_.kind_of(task).seconds_device > 0;
}

bool SimulatedLending::may_visit(const Task& task, PlaceId /*device*/) const {
  return world_.kind_of(task).seconds_device > 0;
}

bool SimulatedLending::may_move(const Task& task) const {
  return world_.kind_of(task).seconds_host > 0;
}

void SimulatedLending::finished(const Task& task, std::int64_t now_ns) {
  choice_.finished(task, now_ns);
  if (task.place == host_place) return;
  const BlockUses uses(task);
  for (const BlockUses::Use& use : uses.span()) {
    if (use.mode != AccessMode::read) blocks_.written(use.block, side_of(task));
  }
}

// ---- the node ----------------------------------------------------------------------------------

void SimulatedNode::lend() {
  while (Task* const task = lending_->choice().take_for_host(ready_, world_.now_ns)) {
    ++world_.result.tasks_lent;
    const std::int32_t number = waits_.add({Wait::Kind::lent, task, {}, 0});
    bring_tiles(*task, number);
  }
}

/// What the task lacks where it is going to run; the wait goes on once all is there.
void SimulatedNode::bring_tiles(const Task& task, std::int32_t number) {
  const BlockUses uses(task);
  // One more, so that nobody goes on before all have been asked for.
  waits_.at(number).missing = 1;
  for (const BlockUses::Use& use : uses.span()) {
    const SimulatedLending::Side side = SimulatedLending::side_of(task);
    if (lending_->lacks(use, side)) bring(use, task.place, side, task.priority, number);
  }
  one_came(number);
}

void SimulatedNode::bring(const BlockUses::Use& use, PlaceId place, SimulatedLending::Side side,
                          std::int32_t priority, std::int32_t number) {
  ++waits_.at(number).missing;
  if (!lending_->blocks().bring(use.block, side, number)) return;
  const bool to_host = side == SimulatedLending::Side::host;
  CopyAction action;
  action.priority = priority;
  action.job = protocol::JobId{-1};
  action.tile = use.tile;
  action.number = Version{-1};
  action.from_place = to_host ? place : host_place;
  action.to_place = to_host ? host_place : place;
  action.from = action.to = use.block;
  const std::int32_t lane = lane_of(action);
  lanes_[static_cast<std::size_t>(lane)].transfers.push_back(
      copies_.add({action, world_.now_ns, 0, true}));
  start_copies(lane);
}

void SimulatedNode::transfer_ends(const SimulatedCopy& copy) {
  using Side = SimulatedLending::Side;
  const bool to_host = copy.action.to_place == host_place;
  const Side side = to_host ? Side::host : Side::device;
  for (const std::int32_t number : lending_->blocks().came(copy.action.to, side)) one_came(number);
  if (!to_host) {
    devices_[static_cast<std::size_t>(copy.action.to_place.value()) - 1].looks_again = true;
  }
  collect();
}

void SimulatedNode::one_came(std::int32_t number) {
  if (--waits_.at(number).missing > 0) return;
  const Wait wait = waits_.at(number);
  waits_.remove(number);
  switch (wait.kind) {
    case Wait::Kind::lent:
      return ready_[0]->push(*wait.task);
    case Wait::Kind::kernel: {
      Device& device = devices_[static_cast<std::size_t>(wait.task->place.value()) - 1];
      --device.ahead;
      return insert_by_priority(device.arrived, *wait.task);
    }
    case Wait::Kind::copy:
      return queue_copy(wait.copy);
  }
}

/// A copy from a device that lacks what it is to give waits until the device has it, as the copy
/// thread's does.
bool SimulatedNode::waits_for_source(const CopyAction& action) {
  using Side = SimulatedLending::Side;
  if (!lending_ || action.from_place == host_place) return false;
  const BlockUses::Use source{action.from, AccessMode::read, action.tile};
  if (!lending_->lacks(source, Side::device)) return false;
  const std::int32_t number = waits_.add({Wait::Kind::copy, nullptr, action, 0});
  bring(source, action.from_place, Side::device, action.priority, number);
  return true;
}

/// The next task of a device whose tiles are there, as its manager takes it; null without one.
Task* SimulatedNode::next_of_device(std::int32_t number) {
  Device& device = devices_[static_cast<std::size_t>(number)];
  ReadyQueue& queue = *ready_[static_cast<std::size_t>(number) + 1];
  if (!lending_) return queue.pop();
  const auto take = [](std::vector<Task*>& tasks, std::vector<Task*>::iterator at) {
    Task* const task = *at;
    tasks.erase(at);
    return task;
  };
  if (!device.arrived.empty()) return take(device.arrived, device.arrived.begin());
  if (device.looks_again) {
    const auto found = std::ranges::find_if(
        device.waiting, [this](const Task* task) { return !lending_->lacks_any(*task); });
    if (found != device.waiting.end()) return take(device.waiting, found);
    device.looks_again = false;
  }
  while (device.waiting.size() < waiting_max) {
    Task* const task = queue.pop();
    if (task == nullptr || !lending_->lacks_any(*task)) return task;
    insert_by_priority(device.waiting, *task);
  }
  return nullptr;
}

/// A device with nothing of its own to do or to wait for runs tasks of others, each stream one:
/// their tiles come before the kernel and go after it. As DeviceManager::receive() has it.
void SimulatedNode::receive(std::int32_t number) {
  Device& device = devices_[static_cast<std::size_t>(number)];
  const auto given = [&] {
    return std::accumulate(device.streams.begin(), device.streams.end(), 0,
                           [](std::int32_t sum, const auto& one) { return sum + one.given; });
  };
  if (given() > device.visits || device.ahead > 0 || !device.waiting.empty() ||
      !device.arrived.empty()) {
    return;
  }
  while (device.visits < visits_max) {
    const auto least = std::ranges::min_element(device.streams, {}, &DeviceStream::given);
    if (least->given >= world_.machine.stream_depth) return;
    const PlaceId place{number + 1};
    Task* const task = lending_->choice().take_for_device(
        ready_, place, std::numeric_limits<std::uint64_t>::max(), world_.now_ns);
    if (task == nullptr) return;
    ++world_.result.tasks_visiting;
    ++device.visits;
    ++least->given;
    device.manager_free_ns =
        std::max(world_.now_ns, device.manager_free_ns) + ns_of(world_.machine.launch_s);
    const auto stream = static_cast<std::int32_t>(least - device.streams.begin());
    post(Event::Kind::kernel_launched,
         device.manager_free_ns + ns_of(lending_->visit_seconds(*task).there),
         kernels_.add({task, number, stream, 0}), id_);
  }
}

/// Asks for the tiles of the most urgent tasks that wait, so that they come while others compute.
void SimulatedNode::ask_ahead(Device& device) {
  while (!device.waiting.empty() && device.ahead < ahead_max) {
    Task& task = *device.waiting.front();
    device.waiting.erase(device.waiting.begin());
    ++device.ahead;
    bring_tiles(task, waits_.add({Wait::Kind::kernel, &task, {}, 0}));
  }
}

}  // namespace heddle::replay
