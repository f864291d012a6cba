#include "node-runtime/placement/lending_choice.hpp"

#include <algorithm>
#include <array>
#include <limits>
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

bool may_lend(const PlacementPolicy& policy, const LendableTasks::Costs& costs, double slower,
              std::int32_t devices, std::int32_t workers) {
  const std::array<PlaceOffer, 2> offers{{{.place = PlaceId{1},
                                           .load_seconds = std::numeric_limits<double>::infinity(),
                                           .kernel_seconds = costs.device,
                                           .kind_seconds = slower * costs.device / devices},
                                          {.place = host_place,
                                           .kernel_seconds = costs.worker,
                                           .kind_seconds = costs.worker / workers}}};
  return policy.choose(offers) == 1;
}

LendingChoice::LendingChoice(std::shared_ptr<const PlacementPolicy> policy, Transfer transfer,
                             LendableTasks& tasks, std::int32_t devices, std::int32_t workers)
    : policy_(std::move(policy)),
      transfer_(std::move(transfer)),
      tasks_(tasks),
      devices_(devices),
      workers_(std::max(1, workers)),
      loads_(static_cast<std::size_t>(devices) + 1),
      idle_(static_cast<std::size_t>(devices)) {}

/// A whole task keeps one of many workers busy: then the host does not need as long for it as the
/// worker does, and is not slow because the others have nothing to do.
PlaceLoads::Work LendingChoice::work_at(const Task& task, const Kind& kind, PlaceId place) {
  if (place != host_place) return {.seconds = kind.costs.device};
  return {.seconds = kind.costs.worker / workers_,
          .share = static_cast<double>(width_of(task)) / workers_};
}

std::int32_t LendingChoice::width_of(const Task& task) {
  return std::min(workers_, tasks_.width(task));
}

bool LendingChoice::may_come_to_host(const Costs& costs) const {
  double slower = 0;
  for (std::int32_t p = 1; p <= devices_; ++p) {
    slower = std::max(slower, loads_.best_factor(PlaceId{p}));
  }
  return may_lend(costs, slower);
}

bool LendingChoice::has_shown() const {
  for (std::int32_t p = 1; p <= devices_; ++p) {
    if (loads_.has_shown(PlaceId{p})) return true;
  }
  return false;
}

void LendingChoice::forget_shown() {
  for (std::int32_t p = 1; p <= devices_; ++p) loads_.forget_best(PlaceId{p});
}

void LendingChoice::begin_work(bool keeps_loads) {
  keeps_loads_ = keeps_loads;
  for (Idle& idle : idle_) idle.surplus_since_ns.reset();
}

void LendingChoice::count(Task& task, const Kind& kind, PlaceId place, std::int64_t now_ns) {
  task.is_counted = true;
  loads_.add(place, work_at(task, kind, place), now_ns);
  if (place == host_place) host_width_ += width_of(task);
}

bool LendingChoice::became_ready(Task& task, Queues ready, std::int64_t now_ns) {
  if (!keeps_loads_) return false;
  loads_.forget_after_rest(host_place, now_ns);
  const Kind& kind = tasks_.kind(task);
  if (!counts(task, kind)) return take_instead_of_staging(task, ready, now_ns);
  count(task, kind, task.place, now_ns);
  return false;
}

void LendingChoice::finished(Task& task, std::int64_t now_ns) {
  if (task.is_lent_to_device()) --idle(task.lent_to).visitors;
  if (!std::exchange(task.is_counted, false)) return;
  const PlaceId place = task.runs_at();
  loads_.finish(place, work_at(task, tasks_.kind(task), place), now_ns);
  if (place == host_place) host_width_ -= width_of(task);
}

bool LendingChoice::host_has_room() const {
  return host_width_ < ahead * workers_;
}

PlaceId LendingChoice::busiest() const {
  PlaceId found = host_place;
  for (std::int32_t p = 1; p <= devices_; ++p) {
    const PlaceId place{p};
    if (found == host_place || loads_.seconds(place) > loads_.seconds(found)) found = place;
  }
  return found;
}

PlaceId LendingChoice::fullest(Queues ready) {
  const auto found = std::ranges::max_element(ready.subspan(1), {},
                                              [](const auto& queue) { return queue->count(); });
  return PlaceId{static_cast<std::int32_t>(found - ready.begin())};
}

double LendingChoice::transfer_seconds(PlaceId from, PlaceId to, std::uint64_t bytes) const {
  const NodeId node{0};
  return bytes == 0 || !transfer_ ? 0.0 : transfer_({node, from}, {node, to}, bytes);
}

/// The task is one of the least urgent: all that its device has comes before it. A device that has
/// only paused is not taken for a slow one: what workers took would be late by far (decision
/// 026).
bool LendingChoice::host_is_sooner(const Task& task, const Kind& kind,
                                   const LendableTasks::Lacking& lacking) {
  const Costs& costs = kind.costs;
  if (!may_lend(costs, loads_.least_factor(task.place))) return false;
  const std::int32_t width = width_of(task);
  const bool begins_at_once = host_width_ + width <= workers_;
  const double at_home = costs.device * loads_.sure_factor(task.place);
  const std::array<PlaceOffer, 2> offers{
      {{.place = task.place,
        .load_seconds = std::max(0.0, loads_.sure_seconds(task.place) - at_home),
        .transfer_seconds = transfer_seconds(host_place, task.place, lacking.device),
        .kernel_seconds = at_home,
        .kind_seconds = costs.device * loads_.least_factor(task.place) / devices_},
       {.place = host_place,
        .load_seconds = begins_at_once ? 0 : loads_.seconds(host_place),
        .transfer_seconds = transfer_seconds(task.place, host_place, lacking.host),
        .kernel_seconds = costs.worker / width * loads_.factor(host_place),
        .kind_seconds = costs.worker / workers_}}};
  return policy_->choose(offers) == 1;
}

/// Whatever the device has is taken to be like this one. What the task writes is needed at home:
/// its way back counts like the kernel. And all of it counts twice, as the device's own tasks that
/// become ready meanwhile come later by that: where devices have as much to do, a step's first
/// tasks would wait for the last ones of the step before.
bool LendingChoice::device_is_sooner(const Task& task, PlaceId device,
                                     const LendableTasks::Visit& bytes, std::size_t at_home) {
  const double seconds = tasks_.kind(task).costs.device;
  const double home = seconds * loads_.sure_factor(task.place);
  const double away = seconds * loads_.factor(device);
  const std::array<PlaceOffer, 2> offers{
      {{.place = task.place,
        .load_seconds = static_cast<double>(at_home - 1) * home,
        .kernel_seconds = home},
       {.place = device,
        .load_seconds = static_cast<double>(idle(device).visitors) * away,
        .transfer_seconds = transfer_seconds(task.place, device, bytes.there),
        .kernel_seconds = 2 * (away + transfer_seconds(device, task.place, bytes.back))}}};
  return policy_->choose(offers) == 1;
}

/// Between the steps of a factorization each device has nothing to do for a while, and tasks of its
/// own the moment after: a visit then costs what it is to save. Who waits as long as it takes loses
/// no more than twice as much as who knows what comes; and one that has had nothing for long
/// receives the next visit at once. At the beginning of the node's work all have had nothing for
/// long, and wait from when one has too much.
std::int64_t LendingChoice::may_visit_from(const Task& task, const Visited& visited,
                                           const LendableTasks::Visit& bytes) {
  const double seconds = transfer_seconds(task.place, visited.device, bytes.there) +
                         tasks_.kind(task).costs.device * loads_.factor(visited.device) +
                         transfer_seconds(visited.device, task.place, bytes.back);
  return std::max(visited.idle_since_ns, *idle(visited.device).surplus_since_ns) +
         static_cast<std::int64_t>(seconds * 1e9);
}

void LendingChoice::lend(Task& task, PlaceId to, Queues ready, std::int64_t now_ns) {
  ready[static_cast<std::size_t>(task.place.value())]->remove(task);
  const Kind& kind = tasks_.kind(task);
  if (std::exchange(task.is_counted, false)) {
    loads_.remove(task.place, work_at(task, kind, task.place), now_ns);
  }
  task.lent_to = to;
  if (to == host_place) {
    count(task, kind, to, now_ns);
    ++lent_;
  } else {
    ++idle(to).visitors;
    ++visits_;
  }
}

/// Workers run it either way, with as much before it. Staged is what fills a matrix, say: what it
/// writes is home at once, where the next job needs it. What a factorization's task writes, other
/// tasks on the host may need first.
bool LendingChoice::take_instead_of_staging(Task& task, Queues ready, std::int64_t now_ns) {
  if (!tasks_.may_move(task) || !tasks_.is_dividable(task)) return false;
  const Costs& costs = tasks_.kind(task).costs;
  const LendableTasks::Visit bytes = tasks_.visit(task);
  const double factor = loads_.factor(host_place);
  const std::array<PlaceOffer, 2> offers{
      {{.place = task.place,
        .transfer_seconds = transfer_seconds(task.place, host_place, bytes.there),
        .kernel_seconds =
            costs.worker * factor + transfer_seconds(host_place, task.place, bytes.back)},
       {.place = host_place,
        .transfer_seconds = transfer_seconds(task.place, host_place, tasks_.lacking(task).host),
        .kernel_seconds = costs.worker / width_of(task) * factor}}};
  if (policy_->choose(offers) != 1 || !tasks_.back(task)) return false;
  lend(task, host_place, ready, now_ns);
  return true;
}

bool LendingChoice::may_find_for_host(Queues ready) {
  if (!keeps_loads_ || !host_has_room()) return false;
  const PlaceId place = busiest();
  if (place == host_place) return false;
  bool is_sooner = false;
  int looked_at = 0;
  ready[static_cast<std::size_t>(place.value())]->from_lowest([&](Task& task) {
    const Kind& kind = tasks_.kind(task);
    if (!counts(task, kind) || !tasks_.may_move(task)) return ++looked_at < looked_at_max;
    is_sooner = host_is_sooner(task, kind, {});
    return false;
  });
  return is_sooner;
}

Task* LendingChoice::take_for_host(Queues ready, std::int64_t now_ns) {
  // Most looks end here: the host is too slow, wherever the tiles are.
  if (!may_find_for_host(ready)) return nullptr;
  const ReadyQueue& queue = *ready[static_cast<std::size_t>(busiest().value())];
  Task* best = nullptr;
  LendableTasks::Lacking of_best;
  int looked_at = 0;
  queue.from_lowest([&](Task& task) {
    if (counts(task, tasks_.kind(task)) && tasks_.may_move(task)) {
      const LendableTasks::Lacking lacking = tasks_.lacking(task);
      if (best == nullptr || lacking.device + of_best.host > of_best.device + lacking.host) {
        best = &task;
        of_best = lacking;
      }
      if (of_best.host == 0) return false;
    }
    return ++looked_at < looked_at_max;
  });
  if (best == nullptr || !host_is_sooner(*best, tasks_.kind(*best), of_best)) return nullptr;
  if (!tasks_.back(*best)) return nullptr;
  lend(*best, host_place, ready, now_ns);
  return best;
}

bool LendingChoice::has_surplus(Queues ready) const {
  return std::ranges::any_of(ready.subspan(1),
                             [](const auto& queue) { return queue->count() > kept_by_device; });
}

Task* LendingChoice::take_for_device(Queues ready, const Visited& visited, std::int64_t now_ns) {
  Idle& waits = idle(visited.device);
  const PlaceId place = fullest(ready);
  const ReadyQueue& queue = *ready[static_cast<std::size_t>(place.value())];
  if (place == visited.device || queue.count() <= kept_by_device) {
    waits.surplus_since_ns.reset();
    return nullptr;
  }
  if (!waits.surplus_since_ns) waits.surplus_since_ns = now_ns;
  Task* found = nullptr;
  int looked_at = 0;
  queue.from_lowest([&](Task& task) {
    const LendableTasks::Visit bytes = tasks_.visit(task);
    if (bytes.largest <= visited.tile_bytes_max && tasks_.may_visit(task, visited.device)) {
      if (may_visit_from(task, visited, bytes) > now_ns) return false;
      if (!device_is_sooner(task, visited.device, bytes, queue.count())) return false;
      if (tasks_.claim(task)) found = &task;
    }
    return found == nullptr && ++looked_at < looked_at_max;
  });
  if (found == nullptr) return nullptr;
  lend(*found, visited.device, ready, now_ns);
  return found;
}

}  // namespace heddle
