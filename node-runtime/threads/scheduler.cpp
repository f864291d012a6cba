#include "node-runtime/threads/scheduler.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "node-runtime/threads/job_record.hpp"

namespace heddle {

using protocol::Task;

Scheduler::Scheduler(std::size_t places, std::int32_t cpu_workers,
                     std::vector<std::uint8_t> distances, std::unique_ptr<Lending> lending,
                     Counters& counters)
    : counters_(counters),
      lending_(std::move(lending)),
      fine_(std::max(1, cpu_workers), std::move(distances)) {
  HEDDLE_CHECK(places >= 1 && places <= 65, "{} places; wakes name 64 devices", places);
  for (std::size_t p = 0; p < places; ++p) ready_.push_back(std::make_unique<ReadyQueue>());
}

void Scheduler::make_ready(std::span<Task* const> tasks, Wakes& wakes) {
  for (Task* task : tasks) {
    HEDDLE_DEBUG(task->missing == 0 && !task->executed, "tile {}", task->operands[0].tile.index);
    queue(task->place).push(*task);
    // The arrival of a lent task's tiles wakes a worker.
    if (lending_ && lending_->became_ready(*task, ready_)) continue;
    if (task->place == host_place) {
      ++wakes.cpu;
    } else {
      wakes.devices |= std::uint64_t{1} << (task->place.value() - 1);
    }
  }
  // No worker is woken in vain.
  if (lending_ && wakes.devices != 0 && counters_.idle_workers() > 0 &&
      lending_->may_find(ready_)) {
    ++wakes.cpu;
  }
}

Task* Scheduler::take_for_device(PlaceId place, std::int32_t above, std::size_t& left) {
  HEDDLE_DEBUG(place != host_place);
  ReadyQueue& ready = queue(place);
  left = ready.count();
  if (ready.top() <= above) return nullptr;
  counters_.task_taken();
  --left;
  return ready.pop();
}

HostWork Scheduler::take_for_host(std::int32_t worker) {
  HostWork next;
  next.task = staged_.pop();
  next.is_staged = next.task != nullptr;
  if (next.is_staged) return next;  // counted as running since its device's manager took it
  ReadyQueue& ready = queue(host_place);
  const Task* const first = ready.front();
  const bool divides = first != nullptr && fine_parts_of(*first) > 0;
  const bool has_no_place = divides && !fine_.may_begin();
  if (fine_.ready_count() > 0 && (has_no_place || fine_.top() >= ready.top())) {
    next.fine = fine_.take(worker);
    return next;
  }
  if (first == nullptr) return next;
  HEDDLE_CHECK(!has_no_place, "{} tasks are divided, and none has a fine task to run",
               fine_.divided_count());
  next.task = ready.pop();
  counters_.task_taken();
  if (divides) next.place = &fine_.begin();
  return next;
}

void Scheduler::lend(Wakes& wakes) {
  if (!lending_) return;
  while (lending_->lend(ready_)) {
  }
  wakes.cpu += lending_->take_arrived(queue(host_place));
}

bool Scheduler::is_valid() const {
  return fine_.ready_count() >= 0 && fine_.divided_count() >= 0 &&
         ready_hint() == ready_for_host() &&
         std::ranges::all_of(ready_, [](const auto& queue) { return queue->is_valid(); }) &&
         staged_.is_valid();
}

}  // namespace heddle
