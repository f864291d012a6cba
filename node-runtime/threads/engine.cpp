#include "node-runtime/threads/engine.hpp"

#include <fmt/core.h>
#include <utility>

#include "base/assert.hpp"
#include "node-runtime/threads/tile_operands.hpp"
#include "node-runtime/trace/counter_names.hpp"

namespace heddle {

using protocol::Actions;
using protocol::BlockRef;
using protocol::Task;

Engine::Engine(const EngineOptions& options, TileStore& store, trace::Recorder& recorder)
    : bells(options.devices.size()),
      options_(options),
      store_(store),
      recorder_(recorder),
      link_(std::make_shared<EngineLink>(*this)),
      depth_name_(recorder.intern(trace::ready_tasks_name)),
      kernel_watch_(static_cast<std::size_t>(options.cpu_workers) + options.devices.size()),
      executor_(store, recorder, kernel_watch_, *this, options.worker_seconds),
      jobs_(*this),
      mutex_(options.oversubscribed ? SpinMutex::patience_on_shared_cores
                                    : SpinMutex::patience_with_cores),
      protocol_({.node = options.node,
                 .places = static_cast<std::int32_t>(options.devices.size()) + 1,
                 .passes_on_arriving = options.node_count > 1}),
      reader_tree_(ReaderTree::of(options.readers, options.hosts)),
      scheduler_(options.devices.size() + 1, options.cpu_workers, options.worker_distances,
                 make_lending(), counters_) {
  for (std::size_t d = 0; d < options_.devices.size(); ++d) {
    const auto ready = [this, d](DeviceCache::Requester requester) {
      switch (requester) {
        case DeviceCache::Requester::manager:
          return bells.devices[d]->ring();
        case DeviceCache::Requester::copies:
          return bells.copy.ring();
        case DeviceCache::Requester::host:
          return bells.cpu.ring();
      }
    };
    store_.cache(PlaceId{static_cast<std::int32_t>(d) + 1}).tell(ready, [this] {
      bells.copy.ring();
    });
  }
}

std::unique_ptr<Lending> Engine::make_lending() {
  if (!options_.lending || options_.devices.empty()) return nullptr;
  return std::make_unique<Lending>(*options_.lending, store_, options_.devices,
                                   options_.cpu_workers, fine_graphs_);
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
  const protocol::MatrixId id = next_matrix();
  matrix.pools = store_.add_matrix(id, std::move(table));
  const std::lock_guard lock(mutex_);
  const protocol::MatrixId given = protocol_.add_matrix(std::move(matrix));
  HEDDLE_CHECK(given == id, "matrices are made by one thread at a time");
  return id;
}

protocol::MatrixId Engine::next_matrix() {
  const std::lock_guard lock(mutex_);
  return protocol_.next_matrix();
}

void Engine::skip_matrix() {
  const std::lock_guard lock(mutex_);
  protocol_.skip_matrix();
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

// ---- effects ---------------------------------------------------------------------------------

void Engine::apply(Effects& effects) {
  Actions& a = actions_;
  Wakes& wakes = effects.wakes;
  // First: a task that is ready now may be about to write the same block again.
  for (const BlockRef block : a.freed) store_.discard(block);
  scheduler_.make_ready(a.ready, wakes);
  if (!a.copies.empty()) {
    copies_.insert(copies_.end(), a.copies.begin(), a.copies.end());
    wakes.copy = true;
  }
  if (!a.asks.empty() || !a.grants.empty() || !a.offers.empty() || !a.sends.empty()) {
    outbox_.add(a);
    wakes.message = true;
  }
  for (protocol::Job* job : a.drained) drained(*job, effects);
  a.clear();
  if (table_.reopen_windows()) wakes.generation = true;
  counters_.event();
}

void Engine::carry_out(Effects& effects) {
  for (Remains& remains : effects.remains) end(remains);
  bells.ring(effects.wakes);
}

// ---- tasks -----------------------------------------------------------------------------------

void Engine::finished_locked(Task& task) {
  counters_.task_ended();
  scheduler_.finished(task);
  job_of(task).tasks_finished.fetch_add(1, std::memory_order_relaxed);
  protocol_.task_finished(task, actions_);
}

HostWork Engine::finish_and_take(const HostWork& finished, std::int32_t worker) {
  Effects effects;
  HostWork next;
  if (finished.task != nullptr) protocol::Protocol::expect_finished(*finished.task);
  {
    std::unique_lock lock(mutex_);
    Wakes& wakes = effects.wakes;
    Task* completed = finished.task;
    if (finished.fine) {
      DividedTask& divided = *finished.fine.of;
      const FineScheduler::Finished result = scheduler_.fine().finish(finished.fine);
      wakes.cpu += static_cast<std::size_t>(result.ready);
      if (result.completes_task) {
        completed = divided.task;
        if (recorder_.enabled()) {
          lock.unlock();  // recording may allocate
          executor_.record_divided(divided);
          lock.lock();
        }
        scheduler_.fine().close(divided);
      }
    }
    if (completed != nullptr) {
      finished_locked(*completed);
      apply(effects);
    }
    scheduler_.lend(wakes);
    next = scheduler_.take_for_host(worker);
    if (next && wakes.cpu > 0) --wakes.cpu;  // the caller takes one itself
    scheduler_.publish();
  }
  carry_out(effects);
  return next;
}

HostWork Engine::divide(const HostWork& work, std::int32_t worker, trace::ThreadTrace& trace) {
  Task& task = *work.task;
  DividedTask& divided = *work.place;
  const TaskTiles tiles(store_, task);
  const auto parameters = parameters_of(task);
  const CaseKey key = CaseKey::of(kernel_of(task), {tiles.span(), parameters});
  const FineGraph& graph = fine_graphs_.of(key.what(), job_of(task).spec.fine);
  HostWork next;
  if (graph.size() <= 1) {
    const std::lock_guard lock(mutex_);
    scheduler_.fine().give_back(divided);
    next.task = &task;
    return next;
  }
  executor_.divide(divided, task, graph, trace);
  int others = 0;
  {
    const std::lock_guard lock(mutex_);
    FineScheduler& fine = scheduler_.fine();
    fine.open(divided, worker);
    others = fine.ready_count() - 1;
    next.fine = fine.take(worker);
    scheduler_.publish();
  }
  // As many as can help: those that work look here before they sleep.
  bells.wake_workers(static_cast<std::size_t>(others));
  return next;
}

Task* Engine::take_above(PlaceId place, std::int32_t above, std::size_t& left) {
  const std::lock_guard lock(mutex_);
  return scheduler_.take_for_device(place, above, left);
}

void Engine::stage(Task& task) {
  {
    const std::lock_guard lock(mutex_);
    scheduler_.stage(task);
    scheduler_.publish();
  }
  bells.cpu.ring();
}

void Engine::finish(std::span<Task* const> finished) {
  Effects effects;
  {
    const std::lock_guard lock(mutex_);
    for (Task* task : finished) finished_locked(*task);
    apply(effects);
    scheduler_.publish();
  }
  carry_out(effects);
}

void Engine::copies_finished(std::span<const protocol::CopyAction> copies) {
  deliver([&](protocol::Protocol& protocol, Actions& actions) {
    for (const protocol::CopyAction& copy : copies) protocol.copy_finished(copy, actions);
  });
}

std::vector<protocol::CopyAction> Engine::take_copies() {
  const std::lock_guard lock(mutex_);
  return std::exchange(copies_, {});
}

Outbox Engine::take_outbox() {
  const std::lock_guard lock(mutex_);
  return std::exchange(outbox_, {});
}

// ---- the end ---------------------------------------------------------------------------------

void Engine::fail(const Error& error) {
  std::vector<std::shared_ptr<JobRecord>> waiting;
  {
    const std::lock_guard lock(mutex_);
    // Under the lock, with the outbox: a progress thread that sees the failure tells it.
    if (!failure_.set(error)) return;
    outbox_.failure = error.what();
    outbox_.failure_elsewhere = error.code() == ErrorCode::communication;
    waiting = table_.all();
    // What is ready still goes through the threads; its kernels need not run.
    for (const auto& job : waiting) job->cancelled.store(true, std::memory_order_relaxed);
  }
  for (const auto& job : waiting) {
    const std::lock_guard lock(job->mutex);
    job->ended.notify_all();
  }
  bells.room.ring_all();
  bells.message.ring_all();
}

void Engine::fail_with(int node, const std::string& why, bool elsewhere) {
  std::string text = elsewhere ? why : fmt::format("node {} failed: {}", node, why);
  std::string here;
  {
    const std::lock_guard lock(mutex_);
    here = protocol_.blockage();
  }
  if (!here.empty()) text += fmt::format("\n  node {} then: {}", options_.node.value(), here);
  fail(Error(ErrorCode::communication, text));
}

void Engine::stop() {
  stopping_.store(true, std::memory_order_release);
  bells.ring_all();
}

std::string Engine::blockage_text() {
  const std::lock_guard lock(mutex_);
  std::string text = protocol_.blockage();
  return text.empty() ? "no task is left on this node; others have not said that they are done"
                      : text;
}

std::string Engine::failed_jobs() {
  const std::lock_guard lock(mutex_);
  return table_.failures();
}

std::int64_t Engine::tasks_lent() {
  const std::lock_guard lock(mutex_);
  return scheduler_.lending() == nullptr ? 0 : scheduler_.lending()->lent();
}

std::int32_t Engine::tasks_divided() {
  const std::lock_guard lock(mutex_);
  return scheduler_.fine().divided_count();
}

bool Engine::is_valid() {
  const std::lock_guard lock(mutex_);
  return scheduler_.is_valid() && table_.is_valid() && actions_.ready.empty() &&
         failure_.is_valid() && protocol_.is_valid();
}

}  // namespace heddle
