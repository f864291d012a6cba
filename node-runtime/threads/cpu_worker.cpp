#include <sched.h>

#include "node-runtime/threads/loops.hpp"

namespace heddle {
namespace {

constexpr int relaxed_polls = 200;   // a microsecond or two: the next task is often that near
constexpr int yielding_polls = 100;  // then let others have the core, a few tens of microseconds

/// Returns when there may be work, or sleeps until the bell rings.
void wait_for_work(Engine& engine, Doorbell::Ticket ticket) {
  const WaitPolicy policy = engine.options().wait;
  const bool may_spin = policy == WaitPolicy::spin ||
                        (policy == WaitPolicy::adaptive && !engine.options().oversubscribed);
  engine.worker_idle(true);
  if (may_spin) {
    for (int i = 0; i < relaxed_polls + yielding_polls || policy == WaitPolicy::spin; ++i) {
      if (engine.ready_hint() > 0 || engine.cpu_bell.rung_since(ticket) || engine.stopping()) {
        engine.worker_idle(false);
        return;
      }
      if (i < relaxed_polls) {
        relax_cpu();
      } else {
        ::sched_yield();
      }
    }
  }
  engine.message_bell.ring();  // the progress thread looks more often while somebody waits
  engine.cpu_bell.wait(ticket);
  engine.worker_idle(false);
}

}  // namespace

void cpu_worker_loop(Engine& engine, trace::ThreadTrace& trace) {
  protocol::Task* finished = nullptr;
  for (;;) {
    const Doorbell::Ticket ticket = engine.cpu_bell.ticket();
    protocol::Task* task = engine.finish_and_take(finished, host_place);
    finished = nullptr;
    if (task == nullptr) {
      if (engine.stopping()) return;
      const std::int64_t from = trace::now_ns();
      wait_for_work(engine, ticket);
      trace.wait(trace::WaitCause::no_task, from, trace::now_ns());
      continue;
    }
    engine.execute_on_host(*task, trace);
    finished = task;
  }
}

}  // namespace heddle
