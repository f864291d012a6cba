#include "replay/simulation/simulated_lending.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "replay/simulation/simulated_node.hpp"

/// Devices' tasks that CPU workers or other devices run: the simulation's side of
/// threads/lending.hpp and threads/visits.hpp.
namespace heddle::replay {

using protocol::AccessMode;

namespace {

constexpr std::int32_t visits_max = 2;  ///< other devices' tasks at a time, as threads/visits.hpp

LendingChoice::Transfer transfer_of(const SimulatedMachine& machine) {
  return [&machine](Location from, Location to, std::uint64_t bytes) {
    const Way& way = machine.way(from.place, to.place);
    return way.latency_s + static_cast<double>(bytes) / way.bytes_per_s;
  };
}

}  // namespace

SimulatedLending::SimulatedLending(const SimulatedWorld& world, SimulatedMemory& memory)
    : world_(world),
      memory_(memory),
      choice_(std::make_shared<const DynamicPlacement>(), transfer_of(world.machine), *this,
              world.machine.devices, world.machine.cpu_workers) {}

const LendableTasks::Kind& SimulatedLending::kind(const protocol::Task& task) {
  const auto number = static_cast<std::size_t>(task.work.parameters[0]);
  if (kinds_.size() <= number) kinds_.resize(number + 1);
  std::optional<Kind>& kind = kinds_[number];
  if (!kind) {
    const TaskKind& of = world_.kind_of(task);
    // As a whole, on one worker.
    const double worker =
        of.fine ? std::accumulate(of.fine->seconds.begin(), of.fine->seconds.end(), 0.0)
                : of.seconds_host;
    kind = {{worker, of.seconds_device}, of.seconds_device > 0 ? ~std::uint64_t{0} : 0};
  }
  return *kind;
}

std::int32_t SimulatedLending::width(const protocol::Task& task) {
  const TaskKind& kind = world_.kind_of(task);
  return kind.fine ? kind.fine->graph.width() : 1;
}

LendableTasks::Lacking SimulatedLending::lacking(const protocol::Task& task) const {
  Lacking bytes;
  const BlockUses uses(task);
  using Side = SimulatedMemory::Side;
  for (const BlockUse& use : uses.span()) {
    const std::uint64_t size = world_.job.tile_bytes(use.tile);
    if (memory_.lacks(task.place, use, Side::device)) bytes.device += size;
    if (memory_.lacks(task.place, use, Side::host)) bytes.host += size;
  }
  return bytes;
}

LendableTasks::Visit SimulatedLending::visit(const protocol::Task& task) const {
  Visit bytes;
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const protocol::Operand& operand = task.operands[i];
    const std::uint64_t size = world_.job.tile_bytes(operand.tile);
    if (operand.mode != AccessMode::write) bytes.there += size;
    if (operand.mode != AccessMode::read) bytes.back += size;
  }
  return bytes;
}

SimulatedLending::VisitSeconds SimulatedLending::visit_seconds(const protocol::Task& task) const {
  const Visit bytes = visit(task);
  const Way& way = world_.machine.to_peer;
  const auto seconds = [&](std::uint64_t amount) {
    return amount == 0 ? 0.0 : way.latency_s + static_cast<double>(amount) / way.bytes_per_s;
  };
  return {seconds(bytes.there), seconds(bytes.back)};
}

bool SimulatedLending::may_visit(const protocol::Task& task, PlaceId device) {
  return kind(task).runs_on(device);
}

bool SimulatedLending::may_move(const protocol::Task& task) const {
  return world_.kind_of(task).seconds_host > 0;
}

bool SimulatedLending::claim(const protocol::Task& task) {
  return memory_.try_acquire(task.place, BlockUses(task).span());
}

// ---- the node ----------------------------------------------------------------------------------

/// What workers take of devices' tasks waits for its tiles on the host.
void SimulatedNode::ask_for_tiles(protocol::Task& task) {
  ++world_.result.tasks_lent;
  memory_->request(task.place, SimulatedMemory::Side::host, BlockUses(task).span(),
                   waits_.add({Wait::Kind::lent, &task, {}}));
}

/// As serve_memory().
bool SimulatedNode::lend() {
  while (protocol::Task* const task = lending_->choice().take_for_host(ready_, world_.now_ns)) {
    ask_for_tiles(*task);
  }
  return serve_memory();
}

/// A device with nothing of its own to do or to wait for runs tasks of others, each stream one:
/// their tiles come before the kernel and go after it. As DeviceManager::receive() has it.
void SimulatedNode::receive(std::int32_t number) {
  Device& device = devices_[static_cast<std::size_t>(number)];
  const auto given = [&] {
    return std::accumulate(device.streams.begin(), device.streams.end(), 0,
                           [](std::int32_t sum, const auto& one) { return sum + one.given; });
  };
  // Where not all blocks fit, room is what tasks of this place wait for.
  if (!memory_->holds_all() || given() > device.visits || !device.tasks.empty()) return;
  while (device.visits < visits_max) {
    const auto least = std::ranges::min_element(device.streams, {}, &DeviceStream::given);
    if (least->given >= world_.machine.stream_depth) return;
    const PlaceId place{number + 1};
    protocol::Task* const task = lending_->choice().take_for_device(
        ready_, {place, std::numeric_limits<std::uint64_t>::max(), device.own_ended_ns},
        world_.now_ns);
    if (task == nullptr) return;
    ++world_.result.tasks_visiting;
    ++device.visits;
    ++least->given;
    count_ready(number);
    device.manager_free_ns =
        std::max(world_.now_ns, device.manager_free_ns) + ns_of(world_.machine.launch_s);
    const auto stream = static_cast<std::int32_t>(least - device.streams.begin());
    post(Event::Kind::kernel_launched,
         device.manager_free_ns + ns_of(lending_->visit_seconds(*task).there),
         kernels_.add({task, number, stream, 0}), id_);
  }
}

}  // namespace heddle::replay
