#include "node-runtime/threads/lending.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "kernels/kernels.hpp"
#include "node-runtime/threads/job_record.hpp"
#include "node-runtime/threads/tile_operands.hpp"

namespace heddle {

using protocol::Task;

namespace {

/// Of so many times that the node begins to work, loads are kept in one at least: devices may have
/// become slower.
constexpr std::int64_t measured_each = 32;
/// Devices may be so many times as slow as is known, in what is made ready beforehand.
constexpr double unknown_factor = 2;

static_assert(CaseKey::operands_max >= protocol::accesses_max);

CaseKey case_of(const TileStore& store, const Task& task, const KernelParameters& parameters) {
  CaseKey key{&kernel_of(task), parameters, task.operand_count, {}};
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const TileShape shape = store.shape(task.operands[i].tile);
    key.operands[i] = {shape.rows, shape.columns};
  }
  return key;
}

}  // namespace

bool is_likely_to_lend(const LendingOptions& options, std::span<Device* const> devices,
                       std::int32_t workers) {
  for (const Kernel* kernel : factorization_kernels) {
    const auto runs = [&](const Device* device) { return device->runs(*kernel); };
    if (kernel->fine != nullptr && !std::ranges::all_of(devices, runs)) return true;
  }
  constexpr OperandShape usual{1024, 1024};
  const std::array<OperandShape, 3> tiles{usual, usual, usual};
  const KernelCase product{&kernel::gsmm, {}, tiles};
  const LendableTasks::Costs costs{options.costs.kernel(product, false),
                                   options.costs.kernel(product, true)};
  return may_lend(*options.policy, costs, unknown_factor, static_cast<std::int32_t>(devices.size()),
                  workers);
}

Lending::Lending(LendingOptions options, TileStore& store, std::span<Device* const> devices,
                 std::int32_t workers, FineGraphs& graphs)
    : task_costs_(std::move(options.costs)),
      store_(store),
      devices_(devices.begin(), devices.end()),
      graphs_(graphs),
      choice_(std::move(options.policy), task_costs_.transfer, *this,
              static_cast<std::int32_t>(devices.size()), workers) {
  for (const Device* to : devices_) {
    for (const Device* from : devices_) {
      reach_.push_back(to != from && to->can_access_peer(*from));
    }
  }
}

LendableTasks::Costs Lending::costs_of(const KernelCase& what) const {
  return {task_costs_.kernel(what, false), task_costs_.kernel(what, true)};
}

/// By what there was lately, as one kind: single kinds may well be worth lending where all of it
/// is not. A GPU needs about as long for the factorization of a tile as some workers do, say, but
/// these tasks are few, and urgent.
void Lending::begin_work() {
  host_is_full_ = false;
  if (++works_begun_ % measured_each == 0) choice_.forget_shown();
  const bool is_known = choice_.has_shown() && lately_.device > 0;
  choice_.begin_work(!is_known || devices_lack_kernels_ || choice_.may_come_to_host(lately_));
  lately_ = {lately_.worker / 2, lately_.device / 2};
}

void Lending::inserted(Task& task) {
  task.cost_kind = kind_of(task);
  const Known& known = known_of(task);
  if (task.place == host_place || !known.runs_on(task.place)) return;
  lately_.worker += known.costs.worker;
  lately_.device += known.costs.device;
}

bool Lending::may_lend(const KernelCase& what, PlaceId place) const {
  return !device_of(place).runs(*what.kernel) || choice_.may_lend(costs_of(what), unknown_factor);
}

std::int32_t Lending::kind_of(const Task& task) {
  const CutCase key{case_of(store_, task, {}), fine_parts_of(task)};
  const Kernel& kernel = *key.of.kernel;
  auto& last = last_[std::bit_cast<std::uintptr_t>(&kernel) / alignof(Kernel) % last_.size()];
  if (last.first == key) return last.second;
  const auto [at, is_new] = kinds_.try_emplace(key, static_cast<std::int32_t>(known_.size()));
  if (is_new) {
    Known& known = known_.emplace_back();
    known.costs = costs_of(case_of(store_, task, parameters_of(task)).what());
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (devices_[d]->runs(kernel)) known.devices |= std::uint64_t{1} << d;
    }
    // What fills a matrix no device runs either, but no worker divides it.
    const bool some_lack_it = std::popcount(known.devices) < std::ssize(devices_);
    devices_lack_kernels_ |= some_lack_it && kernel.fine != nullptr;
    const bool may_come = known.devices != 0 && choice_.may_come_to_host(known.costs);
    if (devices_lack_kernels_ || may_come) choice_.keep_loads();
  }
  last = *at;
  return at->second;
}

Lending::Known& Lending::known_of(const Task& task) {
  HEDDLE_DEBUG(task.cost_kind >= 0, "a task that was not inserted is asked for");
  return known_[static_cast<std::size_t>(task.cost_kind)];
}

/// The graph was made before the job began (Engine::look_ahead), but for devices that are slower by
/// far than was known.
std::int32_t Lending::width(const Task& task) {
  const std::int64_t fine = fine_parts_of(task);
  if (fine == 0) return 1;
  std::int32_t& width = known_of(task).width;
  if (width == 0) {
    width = graphs_.of(case_of(store_, task, parameters_of(task)).what(), fine).width();
  }
  return width;
}

LendableTasks::Lacking Lending::lacking(const Task& task) const {
  const TaskUses uses(store_, task);
  const DeviceCache& cache = store_.cache(task.place);
  return {cache.missing_bytes(uses.span()), cache.missing_host_bytes(uses.span())};
}

LendableTasks::Visit Lending::visit(const Task& task) const {
  Visit bytes;
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const protocol::Operand& operand = task.operands[i];
    const std::uint64_t size = store_.shape(operand.tile).bytes();
    if (operand.mode != protocol::AccessMode::write) bytes.there += size;
    if (operand.mode != protocol::AccessMode::read) bytes.back += size;
    bytes.largest = std::max(bytes.largest, size);
  }
  return bytes;
}

bool Lending::may_move(const Task& task) const {
  return kernel_of(task).host != nullptr && !job_of(task).cancelled.load(std::memory_order_relaxed);
}

bool Lending::is_dividable(const Task& task) const {
  return kernel_of(task).fine != nullptr;
}

bool Lending::may_visit(const Task& task, PlaceId device) {
  const auto to = static_cast<std::size_t>(device.value()) - 1;
  const auto from = static_cast<std::size_t>(task.place.value()) - 1;
  return reach_[to * devices_.size() + from] && known_of(task).runs_on(device) &&
         !job_of(task).cancelled.load(std::memory_order_relaxed);
}

bool Lending::back(const Task& task) {
  if (!host_is_full_) {
    host_is_full_ = !store_.cache(task.place).back(TaskUses(store_, task).span());
  }
  return !host_is_full_;
}

bool Lending::claim(const Task& task) {
  return store_.cache(task.place).try_acquire(TaskUses(store_, task).span());
}

void Lending::finished(Task& task, std::int64_t now_ns) {
  choice_.finished(task, now_ns);
  if (task.is_lent_to_host()) store_.cache(task.place).release_host(TaskUses(store_, task).span());
}

void Lending::ask_for_tiles(Task& task) {
  ++arriving_;
  store_.cache(task.place).request_host(TaskUses(store_, task).span(), &task);
}

bool Lending::became_ready(Task& task, LendingChoice::Queues ready, std::int64_t now_ns) {
  if (!choice_.became_ready(task, ready, now_ns)) return false;
  ask_for_tiles(task);
  return true;
}

bool Lending::lend(LendingChoice::Queues ready, std::int64_t now_ns) {
  if (host_is_full_) return false;
  Task* const task = choice_.take_for_host(ready, now_ns);
  if (task == nullptr) return false;
  ask_for_tiles(*task);
  return true;
}

std::size_t Lending::take_arrived(ReadyQueue& host) {
  std::size_t count = 0;
  if (arriving_ == 0) return count;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    DeviceCache& cache = store_.cache(PlaceId{static_cast<std::int32_t>(d) + 1});
    for (void* cookie : cache.take_ready(DeviceCache::Requester::host)) {
      host.push(*static_cast<Task*>(cookie));
      --arriving_;
      ++count;
    }
  }
  return count;
}

}  // namespace heddle
