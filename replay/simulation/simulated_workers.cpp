#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "replay/simulation/mixed.hpp"
#include "replay/simulation/simulated_node.hpp"

/// A node's CPU workers: which of them takes which task, and when it starts and ends.
namespace heddle::replay {

/// Queue of a task that is bound to a worker; null: any worker or a device may take it.
ReadyQueue* SimulatedNode::own_queue(const protocol::Task& task) {
  if (lending_ || task.place != host_place || world_.kind_of(task).fine != nullptr) return nullptr;
  const auto worker = world_.job.worker_of(id_, static_cast<std::int64_t>(task.order));
  if (!worker || *worker >= world_.machine.cpu_workers) return nullptr;
  own_ready_.resize(workers_.size());
  std::unique_ptr<ReadyQueue>& queue = own_ready_[static_cast<std::size_t>(*worker)];
  if (queue == nullptr) queue = std::make_unique<ReadyQueue>();
  return queue.get();
}

/// Null: no tasks are bound to that worker.
ReadyQueue* SimulatedNode::own_queue_of(std::int32_t worker) const {
  if (own_ready_.empty()) return nullptr;
  ReadyQueue* const queue = own_ready_[static_cast<std::size_t>(worker)].get();
  return queue != nullptr && queue->count() > 0 ? queue : nullptr;
}

/// On the host.
std::size_t SimulatedNode::ready_count() const {
  std::size_t count = ready_[0]->count();
  for (const auto& queue : own_ready_) count += queue == nullptr ? 0 : queue->count();
  return count + static_cast<std::size_t>(fine_ ? fine_->ready_count() : 0);
}

bool SimulatedNode::has_work() const {
  return ready_[0]->count() > 0 || (fine_ && fine_->ready_count() > 0);
}

/// A worker's next work, as Engine::take_host_work(). False if there is none.
bool SimulatedNode::take_work(std::int32_t number) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  ReadyQueue& queue = *ready_[0];
  if (ReadyQueue* const own = own_queue_of(number); own != nullptr && own->top() >= queue.top()) {
    worker.task = own->pop();
    return true;
  }
  for (;;) {
    const protocol::Task* const first = queue.front();
    const bool divides = first != nullptr && world_.kind_of(*first).fine != nullptr;
    const bool has_no_place = divides && fine_ && !fine_->may_begin();
    const bool has_fine = fine_ && fine_->ready_count() > 0;
    if (has_fine && (has_no_place || fine_->top() >= queue.top())) {
      worker.fine = fine_->take(number);
      return true;
    }
    if (first == nullptr) return false;
    protocol::Task* const task = queue.pop();
    if (!divides) {
      worker.task = task;
      return true;
    }
    divide(*task, number);
  }
}

void SimulatedNode::divide(protocol::Task& task, std::int32_t number) {
  if (!fine_) fine_.emplace(world_.machine.cpu_workers, std::vector<std::uint8_t>());
  DividedTask& divided = fine_->begin();
  FineScheduler::prepare(divided, task, task.priority, world_.kind_of(task).fine->graph, {});
  divided.start_ns = world_.now_ns;
  fine_->open(divided, number);
}

/// Removes one of the idle workers.
std::int32_t SimulatedNode::draw_idle() {
  if (!world_.machine.worker_paces.empty()) {
    const std::uint64_t drawn = mixed(world_.options.seed, id_, drawn_workers_++);
    std::swap(idle_[drawn % idle_.size()], idle_.back());
  }
  const std::int32_t number = idle_.back();
  idle_.pop_back();
  return number;
}

/// An idle worker for which there is work; removes it from the idle ones.
std::optional<std::int32_t> SimulatedNode::next_idle() {
  // As if all took from one queue: the most urgent task first, then first-in-first-out.
  auto own = idle_.end();
  for (auto worker = idle_.begin(); worker != idle_.end() && !own_ready_.empty(); ++worker) {
    const ReadyQueue* const queue = own_queue_of(*worker);
    if (queue == nullptr) continue;
    const ReadyQueue* const best = own == idle_.end() ? nullptr : own_queue_of(*own);
    const bool is_better =
        best == nullptr || queue->top() > best->top() ||
        (queue->top() == best->top() && queue->front()->order < best->front()->order);
    if (is_better) own = worker;
  }
  if (own != idle_.end()) {
    const std::int32_t number = *own;
    idle_.erase(own);
    return number;
  }
  if (idle_.empty() || !has_work()) return std::nullopt;
  return draw_idle();
}

/// Wake-up time of a worker that waited until now and has taken work.
std::int64_t SimulatedNode::waking_ns(const Worker& worker) {
  if (worker.task != nullptr) {
    const auto order = static_cast<std::int64_t>(worker.task->order);
    if (const auto known = world_.job.waking_seconds(id_, order)) return ns_of(*known);
  }
  if (world_.machine.wakings.empty()) return ns_of(world_.machine.wake_s);
  const bool is_first = worker.free_ns == 0;
  const double waited_s = is_first ? std::numeric_limits<double>::infinity()
                                   : static_cast<double>(world_.now_ns - worker.free_ns) * 1e-9;
  const std::uint64_t drawn = mixed(~world_.options.seed, id_, drawn_wakings_++);
  return ns_of(world_.machine.waking_s(waited_s, drawn));
}

void SimulatedNode::start_workers() {
  while (const auto next = next_idle()) {
    const std::int32_t number = *next;
    Worker& worker = workers_[static_cast<std::size_t>(number)];
    // A worker that just ended a task is still between tasks; free_ns is 0 before the first.
    const bool waits = worker.free_ns == 0 || worker.free_ns < world_.now_ns;
    trace_.worker_waited(number, worker.free_ns, world_.now_ns);
    const bool has_taken = take_work(number);
    HEDDLE_CHECK(has_taken, "no work for worker {}", number);
    start(number, world_.now_ns + (waits ? waking_ns(worker) : 0));
  }
}

/// Starts the worker's work when it is free.
void SimulatedNode::start(std::int32_t number, std::int64_t earliest_ns) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  const protocol::Task& task = worker.fine ? *worker.fine.of->task : *worker.task;
  worker.start_ns = std::max(earliest_ns, worker.free_ns);
  const auto order = static_cast<std::int64_t>(task.order);
  if (!worker.fine && world_.job.worker_of(id_, order) == number) {
    const auto known = world_.job.waking_seconds(id_, order);
    if (known) worker.start_ns = std::max(world_.now_ns, worker.end_ns) + ns_of(*known);
  }
  const TaskKind& kind = world_.kind_of(task);
  const double whole = worker.fine
                           ? kind.fine->seconds[static_cast<std::size_t>(worker.fine.number)]
                           : kind.seconds_host;
  if (whole <= 0) {
    throw Error(ErrorCode::usage,
                fmt::format("machine '{}' has no time for kernel '{}' on {} x {} tiles on the host",
                            world_.machine.name, kind.kernel, kind.rows, kind.columns));
  }
  const double pace = world_.machine.pace(id_, number) * world_.machine.start_pace(worker.begun++);
  const double seconds = whole * world_.share_of(task, id_) * pace;
  world_.post(Event::Kind::task_ends, worker.start_ns + std::max<std::int64_t>(1, ns_of(seconds)),
              number, id_);
}

/// The last fine task FIREs the divided task.
void SimulatedNode::end_fine(std::int32_t number) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  const FineWork work = std::exchange(worker.fine, {});
  protocol::Task& task = *work.of->task;
  const TaskKind& kind = world_.kind_of(task);
  trace_.worker_ran_fine(number, work, worker.start_ns, world_.now_ns);
  if (!fine_->finish(work).completes_task) return;
  trace_.divided(task, kind, work.of->start_ns, world_.now_ns);
  world_.result.flops += kind.flops;
  fine_->close(*work.of);
  finished(task);
}

void SimulatedNode::finished(protocol::Task& task) {
  release_tiles(task);
  if (lending_) {
    lending_->choice().finished(task);
    const auto kind = static_cast<std::size_t>(task.work.parameters[0]);
    if (totals.tasks_by_kind.size() <= kind) totals.tasks_by_kind.resize(kind + 1);
    totals.tasks_by_kind[kind] += world_.share_of(task, id_);
  }
  protocol_.task_finished(task, actions_);
}

/// For the progress thread, which keeps the core while it has work, and a little longer.
void SimulatedNode::step_aside(Worker& worker) {
  if (world_.now_ns - worker.stepped_aside_ns < step_aside_ns) return;
  progress_.serve_all();
  worker.stepped_aside_ns = world_.now_ns;
  if (worker.task == nullptr) return;
  worker.free_ns = std::max(worker.free_ns, progress_.take_core());
  worker.stepped_aside_ns = worker.free_ns;
}

void SimulatedNode::task_ends(std::int32_t number) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  totals.busy_workers_s += static_cast<double>(world_.now_ns - worker.start_ns) * 1e-9;
  ++totals.tasks;
  worker.end_ns = world_.now_ns;
  worker.free_ns = world_.now_ns + ns_of(world_.machine.task_s);
  if (worker.fine) {
    end_fine(number);
  } else {
    protocol::Task& task = *std::exchange(worker.task, nullptr);
    const TaskKind& kind = world_.kind_of(task);
    trace_.worker_ran(number, task, kind, worker.start_ns, world_.now_ns);
    world_.result.flops += kind.flops;
    finished(task);
  }
  trace_.ready(number, ready_count(), world_.now_ns);
  // As in a worker: the tasks made ready are queued before it takes the next one.
  discard_freed();
  push_ready();
  if (lending_) static_cast<void>(lend());  // collect() starts what this has brought
  const bool goes_on = take_work(number);
  if (!goes_on) idle_.push_back(number);
  collect();
  if (world_.machine.shares_cores()) step_aside(worker);
  if (!goes_on) return progress_.serve_all();  // its core is free for messages
  start(number, world_.now_ns);
}

}  // namespace heddle::replay
