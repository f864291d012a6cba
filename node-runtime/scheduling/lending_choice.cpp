#include "node-runtime/scheduling/lending_choice.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.hpp"

namespace heddle {

using protocol::Task;

namespace {

/// Tasks for each worker that the host holds at most when it takes one: one runs, the others' tiles
/// are on their way.
constexpr std::int64_t ahead = 3;
/// The least urgent tasks among which the host looks for one whose tiles it has.
constexpr int looked_at_max = 32;

}  // namespace

LendingChoice::LendingChoice(std::shared_ptr<const PlacementPolicy> policy, Transfer transfer,
                             LendableTasks& tasks, std::int32_t devices, std::int32_t workers)
    : policy_(std::move(policy)),
      transfer_(std::move(transfer)),
      tasks_(tasks),
      devices_(devices),
      workers_(std::max(1, workers)),
      at_device_(static_cast<std::size_t>(devices)) {
  HEDDLE_CHECK(devices >= 1 && devices <= 64, "{} devices have tasks to lend", devices);
  HEDDLE_CHECK(policy_ != nullptr);
}

std::int32_t LendingChoice::width_of(const Task& task) {
  const std::int32_t width = tasks_.width(task);
  HEDDLE_DEBUG(width >= 1, "a task that {} workers run", width);
  return std::min(workers_, width);
}

bool LendingChoice::is_valid() const {
  return host_width_ >= 0 && lent_ >= 0 &&
         std::ranges::all_of(at_device_, [](std::int64_t count) { return count >= 0; });
}

bool LendingChoice::is_valid(std::span<const Task* const> live) {
  std::int64_t host_width = 0;
  std::int64_t lent = 0;
  std::vector<std::int64_t> at_device(at_device_.size());
  for (const Task* const task : live) {
    lent += task->is_lent ? 1 : 0;
    if (task->runs_at() == host_place) {
      host_width += width_of(*task);
    } else {
      ++at_device[static_cast<std::size_t>(task->place.value()) - 1];
    }
  }
  return host_width == host_width_ && at_device == at_device_ && lent <= lent_;
}

bool LendingChoice::became_ready(Task& task, Queues ready) {
  HEDDLE_DEBUG(!task.is_lent && ready.size() == at_device_.size() + 1, "{} queues", ready.size());
  if (task.place == host_place) {
    host_width_ += width_of(task);
    return false;
  }
  ++at_device(task.place);
  const LendableTasks::Kind& kind = tasks_.kind(task);
  if (kind.runs_on(task.place) || !kind.is_dividable || tasks_.is_cancelled(task)) return false;
  const double host_seconds = kind.seconds.worker / width_of(task);
  if (!policy_->lends(std::numeric_limits<double>::infinity(), host_seconds)) return false;
  lend(task, *ready[static_cast<std::size_t>(task.place.value())]);
  return true;
}

void LendingChoice::finished(const Task& task) {
  if (task.runs_at() == host_place) {
    host_width_ -= width_of(task);
  } else {
    --at_device(task.place);
  }
  HEDDLE_CHECK(is_valid(), "width {} on the host, {} lent", host_width_, lent_);
}

void LendingChoice::lend(Task& task, ReadyQueue& from) {
  HEDDLE_CHECK(!task.is_lent && at_device(task.place) > 0, "a task of place {}, which has {}",
               task.place.value(), at_device(task.place));
  from.remove(task);
  task.is_lent = true;
  --at_device(task.place);
  host_width_ += width_of(task);
  ++lent_;
}

/// All devices have tasks of alike kinds: the one with the most has the most to do.
ReadyQueue& LendingChoice::fullest(Queues ready) const {
  const auto most = std::ranges::max_element(at_device_) - at_device_.begin();
  return *ready[static_cast<std::size_t>(most) + 1];
}

bool LendingChoice::may_lend(const Task& task) {
  const LendableTasks::Kind& kind = tasks_.kind(task);
  return kind.may_be_lent && kind.runs_on_workers && kind.runs_on(task.place) &&
         !tasks_.is_cancelled(task);
}

/// `task` is among the least urgent of its device, which finishes it after all others. These, and
/// what the host has, are taken to be of the task's kind.
bool LendingChoice::host_is_sooner(const Task& task, std::uint64_t missing_bytes) {
  const TaskSeconds& seconds = tasks_.kind(task).seconds;
  HEDDLE_DEBUG(seconds.worker >= 0 && seconds.device >= 0, "{} and {} s", seconds.worker,
               seconds.device);
  const std::int32_t width = width_of(task);
  const double run = seconds.worker / width;
  const bool begins_at_once = host_width_ + width <= workers_;
  const double backlog = begins_at_once ? 0 : run * static_cast<double>(host_width_) / workers_;
  const NodeId node{0};
  const double transfer = missing_bytes == 0 || !transfer_
                              ? 0
                              : transfer_({node, task.place}, {node, host_place}, missing_bytes);
  return policy_->lends(static_cast<double>(at_device(task.place)) * seconds.device,
                        std::max(backlog, transfer) + run);
}

bool LendingChoice::may_find_for_host(Queues ready) {
  if (host_width_ >= ahead * workers_) return false;
  const ReadyQueue& queue = fullest(ready);
  bool is_sooner = false;
  int looked_at = 0;
  queue.from_lowest([&](const Task& task) {
    if (!may_lend(task)) return ++looked_at < looked_at_max;
    is_sooner = host_is_sooner(task, 0);
    return false;
  });
  return is_sooner;
}

Task* LendingChoice::take_for_host(Queues ready) {
  // Most looks end here: the host is too late, wherever the tiles are.
  if (!may_find_for_host(ready)) return nullptr;
  ReadyQueue& queue = fullest(ready);
  Task* best = nullptr;
  std::uint64_t least_missing = 0;
  int looked_at = 0;
  queue.from_lowest([&](Task& task) {
    if (may_lend(task)) {
      const std::uint64_t missing = tasks_.missing_on_host(task);
      if (best == nullptr || missing < least_missing) {
        best = &task;
        least_missing = missing;
      }
      if (least_missing == 0) return false;
    }
    return ++looked_at < looked_at_max;
  });
  if (best == nullptr || !host_is_sooner(*best, least_missing)) return nullptr;
  lend(*best, queue);
  return best;
}

}  // namespace heddle
