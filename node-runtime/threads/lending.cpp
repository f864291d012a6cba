#include "node-runtime/threads/lending.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "node-runtime/threads/job_record.hpp"
#include "node-runtime/threads/tile_operands.hpp"

namespace heddle {

using protocol::Task;

namespace {

/// Tasks for each worker that the host has at hand: one to run and one whose tiles come meanwhile.
constexpr std::int64_t ahead = 2;
/// The least urgent tasks of a device that are looked at for one whose tiles are on the host.
constexpr int looked_at_max = 32;

const Kernel& kernel_of(const Task& task) {
  return *static_cast<const Kernel*>(task.work.kernel);
}

const JobRecord& job_of(const Task& task) {
  return *static_cast<const JobRecord*>(task.job->context);
}

/// Costs are the same for what has the same of it.
std::uint64_t key_of(const TileStore& store, const Task& task) {
  std::uint64_t key = std::bit_cast<std::uintptr_t>(task.work.kernel);
  const auto mix = [&](std::uint64_t value) {
    key = (key ^ value) * 0x9E3779B97F4A7C15U;
    key ^= key >> 29U;
  };
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const TileShape shape = store.shape(task.operands[i].tile);
    mix(static_cast<std::uint64_t>(shape.rows) << 32U | static_cast<std::uint32_t>(shape.columns));
  }
  return key;
}

}  // namespace

Lending::Lending(LendingOptions options, TileStore& store, std::span<Device* const> devices,
                 std::int32_t workers)
    : options_(std::move(options)),
      store_(store),
      devices_(devices.begin(), devices.end()),
      workers_(std::max(1, workers)),
      loads_(devices.size() + 1) {}

const Lending::Costs& Lending::costs_of(const Task& task) {
  const auto [at, is_new] = costs_.try_emplace(key_of(store_, task));
  if (is_new) {
    std::array<OperandShape, protocol::accesses_max> shapes;
    for (std::uint8_t i = 0; i < task.operand_count; ++i) {
      const TileShape shape = store_.shape(task.operands[i].tile);
      shapes[i] = {shape.rows, shape.columns};
    }
    const KernelCase what{&kernel_of(task),
                          std::bit_cast<KernelParameters>(task.work.parameters),
                          {shapes.data(), task.operand_count}};
    at->second = {options_.costs.kernel(what, false), options_.costs.kernel(what, true)};
  }
  return at->second;
}

/// What its device cannot run is the host's anyway, and says nothing about the device.
bool Lending::counts(const Task& task) const {
  if (task.place == host_place || task.on_host) return true;
  return devices_[static_cast<std::size_t>(task.place.value()) - 1]->runs(kernel_of(task));
}

double Lending::seconds_at(const Task& task, PlaceId place) {
  const Costs& costs = costs_of(task);
  return place == host_place ? costs.worker / workers_ : costs.device;
}

/// Workers that the task keeps busy on the host.
std::int32_t Lending::width_of(const Task& task) const {
  const std::int64_t fine = job_of(task).spec.fine;
  if (fine <= 0 || kernel_of(task).fine == nullptr) return 1;
  const TileShape shape = store_.shape(task.operands[0].tile);
  const auto parts = [fine](std::int64_t length) {
    return std::max<std::int64_t>(1, (length + fine - 1) / fine);
  };
  return static_cast<std::int32_t>(
      std::min<std::int64_t>(workers_, parts(shape.rows) * parts(shape.columns)));
}

void Lending::became_ready(const Task& task, std::int64_t now_ns) {
  if (!counts(task)) return;
  loads_.add(task.place, seconds_at(task, task.place), now_ns);
  if (task.place == host_place) host_width_ += width_of(task);
}

void Lending::finished(const Task& task, std::int64_t now_ns) {
  if (!counts(task)) return;
  const PlaceId place = task.on_host ? host_place : task.place;
  loads_.finish(place, seconds_at(task, place), now_ns);
  if (place == host_place) host_width_ -= width_of(task);
  if (task.on_host) store_.cache(task.place).release_host(TaskUses(store_, task).span());
}

bool Lending::has_room() const {
  return host_width_ < ahead * workers_;
}

PlaceId Lending::busiest() const {
  PlaceId found{1};
  for (std::int32_t p = 2; p <= static_cast<std::int32_t>(devices_.size()); ++p) {
    if (loads_.seconds(PlaceId{p}) > loads_.seconds(found)) found = PlaceId{p};
  }
  return found;
}

/// The task is one of the least urgent: all that its device has comes before it.
bool Lending::host_is_sooner(const Task& task, std::uint64_t device_lacks,
                             std::uint64_t host_lacks) {
  const NodeId node{0};
  const auto transfer = [&](PlaceId from, PlaceId to, std::uint64_t bytes) {
    if (bytes == 0 || !options_.costs.transfer) return 0.0;
    return options_.costs.transfer({node, from}, {node, to}, bytes);
  };
  const Costs& costs = costs_of(task);
  const double on_device = costs.device * loads_.factor(task.place);
  const std::array<PlaceOffer, 2> offers{
      {{.place = task.place,
        .load_seconds = std::max(0.0, loads_.seconds(task.place) - on_device),
        .transfer_seconds = transfer(host_place, task.place, device_lacks),
        .kernel_seconds = on_device},
       {.place = host_place,
        .load_seconds = loads_.seconds(host_place),
        .transfer_seconds = transfer(task.place, host_place, host_lacks),
        .kernel_seconds = costs.worker / width_of(task) * loads_.factor(host_place)}}};
  return options_.policy->choose(offers) == 1;
}

bool Lending::lend(std::span<const std::unique_ptr<ReadyQueue>> ready, std::int64_t now_ns) {
  if (!has_room()) return false;
  const PlaceId place = busiest();
  ReadyQueue& queue = *ready[static_cast<std::size_t>(place.value())];
  const DeviceCache& cache = store_.cache(place);
  Task* best = nullptr;
  std::uint64_t device_lacks = 0;
  std::uint64_t host_lacks = 0;
  int looked_at = 0;
  queue.from_lowest([&](Task& task) {
    const bool may_move = kernel_of(task).host != nullptr && counts(task) &&
                          !job_of(task).cancelled.load(std::memory_order_relaxed);
    if (may_move) {
      // Most looks end here: the host is too slow for it, wherever the tiles are.
      if (best == nullptr && !host_is_sooner(task, 0, 0)) return false;
      const TaskUses uses(store_, task);
      const std::uint64_t for_device = cache.missing_bytes(uses.span());
      const std::uint64_t for_host = cache.missing_host_bytes(uses.span());
      if (best == nullptr || for_device + host_lacks > device_lacks + for_host) {
        best = &task;
        device_lacks = for_device;
        host_lacks = for_host;
      }
      if (host_lacks == 0) return false;
    }
    return ++looked_at < looked_at_max;
  });
  if (best == nullptr || !host_is_sooner(*best, device_lacks, host_lacks)) return false;
  queue.remove(*best);
  loads_.remove(place, seconds_at(*best, place), now_ns);
  best->on_host = true;
  loads_.add(host_place, seconds_at(*best, host_place), now_ns);
  host_width_ += width_of(*best);
  ++arriving_;
  ++lent_;
  store_.cache(place).request_host(TaskUses(store_, *best).span(), best);
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
