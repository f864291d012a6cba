#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "node-runtime/fine/fine_scheduler.hpp"
#include "node-runtime/scheduling/ready_queue.hpp"
#include "node-runtime/threads/counters.hpp"
#include "node-runtime/threads/lending.hpp"
#include "node-runtime/threads/wakes.hpp"

namespace heddle {

/// What a CPU worker does next, or has done: a task as a whole, or a fine task of a divided one.
struct HostWork {
  protocol::Task* task = nullptr;
  DividedTask* place = nullptr;  ///< the task is to be divided, if its shape allows it
  FineWork fine;
  bool is_staged = false;  ///< the task runs on copies of its tiles

  [[nodiscard]] explicit operator bool() const { return task != nullptr || fine; }
};

/// Which ready task runs next: the queues of ready tasks by place, those of devices that CPU
/// workers run, and the fine tasks of divided ones.
///
/// Invariant: a ready task that nobody has taken is in exactly one queue, or is lent and waits for
/// its tiles; after publish(), ready_hint() = tasks and fine tasks that a CPU worker could take.
///
/// Not thread-safe, the engine's lock serialises, but for ready_hint().
class Scheduler {
 public:
  /// `lending`: null where CPU workers run no task of a device's place. `distances`: of workers'
  /// caches (FineScheduler).
  Scheduler(std::size_t places, std::int32_t cpu_workers, std::vector<std::uint8_t> distances,
            std::unique_ptr<Lending> lending, Counters& counters);

  void make_ready(std::span<protocol::Task* const> tasks, Wakes& wakes);
  /// A task of a device's place whose kernel only the host has, which its device's manager took.
  void stage(protocol::Task& task) { staged_.push(task); }

  /// The most urgent task of a device's place, if its priority is above `above`; null if there is
  /// none. `left`: tasks that are ready there then.
  [[nodiscard]] protocol::Task* take_for_device(PlaceId place, std::int32_t above,
                                                std::size_t& left);
  /// What `worker` is to do next; empty: nothing now. Staged tasks come first, because a device
  /// waits for them. Among the others an urgent task overtakes the fine tasks of less urgent ones;
  /// of equal priorities fine tasks come first. A task that is to be divided comes with a place to
  /// divide it in; where all places are taken it waits and never runs whole, which would change its
  /// bits.
  [[nodiscard]] HostWork take_for_host(std::int32_t worker);
  /// Takes tasks of devices that CPU workers would finish first, and those whose tiles have come.
  void lend(Wakes& wakes);
  /// A task has run, and its blocks are still its own.
  void finished(protocol::Task& task) {
    if (lending_) lending_->finished(task);
  }

  [[nodiscard]] FineScheduler& fine() { return fine_; }
  /// Null: none are lent.
  [[nodiscard]] const Lending* lending() const { return lending_.get(); }

  /// Writes ready_hint(), if it has changed: at the end of each section under the lock.
  void publish() {
    const std::size_t ready = ready_for_host();
    if (ready != ready_hint()) ready_hint_.store(ready, std::memory_order_relaxed);
  }
  /// Relaxed: who looks at it takes the lock before it takes a task. Any thread.
  [[nodiscard]] std::size_t ready_hint() const {
    return ready_hint_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] bool is_valid() const;

 private:
  [[nodiscard]] ReadyQueue& queue(PlaceId place) {
    return *ready_[static_cast<std::size_t>(place.value())];
  }
  [[nodiscard]] std::size_t ready_for_host() const {
    return ready_[0]->count() + staged_.count() + static_cast<std::size_t>(fine_.ready_count());
  }

  Counters& counters_;
  std::vector<std::unique_ptr<ReadyQueue>> ready_;  ///< by place
  ReadyQueue staged_;
  std::unique_ptr<Lending> lending_;
  FineScheduler fine_;
  // Waiting threads look at it again and again, and events change what is beside it: a write to a
  // line that all of them hold takes as long as the rest of an event.
  alignas(cache_line) std::atomic<std::size_t> ready_hint_{0};
};

}  // namespace heddle
