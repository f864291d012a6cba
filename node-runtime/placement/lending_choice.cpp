#include "node-runtime/placement/lending_choice.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace heddle {

using protocol::Task;

namespace {

/// Tasks for each worker that the host has at hand: one to run, and some whose tiles come
/// meanwhile.
constexpr std::int64_t ahead = 3;
/// The least urgent tasks of a device that are looked at for one whose tiles are on the host.
constexpr int looked_at_max = 32;

}  // namespace

std::int32_t divided_width(std::int64_t rows, std::int64_t columns, std::int64_t fine) {
  const auto parts = [fine](std::int64_t length) {
    return std::max<std::int64_t>(1, (length + fine - 1) / fine);
  };
  constexpr std::int64_t most = 1 << 20;
  return static_cast<std::int32_t>(std::min(most, parts(rows) * parts(columns)));
}

LendingChoice::LendingChoice(std::shared_ptr<const PlacementPolicy> policy, Transfer transfer,
                             LendableTasks& tasks, std::int32_t devices, std::int32_t workers)
    : policy_(std::move(policy)),
      transfer_(std::move(transfer)),
      tasks_(tasks),
      devices_(devices),
      workers_(std::max(1, workers)),
      loads_(static_cast<std::size_t>(devices) + 1) {}

double LendingChoice::seconds_at(const Costs& costs, PlaceId place) const {
  return place == host_place ? costs.worker / workers_ : costs.device;
}

std::int32_t LendingChoice::width_of(const Costs& costs) const {
  return std::min(workers_, costs.width);
}

void LendingChoice::became_ready(const Task& task, std::int64_t now_ns) {
  if (!tasks_.counts(task)) return;
  const Costs costs = tasks_.costs(task);
  loads_.add(task.place, seconds_at(costs, task.place), now_ns);
  if (task.place == host_place) host_width_ += width_of(costs);
}

void LendingChoice::finished(const Task& task, std::int64_t now_ns) {
  if (!tasks_.counts(task)) return;
  const PlaceId place = task.on_host ? host_place : task.place;
  const Costs costs = tasks_.costs(task);
  loads_.finish(place, seconds_at(costs, place), now_ns);
  if (place == host_place) host_width_ -= width_of(costs);
}

bool LendingChoice::has_room() const {
  return host_width_ < ahead * workers_;
}

PlaceId LendingChoice::busiest() const {
  PlaceId found{1};
  for (std::int32_t p = 2; p <= devices_; ++p) {
    if (loads_.seconds(PlaceId{p}) > loads_.seconds(found)) found = PlaceId{p};
  }
  return found;
}

/// The task is one of the least urgent: all that its device has comes before it.
bool LendingChoice::host_is_sooner(const Task& task, const LendableTasks::Lacking& lacking) {
  const NodeId node{0};
  const auto transfer = [&](PlaceId from, PlaceId to, std::uint64_t bytes) {
    if (bytes == 0 || !transfer_) return 0.0;
    return transfer_({node, from}, {node, to}, bytes);
  };
  const Costs costs = tasks_.costs(task);
  const double on_device = costs.device * loads_.factor(task.place);
  const std::array<PlaceOffer, 2> offers{
      {{.place = task.place,
        .load_seconds = std::max(0.0, loads_.seconds(task.place) - on_device),
        .transfer_seconds = transfer(host_place, task.place, lacking.device),
        .kernel_seconds = on_device},
       {.place = host_place,
        .load_seconds = loads_.seconds(host_place),
        .transfer_seconds = transfer(task.place, host_place, lacking.host),
        .kernel_seconds = costs.worker / width_of(costs) * loads_.factor(host_place)}}};
  return policy_->choose(offers) == 1;
}

Task* LendingChoice::take(std::span<const std::unique_ptr<ReadyQueue>> ready, std::int64_t now_ns) {
  if (!has_room()) return nullptr;
  const PlaceId place = busiest();
  ReadyQueue& queue = *ready[static_cast<std::size_t>(place.value())];
  Task* best = nullptr;
  LendableTasks::Lacking of_best;
  int looked_at = 0;
  queue.from_lowest([&](Task& task) {
    if (tasks_.may_move(task) && tasks_.counts(task)) {
      // Most looks end here: the host is too slow for it, wherever the tiles are.
      if (best == nullptr && !host_is_sooner(task, {})) return false;
      const LendableTasks::Lacking lacking = tasks_.lacking(task);
      if (best == nullptr || lacking.device + of_best.host > of_best.device + lacking.host) {
        best = &task;
        of_best = lacking;
      }
      if (of_best.host == 0) return false;
    }
    return ++looked_at < looked_at_max;
  });
  if (best == nullptr || !host_is_sooner(*best, of_best)) return nullptr;
  queue.remove(*best);
  const Costs costs = tasks_.costs(*best);
  loads_.remove(place, seconds_at(costs, place), now_ns);
  best->on_host = true;
  loads_.add(host_place, seconds_at(costs, host_place), now_ns);
  host_width_ += width_of(costs);
  ++lent_;
  return best;
}

}  // namespace heddle
