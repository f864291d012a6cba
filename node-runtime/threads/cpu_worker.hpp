#pragma once

#include <cstdint>

#include "node-runtime/threads/engine.hpp"
#include "node-runtime/threads/staged_runner.hpp"
#include "node-runtime/trace/recorder.hpp"

namespace heddle {

/// When a CPU worker that shares its core gives it to other threads.
///
/// A worker with tasks to run never sleeps, and the system may take its core away only at the end
/// of a time slice of some milliseconds, even if the progress thread has woken meanwhile to send
/// the output of the last task. In the middle of a task, on the other hand, a look for messages
/// costs the kernel its caches. So the worker yields between tasks.
class YieldPolicy {
 public:
  /// Tiny tasks do not pay for it each time.
  static constexpr std::int64_t interval_ns = 100'000;

  explicit YieldPolicy(bool shares_core) : shares_core_(shares_core) {}

  [[nodiscard]] bool shares_core() const { return shares_core_; }
  /// A task has ended: whether to yield now.
  [[nodiscard]] bool is_due(std::int64_t now_ns) const {
    return shares_core_ && now_ns - last_ns_ >= interval_ns;
  }
  /// The worker has yielded until `now_ns`.
  void yielded(std::int64_t now_ns) { last_ns_ = now_ns; }

 private:
  bool shares_core_;
  std::int64_t last_ns_ = 0;
};

/// A CPU worker of a node: runs ready tasks of the host, as a whole or as fine tasks beside the
/// other workers, and tasks of devices that only the host has the kernel for.
///
/// Invariant: between turns, the work that it holds has run; it is handed back with the next turn.
/// So no worker waits or ends with work that has not been reported.
///
/// Thread: one, which makes it, runs it and destroys it.
class CpuWorker {
 public:
  /// `worker`: its number, from 0.
  CpuWorker(Engine& engine, std::int32_t worker, trace::ThreadTrace& trace)
      : engine_(engine),
        worker_(worker),
        trace_(trace),
        yield_(engine.options().oversubscribed),
        staged_(engine, worker) {}

  /// The loop; returns when the engine stops and there is nothing to do.
  void run();
  /// One turn of the loop: reports the work of the last one, takes the next and runs it. False:
  /// there was none.
  bool turn();

 private:
  void yield_after_task();
  void execute(const HostWork& work);
  void wait_for_work(Doorbell::Ticket ticket);
  [[nodiscard]] bool spin(Doorbell::Ticket ticket) const;

  Engine& engine_;
  std::int32_t worker_;
  trace::ThreadTrace& trace_;
  YieldPolicy yield_;
  StagedRunner staged_;
  HostWork work_;
  bool has_waited_ = false;
};

}  // namespace heddle
