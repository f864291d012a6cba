#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/kernel.hpp"
#include "node-runtime/fine/fine_graph.hpp"

namespace heddle::protocol {
struct Task;
}  // namespace heddle::protocol

namespace heddle {

/// A coarse task while the CPU workers run its fine tasks.
struct DividedTask {
  protocol::Task* task = nullptr;  ///< only its owner looks into it
  std::int32_t priority = 0;
  const FineGraph* graph = nullptr;
  std::array<TileView, FineTask::accesses_max> tiles;  ///< of the task, in host memory
  std::int64_t start_ns = 0;                           ///< whoever has a clock may keep it here

  /// The last of those that a fine task has waited for; -1: it has waited for none. Of one that was
  /// taken.
  [[nodiscard]] std::int32_t last_before(std::int32_t number) const {
    return -missing_[static_cast<std::size_t>(number)] - 1;
  }

 private:
  friend class FineScheduler;
  /// By fine task: how many it waits for; then -1 minus the number of the last of them, or 0.
  std::vector<std::int32_t> missing_;
  std::vector<std::uint64_t> ready_;  ///< a bit for each fine task
  std::size_t first_word_ = 0;        ///< no bit of `ready_` is set before this word
  std::int32_t ready_count_ = 0;
  std::int32_t unfinished_ = 0;
  std::int32_t worker_ = 0;   ///< who divided it
  std::uint64_t opened_ = 0;  ///< counts the divided tasks
};

/// A fine task to run, or none.
struct FineWork {
  DividedTask* of = nullptr;
  std::int32_t number = 0;

  [[nodiscard]] explicit operator bool() const { return of != nullptr; }
  [[nodiscard]] const FineTask& task() const { return of->graph->task(number); }
};

/// The divided tasks of a node and which of their fine tasks may run (000 sections 3.2 and 3.6):
/// those of the task with the highest priority first; of equal ones those that were divided by a
/// worker near to the one that asks, whose caches hold the tiles; of these the oldest.
///
/// Lives in one node: nothing of it is seen by the protocol, for which a divided task is a running
/// one. Pure: no thread, no lock, no clock. Calls that change it come one after the other; where
/// several threads share it, under their lock. Nothing is allocated for tasks of which reserve()
/// knows how large they become, nor after the first few of a shape.
///
/// Why nobody waits for ever: a worker divides a task only if it may `begin` one, that is, if fewer
/// than `capacity` are divided; capacity is above the number of workers. If all are taken, each
/// divided task has a fine task that is ready or runs. With none ready, all of at least `capacity`
/// run, on distinct workers, which leaves none to ask.
class FineScheduler {
 public:
  /// `distances[a * workers + b]`: how far the caches of worker b are from worker a's, 0 the
  /// nearest; empty: all alike. At least one worker.
  FineScheduler(std::int32_t workers, std::vector<std::uint8_t> distances);

  /// Makes room for so many fine tasks in each place where nobody is dividing a task now.
  void reserve(std::int32_t fine_tasks);

  /// Room for a further divided task?
  [[nodiscard]] bool may_begin() const { return !free_.empty(); }
  /// Takes a place for a task that is about to be divided; needs may_begin(). To be followed by
  /// open() or give_back().
  [[nodiscard]] DividedTask& begin();
  /// The task runs whole after all.
  void give_back(DividedTask& divided);

  /// Sets the counters of a begun task; may be called without the others' lock, as nobody else
  /// knows of it yet. `graph` has at least one task and outlives it.
  static void prepare(DividedTask& divided, protocol::Task& task, std::int32_t priority,
                      const FineGraph& graph, std::span<const TileView> tiles);
  /// Its fine tasks may run from now on. `worker` has divided it.
  void open(DividedTask& divided, std::int32_t worker);

  /// The highest priority of a task with a fine task to run; -1 if there is none.
  [[nodiscard]] std::int32_t top() const;
  /// The next fine task for this worker; none if there is none ready.
  [[nodiscard]] FineWork take(std::int32_t worker);

  struct Finished {
    std::int32_t ready = 0;       ///< fine tasks that may run now
    bool completes_task = false;  ///< it was the task's last one: close() comes next
  };
  Finished finish(FineWork work);
  /// Ends a task of which all fine tasks are finished; its place is free again.
  void close(DividedTask& divided);

  /// Fine tasks that may run now.
  [[nodiscard]] std::int32_t ready_count() const { return ready_count_; }
  /// Tasks divided now, those that are about to be included.
  [[nodiscard]] std::int32_t divided_count() const {
    return static_cast<std::int32_t>(places_.size() - free_.size());
  }

 private:
  [[nodiscard]] int distance(std::int32_t a, std::int32_t b) const;
  [[nodiscard]] bool is_better(const DividedTask& a, const DividedTask& b,
                               std::int32_t worker) const;
  void set_ready(DividedTask& divided, std::int32_t number);

  std::int32_t workers_;
  std::vector<std::uint8_t> distances_;
  std::vector<std::unique_ptr<DividedTask>> places_;
  std::vector<DividedTask*> free_;
  std::vector<DividedTask*> open_;
  std::int32_t ready_count_ = 0;
  std::uint64_t opened_ = 0;
};

}  // namespace heddle
