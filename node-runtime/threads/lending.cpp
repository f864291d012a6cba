#include "node-runtime/threads/lending.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/assert.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/threads/job_record.hpp"
#include "node-runtime/threads/tile_operands.hpp"

namespace heddle {

using protocol::Task;

namespace {

static_assert(CaseKey::operands_max >= protocol::accesses_max);

CaseKey case_of(const TileStore& store, const Task& task, const KernelParameters& parameters) {
  CaseKey key{&kernel_of(task), parameters, task.operand_count, {}};
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const TileShape shape = store.shape(task.operands[i].tile);
    key.operands[i] = {shape.rows, shape.columns};
  }
  return key;
}

TaskSeconds seconds_of(const TaskCosts& costs, const KernelCase& what) {
  return {.worker = costs.kernel(what, false), .device = costs.kernel(what, true)};
}

}  // namespace

bool is_worth_lending(const LendingOptions& options, std::span<Device* const> devices,
                      std::int32_t workers) {
  for (const Kernel* kernel : factorization_kernels) {
    const auto runs = [&](const Device* device) { return device->runs(*kernel); };
    if (kernel->fine != nullptr && !std::ranges::all_of(devices, runs)) return true;
  }
  constexpr OperandShape usual{1024, 1024};
  const std::array<OperandShape, 3> tiles{usual, usual, usual};
  const TaskSeconds product = seconds_of(options.costs, {&kernel::gsmm, {}, tiles});
  return options.policy->may_lend(product.device / static_cast<double>(devices.size()),
                                  product.worker / std::max(1, workers));
}

Lending::Lending(LendingOptions options, TileStore& store, std::span<Device* const> devices,
                 std::int32_t workers, FineGraphs& graphs)
    : costs_(std::move(options.costs)),
      store_(store),
      devices_(devices.begin(), devices.end()),
      graphs_(graphs),
      choice_(std::move(options.policy), costs_.transfer, *this,
              static_cast<std::int32_t>(devices.size()), workers) {}

bool Lending::may_lend(const KernelCase& what, PlaceId place) const {
  const Device& device = *devices_[static_cast<std::size_t>(place.value()) - 1];
  return !device.runs(*what.kernel) || choice_.may_lend(seconds_of(costs_, what));
}

Lending::Known Lending::make_known(const Task& task) const {
  const CaseKey key = case_of(store_, task, parameters_of(task));
  const Kernel& kernel = *key.kernel;
  Known known;
  known.seconds = seconds_of(costs_, key.what());
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (devices_[d]->runs(kernel)) known.devices |= std::uint64_t{1} << d;
  }
  known.runs_on_workers = kernel.host != nullptr;
  known.is_dividable = kernel.fine != nullptr;
  known.may_be_lent = known.runs_on_workers && choice_.may_lend(known.seconds);
  return known;
}

Lending::Known& Lending::known_of(const Task& task) {
  const CutCase key{case_of(store_, task, {}), fine_parts_of(task)};
  auto& last = last_[std::bit_cast<std::uintptr_t>(key.of.kernel) / alignof(Kernel) % last_.size()];
  if (last.second != nullptr && last.first == key) return *last.second;
  auto at = kinds_.find(key);
  if (at == kinds_.end()) at = kinds_.emplace(key, make_known(task)).first;
  last = {key, &at->second};
  return at->second;
}

/// The graph was made before the job began (Engine::look_ahead).
std::int32_t Lending::width(const Task& task) {
  const std::int64_t fine = fine_parts_of(task);
  if (fine == 0) return 1;
  std::int32_t& width = known_of(task).width;
  if (width == 0) {
    width = graphs_.of(case_of(store_, task, parameters_of(task)).what(), fine).width();
  }
  return width;
}

std::uint64_t Lending::missing_on_host(const Task& task) const {
  return store_.cache(task.place).missing_host_bytes(TaskUses(store_, task).span());
}

bool Lending::is_cancelled(const Task& task) const {
  return job_of(task).cancelled.load(std::memory_order_relaxed);
}

void Lending::finished(Task& task) {
  choice_.finished(task);
  if (task.is_lent) store_.cache(task.place).release_host(TaskUses(store_, task).span());
}

void Lending::ask_for_tiles(Task& task) {
  ++arriving_;
  store_.cache(task.place).request_host(TaskUses(store_, task).span(), &task);
}

bool Lending::became_ready(Task& task, LendingChoice::Queues ready) {
  if (!choice_.became_ready(task, ready)) return false;
  ask_for_tiles(task);
  return true;
}

bool Lending::lend(LendingChoice::Queues ready) {
  Task* const task = choice_.take_for_host(ready);
  if (task == nullptr) return false;
  ask_for_tiles(*task);
  return true;
}

std::size_t Lending::take_arrived(ReadyQueue& host) {
  if (arriving_ == 0) return 0;
  std::size_t count = 0;
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
