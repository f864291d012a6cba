#include "node-runtime/threads/cpu_worker.hpp"

#include <sched.h>
#include <utility>

#include "node-runtime/threads/loops.hpp"

namespace heddle {
namespace {

constexpr int relaxed_polls = 200;   // a microsecond or two: the next task is often that near
constexpr int yielding_polls = 100;  // then let others have the core, a few tens of microseconds

}  // namespace

void CpuWorker::run() {
  for (;;) {
    const Doorbell::Ticket ticket = engine_.bells.cpu.ticket();
    if (turn() || staged_.help(trace_)) continue;
    if (engine_.stopping()) return;
    const std::int64_t from = trace::now_ns();
    wait_for_work(ticket);
    trace_.wait(trace::WaitCause::no_task, from, trace::now_ns());
    has_waited_ = true;
  }
}

bool CpuWorker::turn() {
  const bool has_worked = static_cast<bool>(work_);
  work_ = engine_.finish_and_take(work_, worker_);
  if (has_worked) yield_after_task();
  if (!work_) return false;
  if (std::exchange(has_waited_, false)) engine_.wake_others();
  if (work_.place != nullptr) work_ = engine_.divide(work_, worker_, trace_);
  execute(work_);
  return true;
}

void CpuWorker::execute(const HostWork& work) {
  if (work.is_staged) return staged_.run(*work.task, trace_);
  HostExecutor& executor = engine_.executor();
  const std::int64_t end = work.fine ? executor.execute_fine(work.fine, worker_, trace_)
                                     : executor.execute(*work.task, worker_, trace_);
  engine_.record_ready(trace_, host_place, end, engine_.ready_hint());
}

void CpuWorker::yield_after_task() {
  // The clock is read only where it matters.
  if (!yield_.shares_core() || !yield_.is_due(trace::now_ns())) return;
  engine_.bells.message.ring();
  ::sched_yield();  // returns at once when no other thread waits for this core
  yield_.yielded(trace::now_ns());
}

/// Looks for work without sleeping. False: it is time to sleep.
bool CpuWorker::spin(Doorbell::Ticket ticket) const {
  const WaitPolicy policy = engine_.options().wait;
  const bool may_spin = policy == WaitPolicy::spin ||
                        (policy == WaitPolicy::adaptive && !engine_.options().oversubscribed);
  if (!may_spin) return false;
  for (int i = 0; i < relaxed_polls + yielding_polls || policy == WaitPolicy::spin; ++i) {
    if (engine_.ready_hint() > 0 || engine_.bells.cpu.rung_since(ticket) || engine_.stopping()) {
      return true;
    }
    if (i < relaxed_polls) {
      relax_cpu();
    } else {
      ::sched_yield();
    }
  }
  return false;
}

/// Returns when there may be work, or sleeps until the bell rings.
void CpuWorker::wait_for_work(Doorbell::Ticket ticket) {
  engine_.counters().worker_idle(true);
  if (!spin(ticket)) {
    engine_.bells.message.ring();  // the progress thread looks more often while a worker waits
    engine_.bells.cpu.wait(ticket);
  }
  engine_.counters().worker_idle(false);
}

void cpu_worker_loop(Engine& engine, std::int32_t worker, trace::ThreadTrace& trace) {
  CpuWorker(engine, worker, trace).run();
}

}  // namespace heddle
