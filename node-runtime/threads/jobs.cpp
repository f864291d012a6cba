#include "node-runtime/threads/jobs.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/core.h>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/require.hpp"
#include "base/waking_time.hpp"
#include "node-runtime/protocol/pool_plan.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/threads/path_priorities.hpp"
#include "node-runtime/threads/plan_listener.hpp"
#include "node-runtime/threads/watchdog.hpp"

namespace heddle {
namespace {

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

OperandShape shape_in(const TileStore& store, protocol::TileId tile) {
  const TileShape shape = store.shape(tile);
  return {shape.rows, shape.columns};
}

}  // namespace

Jobs::Jobs(Engine& engine)
    : engine_(engine),
      memory_({.cpu_workers = engine.options().cpu_workers,
               .extra_blocks_max = engine.options().extra_blocks_max,
               .oversubscribed = engine.options().oversubscribed},
              engine.store()) {}

std::shared_ptr<JobRecord> Jobs::prepare(JobSpec spec) {
  require(static_cast<bool>(spec.program), "job '{}' has no program", spec.name);
  const EngineOptions& options = engine_.options();
  const TileStore& store = engine_.store();
  auto job = std::make_shared<JobRecord>(engine_.link());
  job->name = spec.name;
  job->spec = std::move(spec);
  protocol::PoolPlan plan(options.node, store.places());
  for (const protocol::MatrixId m : job->spec.temporaries) plan.set_temporary(m);
  PlanListener listener(plan);
  // A job that is only planned, and never runs, has matrices that nobody has made.
  const bool may_run = std::ranges::all_of(
      job->spec.matrices, [&](protocol::MatrixId id) { return store.has_matrix(id); });
  if (job->spec.fine > 0 && may_run) {
    listener.find_divided(options.node, job->divided_cases.emplace(),
                          [&](protocol::TileId tile) { return shape_in(store, tile); });
  }
  TaskStream stream(listener, options.node, {&job->spec, options.node_count});
  Program walk = job->spec.program(stream);
  while (walk.resume()) {
  }
  job->blocks_minimum = plan.minimum();
  for (PlaceId place{0}; place.value() < store.places(); ++place) {
    job->takers.push_back(plan.takers(place));
  }
  job->tasks_planned = plan.tasks();
  job->host_takes = plan.host_takes();
  return job;
}

/// What a job that will run needs to know beforehand.
void Jobs::look_ahead(JobRecord& job) {
  const EngineOptions& options = engine_.options();
  if (options.path_costs) {
    job.priorities = path_priorities(
        job.spec.program, options.node, options.node_count,
        [this](protocol::TileId tile) { return shape_in(engine_.store(), tile); },
        *options.path_costs, ReadyQueue::levels);
    // Its measure was the program's priorities.
    job.spec.priority_span = std::numeric_limits<std::int32_t>::max();
  }
  if (job.spec.fine > 0) {
    HEDDLE_CHECK(job.divided_cases.has_value(), "job '{}' was planned without its matrices",
                 job.spec.name);
    engine_.prepare_divided(*job.divided_cases, job.spec.fine);
  }
}

void Jobs::reserve(JobRecord& job) {
  require(job.step.load(std::memory_order_acquire) == JobRecord::Step::planned,
          "Job::reserve: job '{}' has its memory; reserve() comes once, before start()", job.name);
  look_ahead(job);
  memory_.reserve(job, JobMemory::Pages::now);
  job.step.store(JobRecord::Step::reserved, std::memory_order_release);
}

/// What other nodes have begun waits for this node's part of it (decision 011). One that has no
/// memory for its part fails, so that they end, too.
void Jobs::reserve_or_fail(JobRecord& job) {
  try {
    if (!job.external) look_ahead(job);
    memory_.reserve(job, JobMemory::Pages::soon);
  } catch (const Error& error) {
    if (engine_.options().node_count > 1) engine_.fail(error);
    throw;
  }
  // Gives its pools back if it does not begin.
  job.step.store(JobRecord::Step::reserved, std::memory_order_release);
}

void Jobs::start(const std::shared_ptr<JobRecord>& job) {
  using Step = JobRecord::Step;
  const Step before = job->step.load(std::memory_order_acquire);
  require(before != Step::started, "Job::start: job '{}' was started before", job->name);
  if (before == Step::planned) reserve_or_fail(*job);
  begin(job);
}

std::shared_ptr<JobRecord> Jobs::open_stream(JobSpec spec, std::int32_t blocks_minimum) {
  auto job = std::make_shared<JobRecord>(engine_.link());
  job->name = spec.name;
  job->spec = std::move(spec);
  job->external = true;
  const auto places = static_cast<std::size_t>(engine_.store().places());
  job->blocks_minimum.assign(places, blocks_minimum);
  job->takers.assign(places, job->spec.matrices);
  reserve_or_fail(*job);
  begin(job);
  return job;
}

void Jobs::begin(const std::shared_ptr<JobRecord>& job) {
  const EngineOptions& options = engine_.options();
  const TaskStream::Bounds bounds{&job->spec, options.node_count};
  if (job->external) {
    job->stream.emplace(job->insertions.emplace(engine_, *job), options.node, bounds);
  } else {
    job->stream.emplace(job->batch.emplace(*job, options.node), options.node, bounds);
    job->program = job->spec.program(*job->stream);
  }
  engine_.begin(job, fingerprint_of(*job));
}

/// A kernel that does not end: OpenBLAS, for one, asks again and again for memory that the system
/// refuses.
bool Jobs::fail_stuck_kernel(std::int64_t now_ns) {
  const EngineOptions& options = engine_.options();
  if (!options.flops_per_second || options.watchdog_seconds <= 0) return false;
  std::optional<KernelWatch::Stuck> stuck;
  {
    const std::lock_guard lock(watch_mutex_);
    // Measuring takes milliseconds: only for a kernel that has run for `watchdog_seconds`, and
    // once.
    stuck = engine_.kernel_watch().stuck(now_ns, options.watchdog_seconds, [&] {
      if (flops_per_second_ == 0) flops_per_second_ = options.flops_per_second();
      return flops_per_second_;
    });
  }
  if (!stuck) return false;
  engine_.fail(Error(ErrorCode::internal,
                     fmt::format("node {}: {}; it will not end", options.node.value(),
                                 describe(*stuck, static_cast<std::size_t>(options.cpu_workers)))));
  return true;
}

void Jobs::tell_that_quiet() {
  if (!tell_quiet_) return;
  const EngineOptions& options = engine_.options();
  const std::int32_t running = engine_.counters().running();
  tell_quiet_(fmt::format(
      "node {}: nothing has ended for {} s; {} running, or queued on a device; {}",
      options.node.value(), options.watchdog_seconds,
      running == 1 ? "1 task is" : fmt::format("{} tasks are", running), engine_.blockage_text()));
}

void Jobs::fail_standing() {
  const EngineOptions& options = engine_.options();
  engine_.fail(
      Error(ErrorCode::internal,
            fmt::format("node {}: nothing has advanced for {} s; {}{}", options.node.value(),
                        options.watchdog_seconds, engine_.blockage_text(), engine_.failed_jobs())));
}

void Jobs::wait(JobRecord& job) {
  constexpr auto between_looks = std::chrono::milliseconds(100);
  WakingTime awake(now_ns());  // a node that was stopped has advanced nothing in that time
  const Counters& counters = engine_.counters();
  Watchdog watchdog(engine_.options().watchdog_seconds, 0, counters.events());
  std::unique_lock lock(job.mutex);
  while (!job.is_done && !engine_.failed()) {
    job.ended.wait_for(lock, between_looks);
    if (job.is_done || engine_.failed()) break;
    lock.unlock();
    const std::int64_t now = awake.at(now_ns());
    switch (watchdog.look(now, counters.events(), counters.running())) {
      case Watchdog::Finding::advances:
        break;
      case Watchdog::Finding::runs:
        static_cast<void>(fail_stuck_kernel(now));
        break;
      case Watchdog::Finding::quiet:
        if (!fail_stuck_kernel(now)) tell_that_quiet();
        break;
      case Watchdog::Finding::stands:
        fail_standing();
        break;
    }
    lock.lock();
  }
  if (job.is_done) return;
  lock.unlock();
  throw *engine_.failure();
}

void Jobs::wait_for_all() {
  const std::vector<std::shared_ptr<JobRecord>> jobs = engine_.jobs_in_flight();
  for (const auto& job : jobs) {
    require(!engine_.is_stream_open(*job),
            "Node::stop: the task stream '{}' has not ended; call its end() before", job->name);
  }
  for (const auto& job : jobs) wait(*job);
}

}  // namespace heddle
