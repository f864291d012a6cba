#include <sched.h>

#include "node-runtime/threads/loops.hpp"

namespace heddle {

void generation_loop(Engine& engine, trace::ThreadTrace& trace) {
  for (;;) {
    // Before the look at whether the engine stops: the ring that comes with that is not missed.
    const Doorbell::Ticket ticket = engine.generation_bell.ticket();
    if (engine.stopping()) return;
    const std::int64_t begin = trace::now_ns();
    const Engine::Walked walked = engine.generate(trace);
    const std::int64_t from = trace::now_ns();
    if (walked == Engine::Walked::some) {
      trace.add_busy(from - begin);
      continue;
    }
    if (engine.store().populate_some()) {
      trace.add_busy(trace::now_ns() - from);
      // On a host full of workers the progress thread has the same core, and the system would give
      // it the core at the end of a slice only: the first message of a job came 3.5 ms late.
      ::sched_yield();
      continue;
    }
    engine.generation_bell.wait(ticket);
    trace.wait(walked == Engine::Walked::window_full ? trace::WaitCause::window_full
                                                     : trace::WaitCause::no_task,
               from, trace::now_ns());
  }
}

}  // namespace heddle
