#include "node-runtime/threads/loops.hpp"

namespace heddle {

void generation_loop(Engine& engine, trace::ThreadTrace& trace) {
  while (!engine.stopping()) {
    const Doorbell::Ticket ticket = engine.generation_bell.ticket();
    if (engine.generate()) continue;
    const std::int64_t from = trace::now_ns();
    engine.generation_bell.wait(ticket);
    trace.wait(trace::WaitCause::window_full, from, trace::now_ns());
  }
}

}  // namespace heddle
