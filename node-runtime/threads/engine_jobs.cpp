#include <fmt/core.h>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "node-runtime/threads/engine.hpp"

/// The engine's jobs: how they begin, insert tasks, are cancelled and end.
namespace heddle {
namespace {

/// Unfinished items for each worker from which on it lets workers go first. As fast as it can it
/// would have the lock for a quarter of some runs, and workers wait for it with every task that
/// they finish: on 16 cores they ran half as many meanwhile.
constexpr std::int32_t ahead_each = 64;

}  // namespace

JobRecord::~JobRecord() {
  if (step.load(std::memory_order_acquire) != Step::reserved) return;
  if (const auto engine = link->try_use()) engine->jobs().memory().give_back(*this);
}

void Engine::prepare_divided(const DividedCases& cases, std::int64_t fine) {
  const Lending* const lending = scheduler_.lending();  // set once
  const auto may_come = [lending](const KernelCase& what, PlaceId device) {
    return lending != nullptr && lending->may_lend(what, device);
  };
  const std::int32_t largest = fine_graphs_.prepare(cases, fine, may_come);
  const std::lock_guard lock(mutex_);
  scheduler_.fine().reserve(largest);
}

void Engine::throw_over(const std::string& what) {
  if (const auto reason = failure()) throw *reason;
  throw Error(ErrorCode::usage, fmt::format("{} after its node was stopped", what));
}

void Engine::begin(const std::shared_ptr<JobRecord>& job, std::uint64_t fingerprint) {
  {
    std::unique_lock lock(mutex_);
    if (failed() || stopping()) {
      lock.unlock();
      throw_over(fmt::format("job '{}' was started", job->name));
    }
    job->step.store(JobRecord::Step::started, std::memory_order_release);
    protocol::JobOptions options;
    options.window = options_.window;
    options.pools = job->pools;
    if (job->spec.readers) {
      options.readers = [spec = &job->spec](protocol::TileId tile, Version number) {
        return spec->readers(tile, number);
      };
      options.route = [this](std::span<const protocol::Reader> readers, NodeId home) {
        return reader_tree_.route(readers, home, options_.node);
      };
    }
    protocol::Job& handle = protocol_.begin_job(options);
    handle.context = job.get();
    job->handle = &handle;
    job->id = handle.id;
    counters_.job_begun();
    table_.add(job);
    if (options_.node_count > 1) outbox_.begun.push_back({job->id, fingerprint});
  }
  bells.generation.ring();
}

// ---- generation ------------------------------------------------------------------------------

/// Whether the workers need more tasks of the job soon, whatever waits for what among those that
/// there are.
bool Engine::is_urgent(const JobRecord& job) const {
  return options_.oversubscribed || !options_.devices.empty() || table_.all().size() > 1 ||
         job.handle->unfinished < ahead_each * options_.cpu_workers;
}

JobTable::Turn Engine::next_turn() {
  const std::lock_guard lock(mutex_);
  return table_.next_turn();
}

Engine::HandedOver Engine::hand_over(JobRecord& job, bool goes_on,
                                     const std::optional<Error>& error) {
  Effects effects;
  HandedOver done;
  {
    const std::lock_guard lock(mutex_);
    HEDDLE_CHECK(job.handle != nullptr && !job.handle->generation_ended,
                 "job '{}' inserts after its program's end", job.name);
    if (job.batch) job.batch->hand_over(protocol_, actions_);
    if (error) fail_job(job, *error);
    done.generated = job.handle->next_order;
    if (goes_on) {
      table_.wait_for_window(job);
      done.is_urgent = is_urgent(job);
    } else {
      protocol_.end_generation(*job.handle, actions_);
    }
    apply(effects);  // may complete the job
    done.next = table_.next_turn();
    scheduler_.publish();
  }
  effects.wakes.generation |= !goes_on;  // others may have waited for it
  effects.wakes.message |= error.has_value();
  carry_out(effects);
  return done;
}

void Engine::wait_for_turn(JobRecord& job) {
  for (;;) {
    const Doorbell::Ticket ticket = bells.room.ticket();
    {
      std::unique_lock lock(mutex_);
      if (failed() || stopping()) {
        lock.unlock();
        throw_over(fmt::format("'{}' inserts a task", job.name));
      }
      if (!job.handle->window_is_full() && !table_.is_behind(job)) return;
      table_.wait_for_window(job);
    }
    bells.room.wait(ticket);
  }
}

void Engine::end_stream(JobRecord& job) {
  {
    const std::lock_guard lock(mutex_);
    job.stream_ended = true;  // the generation thread ends it in its turn
  }
  bells.generation.ring();
}

bool Engine::is_stream_open(const JobRecord& job) {
  const std::lock_guard lock(mutex_);
  return job.external && !job.stream_ended;
}

std::vector<std::shared_ptr<JobRecord>> Engine::jobs_in_flight() {
  const std::lock_guard lock(mutex_);
  return table_.all();
}

// ---- cancellation ----------------------------------------------------------------------------

/// Its kernels are skipped from now on, on all nodes; the job is not complete.
void Engine::cancel_locked(JobRecord& job) {
  job.cancelled.store(true, std::memory_order_relaxed);
  protocol_.cancel(*job.handle);
  if (options_.node_count > 1) outbox_.cancelled.push_back(verdict_of(job.id, job.result));
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
  bells.message.ring();
}

void Engine::cancel_from_elsewhere(const JobVerdict& verdict) {
  const std::lock_guard lock(mutex_);
  JobRecord* const job = table_.find(verdict.job);
  if (job == nullptr) return;
  job->cancelled.store(true, std::memory_order_relaxed);
  protocol_.cancel(*job->handle);
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
  bells.message.ring();
}

/// The first error that this node meets is the one that it tells.
void Engine::fail_job(JobRecord& job, const Error& error) {
  if (job.handle == nullptr) return;
  if (job.result.status != JobResult::Status::failed) {
    job.result = failed_result(error, options_.node, options_.node_count);
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
  bells.message.ring();
}

// ---- the end of a job ------------------------------------------------------------------------

void Engine::drained(protocol::Job& handle, Effects& effects) {
  auto& job = *static_cast<JobRecord*>(handle.context);
  if (handle.cancelled && job.result.status == JobResult::Status::done) {
    job.result.status = JobResult::Status::cancelled;
  }
  if (options_.node_count == 1) {
    complete(job, job.result, effects);
    return;
  }
  outbox_.done.push_back(verdict_of(job.id, job.result));
  effects.wakes.message = true;
}

void Engine::job_ended(const JobVerdict& verdict) {
  Effects effects;
  {
    const std::lock_guard lock(mutex_);
    const JobRecord* const job = table_.find(verdict.job);
    HEDDLE_CHECK(job != nullptr, "job {} ended twice", verdict.job.value());
    complete(*job, result_of(verdict), effects);
  }
  carry_out(effects);
}

/// All nodes agree: takes the job out of the protocol and out of the table; end() does the rest.
void Engine::complete(const JobRecord& job, const JobResult& result, Effects& effects) {
  std::shared_ptr<JobRecord> record = table_.take(job);
  record->counters = record->handle->counters;
  protocol_.forget(*record->handle);
  record->handle = nullptr;
  counters_.job_ended();
  effects.wakes.generation = true;
  JobSpec spec = std::move(record->spec);
  Program program = std::move(record->program);
  effects.remains.push_back({std::move(record), result, std::move(spec), std::move(program)});
}

/// Gives the pools of a completed job back, so that a thread that waits for it finds their room,
/// and wakes the waiters.
void Engine::end(Remains& remains) {
  JobRecord& job = *remains.record;
  jobs_.memory().give_back(job);
  const std::lock_guard lock(job.mutex);
  job.result = remains.result;
  job.is_done = true;
  job.ended.notify_all();
}

/// The lock guards the search; the job's function is called without it. What it is called on stays:
/// the record moves nowhere (the table holds pointers), its spec is written before the job is in
/// the table and taken away by complete(), which needs all nodes to have drained the job. This one
/// has not: a version to be sent is an item of the job, or part of one, until send_finished; one to
/// be received holds a block of the job's pool, or is an item, until data_arrived; and a job with
/// an item or a block in use is not drained (Protocol::check_drained).
TilePart Engine::part_of(protocol::JobId job, protocol::TileId tile, Version number) {
  const JobRecord* record = nullptr;
  {
    const std::lock_guard lock(mutex_);
    record = table_.find(job);
  }
  HEDDLE_CHECK(record != nullptr, "job {} has ended before its message of tile {}, version {}",
               job.value(), tile.index, number.value());
  return record->spec.part ? record->spec.part(tile, number) : TilePart{};
}

}  // namespace heddle
