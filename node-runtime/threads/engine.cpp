#include "node-runtime/threads/engine.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/core.h>
#include <iterator>
#include <new>

#include "base/assert.hpp"
#include "base/process_limits.hpp"
#include "base/require.hpp"
#include "base/units.hpp"
#include "node-runtime/threads/plan_listener.hpp"
#include "node-runtime/threads/tile_operands.hpp"
#include "node-runtime/threads/trace_events.hpp"
#include "node-runtime/trace/counter_names.hpp"

namespace heddle {

using protocol::Actions;
using protocol::BlockRef;
using protocol::Task;

namespace {

/// Items that generation inserts before it gives the lock back: many while workers have nothing to
/// do, and few while they are at work, each of whom would wait for it with every task.
constexpr std::int32_t quantum_for_idle = 16;
constexpr std::int32_t quantum_for_busy = 4;
/// Unfinished items for each worker from which on it lets workers go first. As fast as it can it
/// would have the lock for a quarter of some runs, and workers wait for it with every task that
/// they finish: on 16 cores they ran half as many meanwhile.
constexpr std::int32_t ahead_each = 64;

}  // namespace

Engine::Engine(const EngineOptions& options, TileStore& store, trace::Recorder& recorder)
    : options_(options),
      store_(store),
      recorder_(recorder),
      link_(std::make_shared<EngineLink>(*this)),
      mutex_(options.oversubscribed ? SpinMutex::patience_on_shared_cores
                                    : SpinMutex::patience_with_cores),
      protocol_({options.node, static_cast<std::int32_t>(options.devices.size()) + 1}),
      kernel_watch_(static_cast<std::size_t>(options.cpu_workers) + options.devices.size()),
      fine_(std::max(1, options.cpu_workers), options.worker_distances),
      depth_name_(recorder.intern(trace::ready_tasks_name)) {
  for (std::size_t p = 0; p <= options_.devices.size(); ++p) {
    ready_.push_back(std::make_unique<ReadyQueue>());
    if (p > 0) device_bells.push_back(std::make_unique<Doorbell>());
  }
  if (options_.lending && !options_.devices.empty()) {
    lending_.emplace(*options_.lending, store_, options_.devices, options_.cpu_workers,
                     fine_graphs_);
  }
  for (std::size_t d = 0; d < options_.devices.size(); ++d) {
    const auto ready = [this, d](DeviceCache::Requester requester) {
      switch (requester) {
        case DeviceCache::Requester::manager:
          return device_bells[d]->ring();
        case DeviceCache::Requester::copies:
          return copy_bell.ring();
        case DeviceCache::Requester::host:
          return cpu_bell.ring();
      }
    };
    store_.cache(PlaceId{static_cast<std::int32_t>(d) + 1}).tell(ready, [this] {
      copy_bell.ring();
    });
  }
}

Engine::~Engine() {
  link_->cut();
  if (failed()) protocol_.abandon();
}

// ---- matrices --------------------------------------------------------------------------------

protocol::MatrixId Engine::add_matrix(TileTable table) {
  protocol::MatrixOptions matrix;
  matrix.tile_count = static_cast<std::int32_t>(table.shapes.size());
  matrix.temporary = table.temporary;
  matrix.spare_count = table.temporary || !table.wrapped.empty() ? 0 : table.spare_count;
  TileClasses classes = classes_of(table.shapes);
  if (!classes.of_tile.empty()) {
    matrix.classes = std::make_shared<const std::vector<std::int32_t>>(std::move(classes.of_tile));
  }
  matrix.class_count = static_cast<std::int32_t>(classes.bytes.size());
  protocol::MatrixId id;
  {
    const std::lock_guard lock(mutex_);
    id = protocol_.next_matrix();
  }
  matrix.pools = store_.add_matrix(id, std::move(table));
  const std::lock_guard lock(mutex_);
  const protocol::MatrixId given = protocol_.add_matrix(std::move(matrix));
  HEDDLE_CHECK(given == id, "matrices are made by one thread at a time");
  return id;
}

void Engine::remove_matrix(protocol::MatrixId matrix) {
  if (failed()) return;  // the protocol is abandoned as a whole
  {
    const std::lock_guard lock(mutex_);
    protocol_.remove_matrix(matrix);
  }
  store_.remove_matrix(matrix);
}

BlockRef Engine::current_block(protocol::TileId tile) {
  const std::lock_guard lock(mutex_);
  return protocol_.current_block(tile, store_.home_place(tile));
}

// ---- events ----------------------------------------------------------------------------------

Engine::Wakes Engine::apply() {
  Wakes wakes;
  Actions& a = actions_;
  // First: a task that is ready now may be about to write the same block again.
  for (const BlockRef block : a.freed) store_.discard(block);
  for (Task* task : a.ready) {
    const auto place = static_cast<std::size_t>(task->place.value());
    ready_[place]->push(*task);
    // The arrival of a lent task's tiles wakes a worker.
    if (lending_ && lending_->became_ready(*task, ready_)) continue;
    if (place == 0) {
      ++wakes.cpu;
    } else {
      wakes.devices |= std::uint64_t{1} << (place - 1);
    }
  }
  if (!a.copies.empty()) {
    copies_.insert(copies_.end(), a.copies.begin(), a.copies.end());
    wakes.copy = true;
  }
  if (!a.asks.empty() || !a.grants.empty() || !a.offers.empty() || !a.sends.empty()) {
    outbox_.add(a);
    wakes.message = true;
  }
  // No worker is woken in vain.
  if (lending_ && wakes.devices != 0 && idle_workers() > 0 && lending_->may_find(ready_)) {
    ++wakes.cpu;
  }
  // Jobs drained by this event: completing one changes no other, so the list is stable.
  for (protocol::Job* job : a.drained) drained(*job, wakes);
  a.clear();
  if (window_waiters_ > 0) reopen_windows(wakes);
  event_count_.fetch_add(1, std::memory_order_relaxed);
  return wakes;
}

/// With the lock.
void Engine::reopen_windows(Wakes& wakes) {
  for (const auto& job : jobs_) {
    if (!job->waits_for_window || !job->handle->window_reopens()) continue;
    job->waits_for_window = false;
    --window_waiters_;
    wakes.generation = true;
  }
}

/// With the lock.
void Engine::wait_for_window(JobRecord& job) {
  if (job.waits_for_window || !job.handle->window_is_full()) return;
  job.waits_for_window = true;
  ++window_waiters_;
}

void Engine::Wakes::merge(Wakes&& other) {
  std::move(other.remains.begin(), other.remains.end(), std::back_inserter(remains));
  cpu += other.cpu;
  devices |= other.devices;
  generation |= other.generation;
  copy |= other.copy;
  message |= other.message;
  all |= other.all;
}

void Engine::ring(Wakes& wakes) {
  for (Remains& remains : wakes.remains) end(remains);
  if (wakes.all) {
    cpu_bell.ring_all();
    generation_bell.ring_all();
    copy_bell.ring_all();
    message_bell.ring_all();
    room_bell_.ring_all();
    for (const auto& bell : device_bells) bell->ring_all();
    return;
  }
  wake_workers(wakes.cpu);
  for (std::size_t d = 0; d < device_bells.size(); ++d) {
    if ((wakes.devices >> d & 1) != 0) device_bells[d]->ring();
  }
  if (wakes.generation) {
    generation_bell.ring();
    room_bell_.ring_all();
  }
  if (wakes.copy) copy_bell.ring();
  if (wakes.message) message_bell.ring();
}

Task* Engine::take_above(PlaceId place, std::int32_t above, std::size_t& left) {
  const std::lock_guard lock(mutex_);
  ReadyQueue& ready = *ready_[static_cast<std::size_t>(place.value())];
  left = ready.count();
  if (ready.top() <= above) return nullptr;
  running_.fetch_add(1, std::memory_order_relaxed);
  --left;
  return ready.pop();
}

void Engine::stage(Task& task) {
  {
    const std::lock_guard lock(mutex_);
    staged_.push(task);
    update_ready_hint();
  }
  cpu_bell.ring();
}

void Engine::finished_locked(Task& task) {
  running_.fetch_sub(1, std::memory_order_relaxed);
  if (lending_) lending_->finished(task);
  static_cast<JobRecord*>(task.job->context)
      ->tasks_finished.fetch_add(1, std::memory_order_relaxed);
  protocol_.task_finished(task, actions_);
}

std::int64_t Engine::tasks_lent() {
  const std::lock_guard lock(mutex_);
  return lending_ ? lending_->lent() : 0;
}

std::int32_t Engine::tasks_divided() {
  const std::lock_guard lock(mutex_);
  return fine_.divided_count();
}

void Engine::finish(std::span<Task* const> finished) {
  Wakes wakes;
  {
    const std::lock_guard lock(mutex_);
    for (Task* task : finished) finished_locked(*task);
    wakes = apply();
    update_ready_hint();
  }
  ring(wakes);
}

void Engine::copies_finished(std::span<const protocol::CopyAction> copies) {
  Wakes wakes;
  {
    const std::lock_guard lock(mutex_);
    for (const protocol::CopyAction& copy : copies) protocol_.copy_finished(copy, actions_);
    wakes = apply();
    update_ready_hint();
  }
  ring(wakes);
}

void Engine::deliver(const std::function<void(protocol::Protocol&, Actions&)>& events) {
  Wakes wakes;
  {
    const std::lock_guard lock(mutex_);
    events(protocol_, actions_);
    wakes = apply();
    update_ready_hint();
  }
  ring(wakes);
}

std::vector<protocol::CopyAction> Engine::take_copies() {
  const std::lock_guard lock(mutex_);
  return std::exchange(copies_, {});
}

Outbox Engine::take_outbox() {
  const std::lock_guard lock(mutex_);
  return std::exchange(outbox_, {});
}

// ---- generation ------------------------------------------------------------------------------

/// True while a job submitted before `job` that uses one of its matrices is still being walked: so
/// each tile's list has the order of submission on every node. With the lock.
bool Engine::is_behind(const JobRecord& job) const {
  for (const auto& before : jobs_) {
    if (before.get() == &job) return false;
    if (before->handle->generation_ended) continue;
    for (const protocol::MatrixId m : before->spec.matrices) {
      if (std::find(job.spec.matrices.begin(), job.spec.matrices.end(), m) !=
          job.spec.matrices.end()) {
        return true;
      }
    }
  }
  return false;
}

/// The next program, in turn, that may walk on. With the lock.
JobRecord* Engine::next_program() {
  for (std::size_t turn = 0; turn < jobs_.size(); ++turn) {
    const std::size_t index = (next_generating_ + turn) % jobs_.size();
    JobRecord& job = *jobs_[index];
    if (job.handle->generation_ended || job.waits_for_window) continue;
    if (job.external && !job.stream_ended) continue;
    if (is_behind(job)) continue;
    next_generating_ = index + 1;
    return &job;
  }
  return nullptr;
}

/// Whether the workers need more tasks of the job soon, whatever waits for what among those that
/// there are. With the lock.
bool Engine::is_urgent(const JobRecord& job) const {
  return options_.oversubscribed || !options_.devices.empty() || jobs_.size() > 1 ||
         job.handle->unfinished < ahead_each * options_.cpu_workers;
}

/// The next program that may walk on, and how far. With the lock.
Engine::Turn Engine::next_turn() {
  JobRecord* const job = next_program();
  if (job == nullptr) return {};
  return {job, job->handle->window - job->handle->unfinished};
}

/// A program runs without the lock: nobody but the generation thread has to do with it, and its job
/// does not end before it is told that the program has.
Engine::Walked Engine::generate(trace::ThreadTrace& trace) {
  if (turn_.job == nullptr) {
    const std::lock_guard lock(mutex_);
    turn_ = next_turn();
    if (turn_.job == nullptr) {
      return window_waiters_ > 0 ? Walked::window_full : Walked::no_program;
    }
  }
  JobRecord& job = *turn_.job;
  const bool have_work = ready_hint() >= static_cast<std::size_t>(options_.cpu_workers);
  if (!job.external && trace.enabled() && !job.generated_name) {
    job.generated_name = recorder_.intern(trace::generated_name(job.id.value()));
  }
  const std::optional<trace::NameId> name = job.generated_name;
  std::optional<Error> error;
  bool goes_on = false;
  if (job.batch) {
    job.batch->begin(have_work ? quantum_for_busy : quantum_for_idle, turn_.room);
    goes_on = walk_on(job, error);
  }
  Wakes wakes;
  std::uint64_t generated = 0;
  bool is_urgent_now = true;
  {
    const std::lock_guard lock(mutex_);
    if (job.batch) job.batch->hand_over(protocol_, actions_);
    if (error) fail_job(job, *error);
    wakes.message |= error.has_value();
    generated = job.handle->next_order;
    if (!goes_on) {
      protocol_.end_generation(*job.handle, actions_);
      wakes.generation = true;  // others may have waited for it
    } else {
      wait_for_window(job);
      is_urgent_now = is_urgent(job);
    }
    wakes.merge(apply());  // may complete the job
    turn_ = next_turn();
    update_ready_hint();
  }
  if (name) {
    trace.counter(*name, host_place, trace::now_ns(), static_cast<std::int64_t>(generated));
  }
  ring(wakes);
  if (is_urgent_now) return Walked::some;
  if (have_work) return Walked::enough;
  mutex_.let_others_in();
  return Walked::some;
}

/// Resumes a job's program without the lock; false once it has ended. What it throws is `error`,
/// and ends the program: other nodes end it at the same call, if theirs throws there too; if not,
/// they wait for this node's tasks until the watchdog ends the run.
bool Engine::walk_on(JobRecord& job, std::optional<Error>& error) {
  try {
    return job.program.resume();
  } catch (const std::exception& thrown) {
    error = as_error(thrown);
  } catch (...) {
    error = Error(ErrorCode::internal, "an exception of unknown type");
  }
  return false;
}

/// Blocks a user's thread until its stream may insert: there is room, and the jobs before it are
/// walked.
void Engine::wait_for_turn(JobRecord& job) {
  for (;;) {
    const Doorbell::Ticket ticket = room_bell_.ticket();
    {
      const std::lock_guard lock(mutex_);
      if (failure_.has_value()) throw Error(failure_->code(), failure_->what());
      require(!stopping(), "'{}' inserts a task after its node was stopped", job.name);
      if (!job.handle->window_is_full() && !is_behind(job)) return;
      wait_for_window(job);
    }
    room_bell_.wait(ticket);
  }
}

}  // namespace heddle
