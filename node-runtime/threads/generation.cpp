#include <sched.h>

#include "node-runtime/threads/loops.hpp"

namespace heddle {
namespace {

/// How long generation waits when there is enough: some of the workers' tasks.
constexpr std::int64_t pause_us = 50;

}  // namespace

void generation_loop(Engine& engine, trace::ThreadTrace& trace) {
  for (;;) {
    // Before the look at whether the engine stops: the ring that comes with that is not missed.
    const Doorbell::Ticket ticket = engine.generation_bell.ticket();
    if (engine.stopping()) return;
    const std::int64_t begin = trace::now_ns();
    const Engine::Walked walked = engine.generate(trace);
    const std::int64_t from = trace::now_ns();
    const bool is_enough = walked == Engine::Walked::enough;
    if (walked == Engine::Walked::some || is_enough) trace.add_busy(from - begin);
    if (walked == Engine::Walked::some) continue;
    if (engine.store().populate_some()) {
      trace.add_busy(trace::now_ns() - from);
      // On a host full of workers the progress thread has the same core, and the system would give
      // it the core at the end of a slice only: the first message of a job came 3.5 ms late.
      ::sched_yield();
      continue;
    }
    engine.generation_bell.wait(ticket, is_enough ? pause_us : 0);
    trace.wait(walked == Engine::Walked::no_program ? trace::WaitCause::no_task
                                                    : trace::WaitCause::window_full,
               from, trace::now_ns());
  }
}

}  // namespace heddle
