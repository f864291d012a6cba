#include <algorithm>
#include <fmt/core.h>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/require.hpp"
#include "base/waking_time.hpp"
#include "node-runtime/protocol/pool_plan.hpp"
#include "node-runtime/scheduling/pool_size.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/threads/plan_listener.hpp"
#include "node-runtime/trace/counter_names.hpp"

/// The engine's jobs: how they are planned, begun, cancelled, waited for and agreed to be over, and
/// how a node fails.
namespace heddle {
namespace {

/// A stream whose tasks are not known yet uses these beside twice what it needs at least.
constexpr std::int32_t blocks_soon = 16;

JobVerdict verdict_of(const JobRecord& job) {
  const JobResult& result = job.result;
  return {job.id,      static_cast<std::int32_t>(result.status),
          result.info, result.pivot,
          result.code, result.error};
}

/// What a node says of a job that it begins, so that another order on another node is noticed
/// (FNV-1a).
std::uint64_t fingerprint_of(const JobRecord& job) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  for (const char c : job.name) add(static_cast<unsigned char>(c));
  for (const protocol::MatrixId m : job.spec.matrices) {
    add(static_cast<std::uint64_t>(m.value()));
  }
  add(static_cast<std::uint64_t>(job.spec.fine));
  add(job.external ? 1 : 0);
  return hash;
}

}  // namespace

bool is_worse(const JobResult& a, const JobResult& b) {
  if (a.status != b.status) return a.status > b.status;
  return a.status == JobResult::Status::numerical_failure && a.info < b.info;
}

JobResult result_of(const JobVerdict& verdict) {
  HEDDLE_CHECK(
      verdict.status >= 0 && verdict.status <= static_cast<std::int32_t>(JobResult::Status::failed),
      "job {} ended with status {}", verdict.job.value(), verdict.status);
  return {static_cast<JobResult::Status>(verdict.status), verdict.info, verdict.pivot,
          verdict.error, verdict.code};
}

JobRecord::~JobRecord() {
  if (step.load(std::memory_order_acquire) != Step::reserved) return;
  if (const auto engine = link->try_use()) engine->give_pools_back(*this);
}

std::shared_ptr<JobRecord> Engine::prepare(JobSpec spec) {
  require(static_cast<bool>(spec.program), "job '{}' has no program", spec.name);
  auto job = std::make_shared<JobRecord>(link_);
  job->name = spec.name;
  job->spec = std::move(spec);
  protocol::PoolPlan plan(options_.node, store_.places());
  for (const protocol::MatrixId m : job->spec.temporaries) plan.set_temporary(m);
  PlanListener listener(plan);
  // A job that is only planned, and never runs, has matrices that nobody has made.
  const bool may_run = std::ranges::all_of(
      job->spec.matrices, [&](protocol::MatrixId id) { return store_.has_matrix(id); });
  if (job->spec.fine > 0 && may_run) {
    listener.find_divided(options_.node, job->divided_cases.emplace(),
                          [this](protocol::TileId tile) { return shape_of(tile); });
  }
  TaskStream stream(listener, options_.node, &job->spec);
  Program walk = job->spec.program(stream);
  while (walk.resume()) {
  }
  job->blocks_minimum = plan.minimum();
  job->tasks_planned = plan.tasks();
  job->host_takes = plan.host_takes();
  return job;
}

OperandShape Engine::shape_of(protocol::TileId tile) const {
  const TileShape shape = store_.shape(tile);
  return {shape.rows, shape.columns};
}

/// What a job that will run needs to know beforehand.
void Engine::look_ahead(JobRecord& job) {
  if (options_.path_costs) {
    job.priorities = path_priorities(
        job.spec.program, options_.node, options_.node_count,
        [this](protocol::TileId tile) { return shape_of(tile); }, *options_.path_costs,
        ReadyQueue::levels);
    // Its measure was the program's priorities.
    job.spec.priority_span = std::numeric_limits<std::int32_t>::max();
  }
  if (job.spec.fine > 0) {
    HEDDLE_CHECK(job.divided_cases.has_value(), "job '{}' was planned without its matrices",
                 job.spec.name);
    const auto may_come = [this](const KernelCase& what, PlaceId device) {
      return lending_ && lending_->may_lend(what, device);
    };
    const std::int32_t largest = fine_graphs_.prepare(*job.divided_cases, job.spec.fine, may_come);
    const std::lock_guard lock(mutex_);
    fine_.reserve(largest);
  }
}

void Engine::reserve(JobRecord& job) {
  require(job.step.load(std::memory_order_acquire) == JobRecord::Step::planned,
          "Job::reserve: job '{}' has its memory; reserve() comes once, before start()", job.name);
  look_ahead(job);
  reserve_pools(job, Pages::now);
  job.step.store(JobRecord::Step::reserved, std::memory_order_release);
}

/// What other nodes have begun waits for this node's part of it (decision 011). One that has no
/// memory for its part fails, so that they end, too.
void Engine::reserve_or_fail(JobRecord& job) {
  try {
    if (!job.external) look_ahead(job);
    reserve_pools(job, Pages::soon);
  } catch (const Error& error) {
    if (options_.node_count > 1) fail(error);
    throw;
  }
}

void Engine::start(const std::shared_ptr<JobRecord>& job) {
  using Step = JobRecord::Step;
  const Step before = job->step.load(std::memory_order_acquire);
  require(before != Step::started, "Job::start: job '{}' was started before", job->name);
  if (before == Step::planned) reserve_or_fail(*job);
  job->step.store(Step::reserved, std::memory_order_release);  // gives its pools back if this fails
  add_job(job);
  generation_bell.ring();
}

std::shared_ptr<JobRecord> Engine::open_stream(JobSpec spec, std::int32_t blocks_minimum) {
  auto job = std::make_shared<JobRecord>(link_);
  job->name = spec.name;
  job->spec = std::move(spec);
  job->external = true;
  job->blocks_minimum.assign(static_cast<std::size_t>(store_.places()), blocks_minimum);
  reserve_or_fail(*job);
  job->step.store(JobRecord::Step::reserved, std::memory_order_release);
  add_job(job);
  return job;
}

std::int32_t Engine::useful_blocks(PlaceId place, std::int32_t minimum, bool has_temporaries,
                                   std::size_t block_bytes) const {
  const bool hands_on = has_temporaries && store_.places() == 1;
  return std::min(
      options_.extra_blocks_max,
      heddle::useful_blocks(place, minimum, options_.cpu_workers, hands_on, block_bytes));
}

std::int32_t Engine::pool_capacity(PlaceId place, std::int32_t minimum, bool has_temporaries,
                                   std::size_t block_bytes) const {
  return minimum + useful_blocks(place, minimum, has_temporaries, block_bytes);
}

/// As many as are useful and what is left allows.
std::int32_t Engine::extra_blocks(PlaceId place, std::int32_t minimum, bool has_temporaries,
                                  std::size_t block_bytes) {
  const std::int64_t left = store_.blocks_available(place, block_bytes) - minimum;
  return affordable_blocks(useful_blocks(place, minimum, has_temporaries, block_bytes), left);
}

/// Of the host's first blocks, what the job is going to write: who receives it would wait for its
/// pages.
std::vector<std::size_t> Engine::bytes_soon(const JobRecord& job, std::size_t block_bytes,
                                            std::int32_t capacity) const {
  std::vector<std::size_t> bytes;
  if (job.external) {
    const std::int32_t minimum = job.blocks_minimum.front();
    const std::int32_t blocks = 2 * minimum + blocks_soon;
    bytes.assign(static_cast<std::size_t>(blocks), block_bytes);
  }
  for (const protocol::TileId tile : job.host_takes) bytes.push_back(store_.shape(tile).bytes());
  bytes.resize(std::min(bytes.size(), static_cast<std::size_t>(capacity)));
  return bytes;
}

/// Memory for what the job copies, receives and makes on the way; all that is asked for, or none.
void Engine::reserve_pools(JobRecord& job, Pages pages) {
  std::size_t block_bytes = 0;
  for (const protocol::MatrixId m : job.spec.matrices) {
    block_bytes = std::max(block_bytes, store_.largest_tile_bytes(m));
  }
  job.pools.resize(static_cast<std::size_t>(store_.places()));
  try {
    // The host last: it takes as extra blocks what is left when devices have their backings.
    for (std::int32_t p = store_.places(); p-- > 0;) {
      const std::int32_t minimum = job.blocks_minimum[static_cast<std::size_t>(p)];
      const std::int32_t capacity =
          minimum + extra_blocks(PlaceId{p}, minimum, !job.spec.temporaries.empty(), block_bytes);
      std::vector<std::size_t> soon;
      // Cores that workers need are not spent on pages while they compute.
      const bool populates = pages == Pages::now || !options_.oversubscribed;
      if (p == host_place.value() && populates) soon = bytes_soon(job, block_bytes, capacity);
      const std::int32_t pool =
          store_.add_job_pool(PlaceId{p}, block_bytes, capacity, std::move(soon));
      job.pools[static_cast<std::size_t>(p)] = {pool, capacity, minimum};
      if (pages == Pages::now) store_.populate(pool);
    }
  } catch (...) {
    give_pools_back(job);
    throw;
  }
}

void Engine::give_pools_back(JobRecord& job) {
  for (const protocol::PoolOptions& pool : std::exchange(job.pools, {})) {
    if (pool.id != protocol::BlockRef::none) store_.remove_job_pool(pool.id);
  }
}

/// Makes a job known that has its pools.
void Engine::add_job(const std::shared_ptr<JobRecord>& job) {
  Program program;
  job->stream.emplace(*this, *job, options_.node);
  job->stream->blocking_ = job->external;
  if (!job->external) program = job->spec.program(*job->stream);
  const std::lock_guard lock(mutex_);
  if (failure_.has_value()) throw Error(failure_->code(), failure_->what());
  require(!stopping(), "job '{}' was started after its node was stopped", job->name);
  job->step.store(JobRecord::Step::started, std::memory_order_release);
  protocol::JobOptions options;
  options.window = options_.window;
  options.pools = job->pools;
  protocol::Job& handle = protocol_.begin_job(options);
  handle.context = job.get();
  active_jobs_.fetch_add(1, std::memory_order_relaxed);
  job->handle = &handle;
  job->id = handle.id;
  if (recorder_.enabled()) {
    job->generated_name = recorder_.intern(trace::generated_name(job->id.value()));
  }
  job->program = std::move(program);
  jobs_.push_back(job);
  if (options_.node_count > 1) outbox_.begun.push_back({job->id, fingerprint_of(*job)});
}

void Engine::end_stream(JobRecord& job) {
  {
    const std::lock_guard lock(mutex_);
    job.stream_ended = true;  // the generation thread ends it in its turn
  }
  generation_bell.ring();
}

/// Its kernels are skipped from now on, on all nodes. With the lock; the job is not complete.
void Engine::cancel_locked(JobRecord& job) {
  job.cancelled.store(true, std::memory_order_relaxed);
  protocol_.cancel(*job.handle);
  if (options_.node_count > 1) outbox_.cancelled.push_back(verdict_of(job));
}

void Engine::cancel(JobRecord& job) {
  {
    const std::lock_guard lock(mutex_);
    if (job.handle == nullptr) return;
    if (job.result.status == JobResult::Status::done) {
      job.result.status = JobResult::Status::cancelled;
    }
    cancel_locked(job);
  }
  message_bell.ring();
}

void Engine::numerical_failure(JobRecord& job, std::int64_t info, double pivot) {
  {
    const std::lock_guard lock(mutex_);
    if (job.handle == nullptr) return;
    JobResult found;
    found.status = JobResult::Status::numerical_failure;
    found.info = info;
    found.pivot = pivot;
    if (is_worse(found, job.result)) job.result = std::move(found);
    cancel_locked(job);
  }
  message_bell.ring();
}

/// The first error that this node meets is the one that it tells. With the lock.
void Engine::fail_job(JobRecord& job, const Error& error) {
  if (job.handle == nullptr) return;
  if (job.result.status != JobResult::Status::failed) {
    JobResult failed;
    failed.status = JobResult::Status::failed;
    failed.code = error.code();
    failed.error = options_.node_count > 1
                       ? fmt::format("node {}: {}", options_.node.value(), error.what())
                       : error.what();
    job.result = std::move(failed);
  }
  cancel_locked(job);
}

void Engine::kernel_threw(const protocol::Task& task, const Error& error) {
  const protocol::TileId tile = task.operands[0].tile;
  const Error told(error.code(), fmt::format("{} on tile {} of matrix {}: {}", kernel_of(task).name,
                                             tile.index, tile.matrix.value(), error.what()));
  {
    const std::lock_guard lock(mutex_);
    fail_job(job_of(task), told);
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

/// A kernel that does not end: OpenBLAS, for one, asks again and again for memory that the system
/// refuses.
std::optional<KernelWatch::Stuck> Engine::stuck_kernel(std::int64_t now_ns) {
  if (!options_.flops_per_second || options_.watchdog_seconds <= 0) return std::nullopt;
  const std::lock_guard lock(watch_mutex_);
  // Measuring takes milliseconds: only for a kernel that has run for `watchdog_seconds`, and once.
  return kernel_watch_.stuck(now_ns, options_.watchdog_seconds, [this] {
    if (flops_per_second_ == 0) flops_per_second_ = options_.flops_per_second();
    return flops_per_second_;
  });
}

void Engine::wait(JobRecord& job) {
  const auto is_long = [this](std::int64_t since_ns, std::int64_t now) {
    return options_.watchdog_seconds > 0 &&
           static_cast<double>(now - since_ns) * 1e-9 > options_.watchdog_seconds;
  };
  WakingTime awake(now_ns());  // a node that was stopped has advanced nothing in that time
  std::unique_lock lock(job.mutex);
  std::uint64_t events = event_count();
  std::int64_t idle_since = 0;   // no event, and nothing runs
  std::int64_t quiet_since = 0;  // no event, and nobody was told
  while (!job.is_done && !failed()) {
    job.ended.wait_for(lock, std::chrono::milliseconds(100));
    if (job.is_done || failed()) break;
    const std::int64_t now = awake.at(now_ns());
    const std::int32_t running = running_hint();
    if (const std::uint64_t seen = event_count(); seen != events) {
      events = seen;
      idle_since = quiet_since = now;
    } else if (running > 0) {
      idle_since = now;
      if (const auto stuck = stuck_kernel(now)) {
        lock.unlock();
        fail(Error(ErrorCode::internal,
                   fmt::format("node {}: {}; it will not end", options_.node.value(),
                               describe(*stuck, static_cast<std::size_t>(options_.cpu_workers)))));
        lock.lock();
        continue;
      }
      if (!tell_quiet_ || !is_long(quiet_since, now)) continue;
      quiet_since = now;
      lock.unlock();
      tell_quiet_(fmt::format(
          "node {}: nothing has ended for {} s; {} running, or queued on a device; {}",
          options_.node.value(), options_.watchdog_seconds,
          running == 1 ? "1 task is" : fmt::format("{} tasks are", running), blockage_text()));
      lock.lock();
    } else if (is_long(idle_since, now)) {
      lock.unlock();
      fail(Error(ErrorCode::internal,
                 fmt::format("node {}: nothing has advanced for {} s; {}{}", options_.node.value(),
                             options_.watchdog_seconds, blockage_text(), failed_jobs())));
      lock.lock();
    }
  }
  if (!job.is_done) {
    lock.unlock();
    throw *failure();
  }
}

/// All nodes agree: takes the job out of the protocol and out of the list. With the lock; end()
/// does the rest.
void Engine::complete(const JobRecord& job, const JobResult& result, Wakes& wakes) {
  const auto found =
      std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& j) { return j.get() == &job; });
  std::shared_ptr<JobRecord> record = std::move(*found);
  jobs_.erase(found);
  record->counters = record->handle->counters;
  protocol_.forget(*record->handle);
  record->handle = nullptr;
  active_jobs_.fetch_sub(1, std::memory_order_relaxed);
  wakes.generation = true;
  JobSpec spec = std::move(record->spec);
  Program program = std::move(record->program);
  wakes.remains.push_back({std::move(record), result, std::move(spec), std::move(program)});
}

/// Gives the pools of a completed job back, so that who waits for it finds their room, and wakes
/// the waiters. Without the lock.
void Engine::end(Remains& remains) {
  JobRecord& job = *remains.record;
  give_pools_back(job);
  const std::lock_guard lock(job.mutex);
  job.result = remains.result;
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
  if (options_.node_count == 1) {
    complete(job, result, wakes);
    return;
  }
  outbox_.done.push_back(verdict_of(job));
  wakes.message = true;
}

void Engine::job_ended(const JobVerdict& verdict) {
  Wakes wakes;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(jobs_.begin(), jobs_.end(),
                                    [&](const auto& j) { return j->id == verdict.job; });
    HEDDLE_CHECK(found != jobs_.end(), "job {} ended twice", verdict.job.value());
    complete(**found, result_of(verdict), wakes);
  }
  ring(wakes);
}

/// The lock guards the search alone; the job's function is called without it. What it is called on
/// stays: the record moves nowhere (the list holds pointers), its spec is written before the job is
/// in the list and taken away by complete(), which needs all nodes to have drained the job. This
/// one has not: a version to be sent is an item of the job, or part of one, until send_finished;
/// one to be received holds a block of the job's pool, or is an item, until data_arrived; and a job
/// with an item or a block in use is not drained (Protocol::check_drained).
TilePart Engine::part_of(protocol::JobId job, protocol::TileId tile, Version number) {
  const JobSpec* spec = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& j) { return j->id == job; });
    HEDDLE_CHECK(found != jobs_.end(), "job {} has ended before its message of tile {}, version {}",
                 job.value(), tile.index, number.value());
    spec = &(*found)->spec;
  }
  return spec->part ? spec->part(tile, number) : TilePart{};
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
    // What is ready still goes through the threads; its kernels need not run.
    for (const auto& job : jobs_) job->cancelled.store(true, std::memory_order_relaxed);
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

/// A text of its own for each thread: copies of an exception share theirs, and the last one to go
/// frees it.
std::optional<Error> Engine::failure() {
  const std::lock_guard lock(mutex_);
  if (!failure_.has_value()) return std::nullopt;
  return Error(failure_->code(), failure_->what());
}

/// What made jobs fail that have not ended: a program that threw on some nodes alone leaves the
/// others waiting for its tasks.
std::string Engine::failed_jobs() {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& job : jobs_) {
    if (job->result.status != JobResult::Status::failed) continue;
    text += fmt::format("; job '{}' has failed: {}", job->name, job->result.error);
  }
  return text;
}

std::string Engine::blockage_text() {
  const std::string text = blockage();
  return text.empty() ? "no task is left on this node; others have not said that they are done"
                      : text;
}

std::string Engine::blockage() {
  const std::lock_guard lock(mutex_);
  return protocol_.blockage();
}

std::int64_t Engine::renamings() {
  const std::lock_guard lock(mutex_);
  return protocol_.renamings();
}

std::size_t Engine::protocol_bytes() {
  const std::lock_guard lock(mutex_);
  return protocol_.bytes();
}

}  // namespace heddle
