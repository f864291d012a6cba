#include "replay/simulation/simulated_lending.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "replay/simulation/simulated_node.hpp"

/// Devices' tasks that CPU workers run: the simulation's side of threads/lending.hpp.
namespace heddle::replay {

namespace {

LendingChoice::Transfer transfer_of(const SimulatedMachine& machine) {
  return [&machine](Location from, Location to, std::uint64_t bytes) {
    const Way& way = machine.way(from.place, to.place);
    return way.latency_s + static_cast<double>(bytes) / way.bytes_per_s;
  };
}

/// As a whole, on one worker.
TaskSeconds seconds_of(const TaskKind& kind) {
  const double worker =
      kind.fine ? std::accumulate(kind.fine->seconds.begin(), kind.fine->seconds.end(), 0.0)
                : kind.seconds_host;
  return {.worker = worker, .device = kind.seconds_device};
}

}  // namespace

SimulatedLending::SimulatedLending(const SimulatedWorld& world, SimulatedMemory& memory)
    : world_(world),
      memory_(memory),
      choice_(std::make_shared<const DynamicPlacement>(), transfer_of(world.machine), *this,
              world.machine.devices, world.machine.cpu_workers) {}

bool SimulatedLending::is_worth_lending() const {
  const auto kinds = world_.job.kinds();
  const auto runs_on_devices = [](const TaskKind& kind) { return kind.seconds_device > 0; };
  if (!std::ranges::all_of(kinds, runs_on_devices)) return true;
  const auto heaviest = std::ranges::max_element(kinds, {}, &TaskKind::flops);
  return heaviest != kinds.end() && choice_.may_lend(seconds_of(*heaviest));
}

const LendableTasks::Kind& SimulatedLending::kind(const protocol::Task& task) {
  const auto number = static_cast<std::size_t>(task.work.parameters[0]);
  while (kinds_.size() <= number) {
    const TaskKind& of = world_.job.kinds()[kinds_.size()];
    Kind& kind = kinds_.emplace_back();
    kind.seconds = seconds_of(of);
    kind.devices = of.seconds_device > 0 ? ~std::uint64_t{0} : 0;
    kind.runs_on_workers = of.seconds_host > 0;
    kind.is_dividable = true;  // a factorization's: no others are simulated
    kind.may_be_lent = kind.runs_on_workers && choice_.may_lend(kind.seconds);
  }
  return kinds_[number];
}

std::int32_t SimulatedLending::width(const protocol::Task& task) {
  const TaskKind& kind = world_.kind_of(task);
  return kind.fine ? kind.fine->graph.width() : 1;
}

std::uint64_t SimulatedLending::missing_on_host(const protocol::Task& task) const {
  std::uint64_t bytes = 0;
  const BlockUses uses(task);
  for (const BlockUse& use : uses.span()) {
    if (memory_.lacks_on_host(task.place, use)) bytes += world_.job.tile_bytes(use.tile);
  }
  return bytes;
}

// ---- the node ----------------------------------------------------------------------------------

/// What workers take of devices' tasks waits for its tiles on the host.
void SimulatedNode::ask_for_tiles(protocol::Task& task) {
  ++world_.result.tasks_lent;
  memory_->request(task.place, SimulatedMemory::Side::host, BlockUses(task).span(),
                   waits_.add({MemoryWait::Kind::lent, &task, {}}));
}

/// As serve_memory().
bool SimulatedNode::lend() {
  while (protocol::Task* const task = lending_->choice().take_for_host(ready_)) {
    ask_for_tiles(*task);
  }
  return serve_memory();
}

}  // namespace heddle::replay
