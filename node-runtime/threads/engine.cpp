#include "node-runtime/threads/engine.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <iterator>

#include "base/assert.hpp"
#include "base/units.hpp"
#include "node-runtime/threads/plan_listener.hpp"
#include "node-runtime/threads/tile_operands.hpp"
#include "node-runtime/threads/trace_events.hpp"

namespace heddle {

using protocol::Actions;
using protocol::BlockRef;
using protocol::Task;

namespace {

constexpr std::int32_t window_hysteresis = 8;  // a full window is refilled from 7/8 on
constexpr std::int32_t generation_quantum = 16;

}  // namespace

Engine::Engine(const EngineOptions& options, TileStore& store, trace::Recorder& recorder)
    : options_(options),
      store_(store),
      recorder_(recorder),
      protocol_({options.node, static_cast<std::int32_t>(options.devices.size()) + 1}),
      depth_name_(recorder.intern("ready tasks")) {
  for (std::size_t p = 0; p <= options_.devices.size(); ++p) {
    ready_.push_back(std::make_unique<ReadyQueue>());
    if (p > 0) device_bells.push_back(std::make_unique<Doorbell>());
  }
}

Engine::~Engine() {
  if (failed()) protocol_.abandon();
}

// ---- matrices --------------------------------------------------------------------------------

protocol::MatrixId Engine::add_matrix(TileTable table) {
  protocol::MatrixOptions matrix;
  matrix.tile_count = static_cast<std::int32_t>(table.shapes.size());
  matrix.temporary = table.temporary;
  matrix.spare_count = table.temporary || !table.wrapped.empty() ? 0 : table.spare_count;
  TileClasses classes = classes_of(table.shapes);
  matrix.classes = std::move(classes.of_tile);
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

// ---- jobs ------------------------------------------------------------------------------------

std::shared_ptr<JobRecord> Engine::prepare(JobSpec spec) {
  auto job = std::make_shared<JobRecord>();
  job->spec = std::move(spec);
  protocol::PoolPlan plan(options_.node, store_.places());
  for (const protocol::MatrixId m : job->spec.temporaries) plan.set_temporary(m);
  PlanListener listener(plan);
  TaskStream stream(listener, options_.node);
  Program walk = job->spec.program(stream);
  while (walk.resume()) {
  }
  job->blocks_minimum = plan.minimum();
  job->tasks_planned = plan.tasks();
  return job;
}

void Engine::start(const std::shared_ptr<JobRecord>& job) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.has_value()) throw *failure_;
    begin(*job);
    job->stream.emplace(*this, *job, options_.node);
    job->program = job->spec.program(*job->stream);
    jobs_.push_back(job);
  }
  generation_bell.ring();
}

std::shared_ptr<JobRecord> Engine::open_stream(JobSpec spec, std::int32_t blocks_minimum) {
  auto job = std::make_shared<JobRecord>();
  job->spec = std::move(spec);
  job->external = true;
  job->blocks_minimum.assign(static_cast<std::size_t>(store_.places()), blocks_minimum);
  const std::lock_guard lock(mutex_);
  begin(*job);
  job->stream.emplace(*this, *job, options_.node);
  job->stream->blocking_ = true;
  jobs_.push_back(job);
  return job;
}

std::int32_t Engine::pool_capacity(PlaceId place, std::int32_t minimum) const {
  if (minimum == 0) return 0;
  return minimum + (place == host_place ? std::min(options_.extra_blocks_max, 2 * minimum + 16)
                                        : std::min(options_.extra_blocks_device_max, minimum + 4));
}

/// Blocks beyond the planned minimum, so that data can come ahead of need: as many as are useful
/// and half of what is left allows.
std::int32_t Engine::extra_blocks(PlaceId place, std::int32_t minimum, std::size_t block_bytes) {
  if (minimum == 0) return 0;
  const std::int64_t useful =
      place == host_place
          ? std::min<std::int64_t>(options_.extra_blocks_max, 2 * std::int64_t{minimum} + 16)
          : std::min<std::int64_t>(options_.extra_blocks_device_max, std::int64_t{minimum} + 4);
  const std::int64_t left = store_.blocks_available(place, block_bytes) - minimum;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(left / 2, 0, useful));
}

/// Reserves the job's pools and makes it known to the protocol; with the lock.
void Engine::begin(JobRecord& job) {
  std::size_t block_bytes = 0;
  for (const protocol::MatrixId m : job.spec.matrices) {
    block_bytes = std::max(block_bytes, store_.largest_tile_bytes(m));
  }
  protocol::JobOptions options;
  options.window = options_.window;
  try {
    for (std::int32_t p = 0; p < store_.places(); ++p) {
      const std::int32_t minimum = job.blocks_minimum[static_cast<std::size_t>(p)];
      const std::int32_t extra = extra_blocks(PlaceId{p}, minimum, block_bytes);
      const std::int32_t pool = store_.add_job_pool(PlaceId{p}, block_bytes, minimum + extra);
      job.pools.push_back(pool);
      options.pools.push_back({pool, minimum + extra, minimum});
    }
  } catch (...) {
    for (const std::int32_t pool : job.pools) store_.remove_job_pool(pool);
    throw;
  }
  protocol::Job& handle = protocol_.begin_job(options);
  handle.context = &job;
  active_jobs_.fetch_add(1, std::memory_order_relaxed);
  job.handle = &handle;
  job.id = handle.id;
  job.low_water = options.window - std::max(1, options.window / window_hysteresis);
}

void Engine::end_stream(JobRecord& job) {
  {
    const std::lock_guard lock(mutex_);
    job.stream_ended = true;  // the generation thread ends it in its turn
  }
  generation_bell.ring();
}

void Engine::cancel(JobRecord& job) {
  {
    const std::lock_guard lock(mutex_);
    if (job.handle == nullptr) return;
    job.cancelled.store(true, std::memory_order_relaxed);
    protocol_.cancel(*job.handle);
    if (options_.node_count > 1) {
      outbox_.cancelled.push_back(
          {job.id, static_cast<std::int32_t>(JobResult::Status::cancelled), 0, 0});
    }
    if (job.result.status == JobResult::Status::done) {
      job.result.status = JobResult::Status::cancelled;
    }
  }
  message_bell.ring();
}

void Engine::numerical_failure(JobRecord& job, std::int64_t info, double pivot) {
  {
    const std::lock_guard lock(mutex_);
    if (job.handle == nullptr) return;
    job.cancelled.store(true, std::memory_order_relaxed);
    protocol_.cancel(*job.handle);
    JobResult& result = job.result;
    if (result.status != JobResult::Status::numerical_failure || info < result.info) {
      result.status = JobResult::Status::numerical_failure;
      result.info = info;
      result.pivot = pivot;
    }
    if (options_.node_count > 1) {
      outbox_.cancelled.push_back({job.id, static_cast<std::int32_t>(result.status), info, pivot});
    }
  }
  message_bell.ring();
}

void Engine::cancel_from_elsewhere(const JobVerdict& verdict) {
  const std::lock_guard lock(mutex_);
  for (const auto& job : jobs_) {
    if (job->id != verdict.job || job->handle == nullptr) continue;
    job->cancelled.store(true, std::memory_order_relaxed);
    protocol_.cancel(*job->handle);
  }
}

void Engine::wait(JobRecord& job) {
  std::unique_lock lock(job.mutex);
  std::uint64_t events = event_count();
  auto since = std::chrono::steady_clock::now();
  while (!job.is_done && !failed()) {
    job.ended.wait_for(lock, std::chrono::milliseconds(100));
    if (job.is_done || failed()) break;
    const auto now = std::chrono::steady_clock::now();
    if (const std::uint64_t seen = event_count(); seen != events || running_hint() > 0) {
      events = seen;
      since = now;
    } else if (options_.watchdog_seconds > 0 &&
               std::chrono::duration<double>(now - since).count() > options_.watchdog_seconds) {
      lock.unlock();
      fail(Error(ErrorCode::internal,
                 fmt::format("node {}: nothing has advanced for {} s; {}", options_.node.value(),
                             options_.watchdog_seconds, blockage())));
      lock.lock();
    }
  }
  if (!job.is_done) {
    lock.unlock();
    throw *failure();
  }
}

/// All nodes agree; wakes the waiters and gives the pools back. With the lock.
void Engine::complete(JobRecord& job, const JobResult& result, Wakes& wakes) {
  job.counters = job.handle->counters;
  protocol_.forget(*job.handle);
  active_jobs_.fetch_sub(1, std::memory_order_relaxed);
  job.handle = nullptr;
  for (const std::int32_t pool : job.pools) store_.remove_job_pool(pool);
  wakes.remains.push_back({nullptr, std::move(job.spec), std::move(job.program)});
  wakes.generation = true;
  const std::lock_guard lock(job.mutex);
  job.result = result;
  job.is_done = true;
  job.ended.notify_all();
}

void Engine::drained(protocol::Job& handle, Wakes& wakes) {
  auto& job = *static_cast<JobRecord*>(handle.context);
  job.is_local_done = true;
  if (handle.cancelled && job.result.status == JobResult::Status::done) {
    job.result.status = JobResult::Status::cancelled;
  }
  const JobResult result = job.result;
  if (options_.node_count > 1) {
    outbox_.done.push_back(
        {job.id, static_cast<std::int32_t>(result.status), result.info, result.pivot});
    wakes.message = true;
    return;
  }
  const auto found =
      std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& j) { return j.get() == &job; });
  std::shared_ptr<JobRecord> record = *found;
  jobs_.erase(found);
  complete(job, result, wakes);
  wakes.remains.back().record = std::move(record);
}

void Engine::job_ended(const JobVerdict& verdict) {
  Wakes wakes;
  std::shared_ptr<JobRecord> job;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(jobs_.begin(), jobs_.end(),
                                    [&](const auto& j) { return j->id == verdict.job; });
    HEDDLE_CHECK(found != jobs_.end(), "job {} ended twice", verdict.job.value());
    job = *found;
    jobs_.erase(found);
    JobResult result;
    result.status = static_cast<JobResult::Status>(verdict.status);
    result.info = verdict.info;
    result.pivot = verdict.pivot;
    complete(*job, result, wakes);
  }
  ring(wakes);
}

void Engine::stop() {
  stopping_.store(true, std::memory_order_release);
  Wakes wakes;
  wakes.all = true;
  ring(wakes);
}

void Engine::fail(const Error& error) {
  std::vector<std::shared_ptr<JobRecord>> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (failure_.has_value()) return;
    failure_ = error;
    outbox_.failure = error.what();
    outbox_.failure_elsewhere = error.code() == ErrorCode::communication;
    waiting.assign(jobs_.begin(), jobs_.end());
    // Release: whoever sees `failed` sees the reason.
    failed_.store(true, std::memory_order_release);
  }
  for (const auto& job : waiting) {
    const std::lock_guard lock(job->mutex);
    job->ended.notify_all();
  }
  room_bell_.ring_all();
  message_bell.ring_all();
}

void Engine::fail_with(int node, const std::string& why, bool elsewhere) {
  std::string text = elsewhere ? why : fmt::format("node {} failed: {}", node, why);
  const std::string here = blockage();
  if (!here.empty()) text += fmt::format("\n  node {} then: {}", options_.node.value(), here);
  fail(Error(ErrorCode::communication, text));
}

std::optional<Error> Engine::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::string Engine::blockage() {
  const std::lock_guard lock(mutex_);
  return protocol_.blockage().text;
}

std::int64_t Engine::renamings() {
  const std::lock_guard lock(mutex_);
  return protocol_.renamings();
}

std::size_t Engine::protocol_bytes() {
  const std::lock_guard lock(mutex_);
  return protocol_.bytes();
}

// ---- events ----------------------------------------------------------------------------------

Engine::Wakes Engine::apply() {
  Wakes wakes;
  Actions& a = actions_;
  for (Task* task : a.ready) {
    const auto place = static_cast<std::size_t>(task->place.value());
    ready_[place]->push(*task);
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
  if (!a.grants.empty() || !a.sends.empty()) {
    outbox_.grants.insert(outbox_.grants.end(), a.grants.begin(), a.grants.end());
    outbox_.sends.insert(outbox_.sends.end(), a.sends.begin(), a.sends.end());
    wakes.message = true;
  }
  // Jobs drained by this event: completing one changes no other, so the list is stable.
  for (protocol::Job* job : a.drained) drained(*job, wakes);
  a.clear();
  if (generation_waits_) {
    for (const auto& job : jobs_) {
      if (job->waits_for_window && job->handle->unfinished <= job->low_water) {
        job->waits_for_window = false;
        wakes.generation = true;
      }
    }
  }
  ready_hint_.store(ready_[0]->count(), std::memory_order_relaxed);
  event_count_.fetch_add(1, std::memory_order_relaxed);
  return wakes;
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

void Engine::ring(const Wakes& wakes) {
  if (wakes.all) {
    cpu_bell.ring_all();
    generation_bell.ring_all();
    copy_bell.ring_all();
    message_bell.ring_all();
    room_bell_.ring_all();
    for (const auto& bell : device_bells) bell->ring_all();
    return;
  }
  if (wakes.cpu > 0) cpu_bell.ring(static_cast<int>(wakes.cpu));
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

Task* Engine::finish_and_take(Task* finished, PlaceId place) {
  Wakes wakes;
  Task* next = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (finished != nullptr) {
      running_.fetch_sub(1, std::memory_order_relaxed);
      static_cast<JobRecord*>(finished->job->context)
          ->tasks_finished.fetch_add(1, std::memory_order_relaxed);
      protocol_.task_finished(*finished, actions_);
      wakes = apply();
    }
    next = ready_[static_cast<std::size_t>(place.value())]->pop();
    if (next != nullptr) {
      running_.fetch_add(1, std::memory_order_relaxed);
      if (place == host_place) {
        if (wakes.cpu > 0) --wakes.cpu;  // the caller takes one itself
        ready_hint_.store(ready_[0]->count(), std::memory_order_relaxed);
      }
    }
  }
  ring(wakes);
  return next;
}

void Engine::finish(std::span<Task* const> finished) {
  Wakes wakes;
  {
    const std::lock_guard lock(mutex_);
    for (Task* task : finished) {
      running_.fetch_sub(1, std::memory_order_relaxed);
      static_cast<JobRecord*>(task->job->context)
          ->tasks_finished.fetch_add(1, std::memory_order_relaxed);
      protocol_.task_finished(*task, actions_);
    }
    wakes = apply();
  }
  ring(wakes);
}

void Engine::copies_finished(std::span<const protocol::CopyAction> copies) {
  Wakes wakes;
  {
    const std::lock_guard lock(mutex_);
    for (const protocol::CopyAction& copy : copies) protocol_.copy_finished(copy, actions_);
    wakes = apply();
  }
  ring(wakes);
}

void Engine::deliver(const std::function<void(protocol::Protocol&, Actions&)>& events) {
  Wakes wakes;
  {
    const std::lock_guard lock(mutex_);
    events(protocol_, actions_);
    wakes = apply();
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

// ---- kernels on the host ---------------------------------------------------------------------

void Engine::execute_on_host(Task& task, trace::ThreadTrace& trace) {
  auto& job = *static_cast<JobRecord*>(task.job->context);
  const std::int64_t start = trace::now_ns();
  if (!job.cancelled.load(std::memory_order_relaxed)) {
    const TaskTiles tiles(store_, task);
    for (std::uint8_t i = 0; i < task.operand_count; ++i) {
      const protocol::Operand& operand = task.operands[i];
      if (!operand.copy_from.valid())
        continue;  // else it was renamed, and goes on from the old content
      copy_tile(store_.view(operand.tile, operand.copy_from), tiles[i]);
    }
    const auto parameters = std::bit_cast<KernelParameters>(task.work.parameters);
    const Kernel& kernel = *static_cast<const Kernel*>(task.work.kernel);
    const std::int64_t info = kernel.host({tiles.span(), parameters});
    if (info > 0) {
      numerical_failure(job, task.work.info_base + info,
                        tiles[0].data[failing_element(tiles[0], task, info)]);
    }
  }
  const std::int64_t end = trace::now_ns();
  record_task(trace, task, start, end);
  trace.counter(depth_name_, host_place, end, static_cast<std::int64_t>(ready_hint()));
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

Engine::Walked Engine::generate() {
  Wakes wakes;
  {
    const std::lock_guard lock(mutex_);
    generation_waits_ = false;
    JobRecord* job = next_program();
    if (job == nullptr) {
      generation_waits_ = true;
      const bool full = std::any_of(jobs_.begin(), jobs_.end(),
                                    [](const auto& waiting) { return waiting->waits_for_window; });
      return full ? Walked::window_full : Walked::no_program;
    }
    job->stream->quantum_left_ = generation_quantum;
    if (job->external || !job->program.resume()) {
      protocol_.end_generation(*job->handle, actions_);
      wakes.generation = true;  // others may have waited for it
    } else if (job->handle->window_is_full()) {
      job->waits_for_window = true;
      generation_waits_ = true;
    }
    wakes.merge(apply());
  }
  ring(wakes);
  return Walked::some;
}

/// Blocks a user's thread until its stream may insert: there is room, and the jobs before it are
/// walked.
void Engine::wait_for_turn(JobRecord& job) {
  for (;;) {
    const Doorbell::Ticket ticket = room_bell_.ticket();
    {
      const std::lock_guard lock(mutex_);
      if (failure_.has_value()) throw *failure_;
      if (job.handle->window_is_full()) {
        job.waits_for_window = true;
        generation_waits_ = true;
      } else if (!is_behind(job)) {
        return;
      }
    }
    room_bell_.wait(ticket);
  }
}

void Engine::insert_locked(JobRecord& job, const protocol::Work& work, std::int32_t priority,
                           std::span<const protocol::Access> accesses) {
  protocol_.append(*job.handle, work, priority, accesses, actions_);
}

}  // namespace heddle
