#include "node-runtime/threads/generation.hpp"

#include <sched.h>

#include "base/process_limits.hpp"
#include "node-runtime/threads/loops.hpp"
#include "node-runtime/trace/counter_names.hpp"

namespace heddle {
namespace {

/// Items that generation inserts before it gives the lock back: many while workers have nothing to
/// do, and few while they are at work, each of which would wait for it with every task.
constexpr std::int32_t quantum_for_idle = 16;
constexpr std::int32_t quantum_for_busy = 4;
/// How long generation waits when there is enough: some of the workers' tasks.
constexpr std::int64_t pause_us = 50;

}  // namespace

Generation::Walked Generation::walk() {
  if (turn_.job == nullptr) turn_ = engine_.next_turn();
  if (turn_.job == nullptr) {
    return turn_.waits_for_window ? Walked::window_full : Walked::no_program;
  }
  JobRecord& job = *turn_.job;
  const auto workers = static_cast<std::size_t>(engine_.options().cpu_workers);
  const bool have_work = engine_.ready_hint() >= workers;
  const std::optional<trace::NameId> name = counter_of(job);
  std::optional<Error> error;
  bool goes_on = false;
  if (job.batch) {
    job.batch->begin(have_work ? quantum_for_busy : quantum_for_idle, turn_.room);
    goes_on = resume(job, error);
  }
  const Engine::HandedOver done = engine_.hand_over(job, goes_on, error);
  turn_ = done.next;
  if (name) {
    trace_.counter(*name, host_place, trace::now_ns(), static_cast<std::int64_t>(done.generated));
  }
  if (done.is_urgent) return Walked::some;
  if (have_work) return Walked::enough;
  engine_.let_others_in();
  return Walked::some;
}

/// False once the program has ended. What it throws is `error`, and ends it: other nodes end it
/// at the same call, if theirs throws there too; if not, they wait for this node's tasks until
/// the watchdog ends the run.
bool Generation::resume(JobRecord& job, std::optional<Error>& error) {
  try {
    return job.program.resume();
  } catch (const std::exception& thrown) {
    error = as_error(thrown);
  } catch (...) {
    error = Error(ErrorCode::internal, "an exception of unknown type");
  }
  return false;
}

/// The trace's counter of how far the job's program is; none without a trace, and for a user's
/// thread, which was there before.
std::optional<trace::NameId> Generation::counter_of(JobRecord& job) {
  if (!job.external && trace_.enabled() && !job.generated_name) {
    job.generated_name = engine_.recorder().intern(trace::generated_name(job.id.value()));
  }
  return job.generated_name;
}

void generation_loop(Engine& engine, trace::ThreadTrace& trace) {
  using Walked = Generation::Walked;
  Generation generation(engine, trace);
  for (;;) {
    // Before the look at whether the engine stops: the ring that comes with that is not missed.
    const Doorbell::Ticket ticket = engine.bells.generation.ticket();
    if (engine.stopping()) return;
    const std::int64_t begin = trace::now_ns();
    const Walked walked = generation.walk();
    const std::int64_t from = trace::now_ns();
    const bool is_enough = walked == Walked::enough;
    if (walked == Walked::some || is_enough) trace.add_busy(from - begin);
    if (walked == Walked::some) continue;
    if (engine.store().populate_some()) {
      trace.add_busy(trace::now_ns() - from);
      // On a host full of workers the progress thread has the same core, and the system would give
      // it the core at the end of a slice only: the first message of a job came 3.5 ms late.
      ::sched_yield();
      continue;
    }
    engine.bells.generation.wait(ticket, is_enough ? pause_us : 0);
    trace.wait(
        walked == Walked::no_program ? trace::WaitCause::no_task : trace::WaitCause::window_full,
        from, trace::now_ns());
  }
}

}  // namespace heddle
