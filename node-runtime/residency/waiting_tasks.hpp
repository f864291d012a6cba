#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "node-runtime/protocol/records.hpp"

namespace heddle {

/// Ready tasks of a device that lack tiles in its memory, and the choice of its next task (000
/// section 3.5), without thread, clock or memory. Used by the runtime's device managers and the
/// simulator. Not thread-safe: one manager's.
///
/// States of a task: *ready* in the queue of its place; *waiting*: taken, lacks tiles; *ahead*: its
/// tiles are requested; *arrived*: its tiles are present and held for it. Waiting and arrived tasks
/// are in order of priority, then first-in-first-out.
///
/// Progress: every waiting task is requested eventually. The most urgent one is requested as soon
/// as fewer than `ahead_max` are ahead (these arrive, by Residency's progress) and no work in
/// progress is more urgent by more than a span; that work ends, and counts for at most
/// `front_pause_ns` longer.
///
/// Invariant (`is_valid()`): waiting and arrived are in order of priority;  waiting <= waiting_max,
/// ahead <= ahead_max.
class WaitingTasks {
 public:
  using Task = protocol::Task;

  /// Waiting tasks at most: enough to find some that share resident tiles.
  static constexpr std::size_t waiting_max = 256;
  /// Enough to keep the link busy while kernels run. They get space in the order of their requests,
  /// so a more urgent task waits for all of them; their transfers go by priority.
  static constexpr std::size_t ahead_max = 4;
  /// Longest gap between two tasks of an urgent chain.
  static constexpr std::int64_t front_pause_ns = 1'000'000;
  /// Lower than any task's priority.
  static constexpr std::int32_t nothing = -1;

  /// The next runnable task with priority > `above`: an arrived one, else the most urgent waiting
  /// one whose tiles are now present, else a ready one; null without one. `acquires(task)` holds
  /// all tiles of a task if present; it is not called for arrived tasks. `take_ready(above)`: the
  /// most urgent ready task, or null.
  template <class Acquires, class TakeReady>
  [[nodiscard]] Task* next(std::int32_t above, const Acquires& acquires,
                           const TakeReady& take_ready) {
    if (!arrived_.empty() && arrived_.front()->priority > above) return take(arrived_, 0);
    for (std::size_t i = 0; looks_again_ && i < waiting_.size(); ++i) {
      if (waiting_[i]->priority <= above) break;
      if (acquires(*waiting_[i])) return take(waiting_, i);
    }
    looks_again_ = false;
    while (waiting_.size() < waiting_max) {
      Task* const task = take_ready(above);
      if (task == nullptr || acquires(*task)) return task;
      insert(waiting_, *task);
    }
    return nullptr;
  }

  /// Tiles were released or have arrived: waiting tasks may be runnable.
  void look_again() { looks_again_ = true; }

  /// The tiles of a task that was ahead have arrived.
  void arrive(Task& task);

  /// Updates the priority of the work in progress: that of streams, at most `of_streams`, and of
  /// arrived tasks. A chain of tasks counts as in progress during short gaps.
  void follow_front(std::int32_t of_streams, std::int64_t now_ns);

  /// The most urgent waiting task, now ahead: the caller requests its tiles, so that they arrive
  /// during computation. Null without one, or if is_held_back(). `span_of(task)`: how much lower
  /// than the work in progress its priority may be.
  template <class SpanOf>
  [[nodiscard]] Task* ask(const SpanOf& span_of) {
    is_held_back_ = false;
    if (waiting_.empty() || ahead_ >= ahead_max) return nullptr;
    const Task& first = *waiting_.front();
    is_held_back_ = std::int64_t{front_} - first.priority > span_of(first);
    if (is_held_back_) return nullptr;
    ++ahead_;
    return take(waiting_, 0);
  }
  /// The last ask() held a task back whose priority was lower than that of the work in progress by
  /// more than its job's span; it may be requested `front_pause_ns` after that work.
  [[nodiscard]] bool is_held_back() const { return is_held_back_; }

  /// Tasks that lack tiles.
  [[nodiscard]] std::size_t count() const { return waiting_.size() + ahead_; }
  [[nodiscard]] bool has_waiting() const { return !waiting_.empty(); }
  /// No task in any state.
  [[nodiscard]] bool empty() const { return count() == 0 && arrived_.empty(); }
  [[nodiscard]] bool is_valid() const;

 private:
  static std::int32_t priority_of_first(const std::vector<Task*>& tasks) {
    return tasks.empty() ? nothing : tasks.front()->priority;
  }
  static Task* take(std::vector<Task*>& tasks, std::size_t index) {
    Task* const task = tasks[index];
    tasks.erase(tasks.begin() + static_cast<std::ptrdiff_t>(index));
    return task;
  }
  static void insert(std::vector<Task*>& tasks, Task& task);

  std::vector<Task*> waiting_;
  std::vector<Task*> arrived_;
  std::size_t ahead_ = 0;
  std::int32_t front_ = nothing;  ///< highest recent priority of work in progress
  std::int64_t front_ns_ = 0;     ///< time at which it was seen
  bool looks_again_ = false;      ///< some of `waiting_` may be runnable
  bool is_held_back_ = false;
};

}  // namespace heddle
