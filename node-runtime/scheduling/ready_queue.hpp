#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "node-runtime/protocol/records.hpp"

namespace heddle {

/// Ready tasks of a place by priority, first in, first out within a priority; push and pop take
/// constant time. Not thread-safe. It links the tasks themselves, whose number the jobs' windows
/// bound, and cannot be full.
///
/// Invariant: bit l of `occupied_` is set <=> level l holds a task; bit w of `summary_` is set
/// <=> word w of `occupied_` is not 0; count() == tasks of all levels.
class ReadyQueue {
 public:
  /// Priorities are 0 .. levels - 1, higher first; others are clamped.
  static constexpr std::int32_t levels = 1024;

  void push(protocol::Task& task) {
    const std::size_t level = level_of(task);
    task.queue_next = nullptr;
    Level& l = levels_[level];
    if (l.last == nullptr) {
      l.first = &task;
      occupied_[level / 64] |= std::uint64_t{1} << level % 64;
      summary_ |= std::uint32_t{1} << level / 64;
    } else {
      l.last->queue_next = &task;
    }
    l.last = &task;
    ++count_;
  }

  /// The highest priority of a queued task; -1 if empty.
  [[nodiscard]] std::int32_t top() const {
    return summary_ == 0 ? -1 : static_cast<std::int32_t>(top_level());
  }

  /// The task that pop() would return.
  [[nodiscard]] const protocol::Task* front() const {
    return summary_ == 0 ? nullptr : levels_[top_level()].first;
  }

  /// Removes the first task of the highest priority; null if empty.
  protocol::Task* pop() {
    if (summary_ == 0) return nullptr;
    const std::size_t level = top_level();
    Level& l = levels_[level];
    protocol::Task* task = l.first;
    l.first = task->queue_next;
    if (l.first == nullptr) {
      l.last = nullptr;
      clear(level);
    }
    --count_;
    return task;
  }

  [[nodiscard]] std::size_t count() const { return count_; }

  /// The invariant, and count() tasks in all.
  [[nodiscard]] bool is_valid() const {
    std::size_t tasks = 0;
    for (std::size_t level = 0; level < levels_.size(); ++level) {
      const Level& l = levels_[level];
      const bool is_marked = (occupied_[level / 64] >> level % 64 & 1) != 0;
      if (is_marked != (l.first != nullptr) || (l.first == nullptr) != (l.last == nullptr)) {
        return false;
      }
      for (const protocol::Task* t = l.first; t != nullptr; t = t->queue_next, ++tasks) {
        if (level_of(*t) != level || (t->queue_next == nullptr) != (t == l.last)) return false;
      }
    }
    for (std::size_t word = 0; word < occupied_.size(); ++word) {
      if ((summary_ >> word & 1) != (occupied_[word] != 0 ? 1U : 0U)) return false;
    }
    return tasks == count_;
  }

  /// Shows tasks from the lowest priority upwards until `show` returns false.
  template <class Show>
  void from_lowest(Show&& show) const {
    for (std::uint32_t words = summary_; words != 0; words &= words - 1) {
      const auto word = static_cast<std::size_t>(std::countr_zero(words));
      for (std::uint64_t bits = occupied_[word]; bits != 0; bits &= bits - 1) {
        const std::size_t level = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        for (protocol::Task* t = levels_[level].first; t != nullptr; t = t->queue_next) {
          if (!show(*t)) return;
        }
      }
    }
  }

  /// Removes a queued task; linear in the queued tasks of its priority.
  void remove(protocol::Task& task) {
    const std::size_t level = level_of(task);
    Level& l = levels_[level];
    protocol::Task* before = nullptr;
    for (protocol::Task* t = l.first; t != &task; t = t->queue_next) before = t;
    (before == nullptr ? l.first : before->queue_next) = task.queue_next;
    if (l.last == &task) l.last = before;
    if (l.first == nullptr) clear(level);
    --count_;
  }

 private:
  [[nodiscard]] static std::size_t level_of(const protocol::Task& task) {
    return static_cast<std::size_t>(std::clamp<std::int32_t>(task.priority, 0, levels - 1));
  }
  /// Marks the level as empty.
  void clear(std::size_t level) {
    const std::size_t word = level / 64;
    occupied_[word] &= ~(std::uint64_t{1} << level % 64);
    if (occupied_[word] == 0) summary_ &= ~(std::uint32_t{1} << word);
  }
  [[nodiscard]] std::size_t top_level() const {
    const auto word = static_cast<std::size_t>(31 - std::countl_zero(summary_));
    return word * 64 + static_cast<std::size_t>(63 - std::countl_zero(occupied_[word]));
  }

  struct Level {
    protocol::Task* first = nullptr;
    protocol::Task* last = nullptr;
  };
  std::array<Level, levels> levels_{};
  std::array<std::uint64_t, levels / 64> occupied_{};
  std::uint32_t summary_ = 0;
  std::size_t count_ = 0;
};

}  // namespace heddle
