#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "kernels/kernel.hpp"
#include "node-runtime/fine/fine_graph.hpp"

namespace heddle::protocol {
struct Task;
}  // namespace heddle::protocol

namespace heddle {

/// A coarse task while CPU workers run its fine tasks.
struct DividedTask {
  protocol::Task* task = nullptr;  ///< opaque; used only by the owner
  std::int32_t priority = 0;
  const FineGraph* graph = nullptr;
  std::array<TileView, FineTask::accesses_max> tiles;  ///< of the task, in host memory
  std::int64_t start_ns = 0;                           ///< for the caller's use

  /// The predecessor of a taken fine task that finished last; -1 if it has none.
  [[nodiscard]] std::int32_t last_before(std::int32_t number) const {
    HEDDLE_DEBUG(missing_[static_cast<std::size_t>(number)] <= 0, "fine task {} waits for {}",
                 number, missing_[static_cast<std::size_t>(number)]);
    return -missing_[static_cast<std::size_t>(number)] - 1;
  }

 private:
  friend class FineScheduler;
  /// Per fine task: number of unfinished predecessors; then -1 minus the last of them, or 0.
  std::vector<std::int32_t> missing_;
  std::vector<std::uint64_t> ready_;  ///< bit i: fine task i is ready
  std::size_t first_word_ = 0;        ///< words of `ready_` before this one are 0
  std::int32_t ready_count_ = 0;
  std::int32_t unfinished_ = 0;
  std::int32_t worker_ = 0;   ///< the worker that divided it
  std::uint64_t opened_ = 0;  ///< sequence number of open()
};

/// A fine task to run, or none.
struct FineWork {
  DividedTask* of = nullptr;
  std::int32_t number = 0;

  [[nodiscard]] explicit operator bool() const { return of != nullptr; }
  [[nodiscard]] const FineTask& task() const { return of->graph->task(number); }
};

/// The divided tasks of a node and their ready fine tasks (000 sections 3.2 and 3.6), in the order:
/// highest priority of the task; then nearest caches of the worker that divided it; then oldest.
///
/// Local to a node: for the protocol a divided task is a running one. Pure: no thread, lock or
/// clock; the caller serialises changes. Does not allocate for tasks up to the size given to
/// reserve(), nor after the first few tasks of a shape.
///
/// Invariant (`is_valid()`), over open divided tasks d and fine tasks i:
///   free + open + begun = places, each place once
///   ready_count = sum of ready_count(d);  ready_count(d) = number of bits in ready(d)
///   bit i of ready(d) => missing(d, i) <= 0;  words of ready(d) before first_word are 0
///   waiting(d) + ready_count(d) <= unfinished(d) <= size of d's graph, waiting(d) = number of i
///     with missing(d, i) > 0; the rest of unfinished(d) runs
///
/// No deadlock: a worker divides a task only if may_begin(), that is, if fewer than `capacity` >
/// workers are divided. If all places are taken, each divided task has a fine task that is ready or
/// running. If none is ready, at least `capacity` run, on distinct workers, so no worker is left to
/// ask.
class FineScheduler {
 public:
  /// `distances[a * workers + b]`: cache distance of workers a and b, 0 the nearest; empty: all
  /// equal. `workers` >= 1.
  FineScheduler(std::int32_t workers, std::vector<std::uint8_t> distances);

  /// Reserves this many fine tasks in each free place.
  void reserve(std::int32_t fine_tasks);

  /// Whether another task may be divided.
  [[nodiscard]] bool may_begin() const { return !free_.empty(); }
  /// Takes a place for a task to divide; requires may_begin(). Follow it by open() or give_back().
  [[nodiscard]] DividedTask& begin();
  /// Undoes begin(): the task runs undivided.
  void give_back(DividedTask& divided);

  /// Initialises a begun task; needs no lock, since no other thread knows it yet. `graph` has at
  /// least one task and outlives it.
  static void prepare(DividedTask& divided, protocol::Task& task, std::int32_t priority,
                      const FineGraph& graph, std::span<const TileView> tiles);
  /// Makes its fine tasks available. `worker` has divided it.
  void open(DividedTask& divided, std::int32_t worker);

  /// The highest priority of a task with a ready fine task; -1 without one.
  [[nodiscard]] std::int32_t top() const;
  /// The next fine task for this worker; empty if none is ready.
  [[nodiscard]] FineWork take(std::int32_t worker);

  struct Finished {
    std::int32_t ready = 0;       ///< fine tasks that became ready
    bool completes_task = false;  ///< it was the task's last: call close() next
  };
  Finished finish(FineWork work);
  /// Ends a task whose fine tasks have all finished; frees its place.
  void close(DividedTask& divided);

  /// Ready fine tasks.
  [[nodiscard]] std::int32_t ready_count() const { return ready_count_; }
  /// Divided tasks, including those between begin() and open().
  [[nodiscard]] std::int32_t divided_count() const {
    return static_cast<std::int32_t>(places_.size() - free_.size());
  }
  /// O(fine tasks of open tasks); for tests.
  [[nodiscard]] bool is_valid() const;

 private:
  [[nodiscard]] int distance(std::int32_t a, std::int32_t b) const;
  [[nodiscard]] bool is_better(const DividedTask& a, const DividedTask& b,
                               std::int32_t worker) const;
  static bool is_ready(const DividedTask& divided, std::int32_t number) {
    return (divided.ready_[static_cast<std::size_t>(number) / 64] >> number % 64 & 1) != 0;
  }
  void set_ready(DividedTask& divided, std::int32_t number);
  [[nodiscard]] static bool is_valid(const DividedTask& divided);

  std::int32_t workers_;
  std::vector<std::uint8_t> distances_;
  std::vector<std::unique_ptr<DividedTask>> places_;
  std::vector<DividedTask*> free_;
  std::vector<DividedTask*> open_;
  std::int32_t ready_count_ = 0;
  std::uint64_t opened_ = 0;
};

}  // namespace heddle
