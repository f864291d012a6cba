#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "node-runtime/protocol/records.hpp"

namespace heddle {

/// The ready tasks of a device whose tiles are not all in its memory, and which of its tasks is the
/// next: how a device's manager serves them (000 section 3.5), without thread, clock or memory. The
/// runtime's managers and the simulator's ask it.
///
/// A task is *ready* in the queue of its place; *waiting* when it was taken and lacked tiles;
/// *ahead* when its tiles were asked for; *arrived* when they have come, and are held for it.
/// Waiting and arrived ones are in the order of priorities, those of one priority first in, first
/// out.
///
/// Progress: whoever waits is asked for at last. The most urgent waiting task is, as soon as fewer
/// than `ahead_max` are ahead (which arrive, by Residency's progress) and what is under way is not
/// more urgent by more than a span; that ends, and counts no longer after `front_pause_ns`. Not
/// thread-safe: of one manager.
class WaitingTasks {
 public:
  using Task = protocol::Task;

  /// Tasks that wait at a time: enough to find among them those that share what is there.
  static constexpr std::size_t waiting_max = 256;
  /// Enough to keep the link busy while kernels run. They are given room in the order in which they
  /// were asked for, so each of them is what a more urgent task waits for; of their transfers the
  /// most urgent go first.
  static constexpr std::size_t ahead_max = 4;
  /// A chain of urgent tasks pauses no longer than this between two of them.
  static constexpr std::int64_t front_pause_ns = 1'000'000;
  /// Below any task's priority.
  static constexpr std::int32_t nothing = -1;

  /// The next task above a priority that can run: one that has arrived, or else the most urgent one
  /// that has waited for tiles which are there now, or else one that is ready. Null without one.
  /// `acquires(task)`: whether all its tiles are there, which are held from then on; it is not
  /// asked for one that has arrived. `take_ready(above)`: the most urgent ready task, or null.
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

  /// Some tiles were released, or have come: waiting tasks may find all of theirs.
  void look_again() { looks_again_ = true; }

  /// The tiles of a task that was ahead have come.
  void arrive(Task& task);

  /// How urgent what is under way is: what streams hold, at most of that priority, and what has
  /// arrived. A chain of tasks with pauses between them counts as under way for a while longer.
  void follow_front(std::int32_t of_streams, std::int64_t now_ns);

  /// The most urgent waiting task, whose tiles the caller is to ask for, so that they come while
  /// others compute; it is ahead then. Null without one, and where is_held_back(). `span_of(task)`:
  /// how much less urgent than what is under way it may be.
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
  /// The last ask() had a task, which is less urgent by more than its job's span than what is under
  /// way: it may be asked for when that has paused for `front_pause_ns`.
  [[nodiscard]] bool is_held_back() const { return is_held_back_; }

  /// Tasks without all of their tiles.
  [[nodiscard]] std::size_t count() const { return waiting_.size() + ahead_; }
  [[nodiscard]] bool has_waiting() const { return !waiting_.empty(); }
  /// None is here at all.
  [[nodiscard]] bool empty() const { return count() == 0 && arrived_.empty(); }

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
  std::int32_t front_ = nothing;  ///< priority of the most urgent task under way lately
  std::int64_t front_ns_ = 0;     ///< when it was
  bool looks_again_ = false;      ///< since the last look, some of `waiting_` may be able to run
  bool is_held_back_ = false;
};

}  // namespace heddle
