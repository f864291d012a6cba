#include <sched.h>
#include <utility>

#include "node-runtime/threads/loops.hpp"
#include "node-runtime/threads/staged_runner.hpp"

namespace heddle {
namespace {

constexpr int relaxed_polls = 200;   // a microsecond or two: the next task is often that near
constexpr int yielding_polls = 100;  // then let others have the core, a few tens of microseconds

/// Returns when there may be work, or sleeps until the bell rings.
void wait_for_work(Engine& engine, Doorbell::Ticket ticket) {
  const WaitPolicy policy = engine.options().wait;
  const bool may_spin = policy == WaitPolicy::spin ||
                        (policy == WaitPolicy::adaptive && !engine.options().oversubscribed);
  engine.counters().worker_idle(true);
  if (may_spin) {
    for (int i = 0; i < relaxed_polls + yielding_polls || policy == WaitPolicy::spin; ++i) {
      if (engine.ready_hint() > 0 || engine.bells.cpu.rung_since(ticket) || engine.stopping()) {
        engine.counters().worker_idle(false);
        return;
      }
      if (i < relaxed_polls) {
        relax_cpu();
      } else {
        ::sched_yield();
      }
    }
  }
  engine.bells.message.ring();  // the progress thread looks more often while somebody waits
  engine.bells.cpu.wait(ticket);
  engine.counters().worker_idle(false);
}

/// Lets the threads that share this core have it between two tasks.
///
/// A worker with tasks to run never sleeps, and the system may take its core away only at the end
/// of a time slice of some milliseconds, even if the progress thread has woken meanwhile to send
/// what the last task wrote. In the middle of a task, on the other hand, looking for messages costs
/// the kernel its caches. So the worker calls that thread between tasks, and steps aside.
class Courtesy {
 public:
  explicit Courtesy(Engine& engine) : engine_(engine), wanted_(engine.options().oversubscribed) {}

  void after_task() {
    if (!wanted_) return;
    const std::int64_t now = trace::now_ns();
    if (now - last_ns_ < interval_ns) return;
    engine_.bells.message.ring();
    ::sched_yield();  // returns at once when nobody else waits for this core
    last_ns_ = trace::now_ns();
  }

 private:
  static constexpr std::int64_t interval_ns = 100'000;  // tiny tasks do not pay for it each time
  Engine& engine_;
  bool wanted_;
  std::int64_t last_ns_ = 0;
};

}  // namespace

void cpu_worker_loop(Engine& engine, std::int32_t worker, trace::ThreadTrace& trace) {
  HostWork work;
  bool has_waited = false;
  Courtesy courtesy(engine);
  StagedRunner staged(engine, worker);
  for (;;) {
    const Doorbell::Ticket ticket = engine.bells.cpu.ticket();
    const bool has_worked = static_cast<bool>(work);
    work = engine.finish_and_take(work, worker);
    if (has_worked) courtesy.after_task();
    if (!work) {
      if (engine.stopping()) return;
      const std::int64_t from = trace::now_ns();
      wait_for_work(engine, ticket);
      trace.wait(trace::WaitCause::no_task, from, trace::now_ns());
      has_waited = true;
      continue;
    }
    if (std::exchange(has_waited, false)) engine.wake_others();
    if (work.place != nullptr) work = engine.divide(work, worker, trace);
    if (work.is_staged) {
      staged.run(*work.task, trace);
      continue;
    }
    HostExecutor& executor = engine.executor();
    const std::int64_t end = work.fine ? executor.execute_fine(work.fine, worker, trace)
                                       : executor.execute(*work.task, worker, trace);
    engine.record_ready(trace, host_place, end, engine.ready_hint());
  }
}

}  // namespace heddle
