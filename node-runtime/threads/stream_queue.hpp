#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/assert.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/protocol/records.hpp"
#include "node-runtime/residency/waiting_tasks.hpp"

namespace heddle {

/// A task whose kernel a stream holds.
struct LaunchedTask {
  protocol::Task* task = nullptr;
  bool is_acquired = false;  ///< its tiles are pinned, and its kernel was launched
  std::unique_ptr<Event> event;
  std::int64_t info = 0;  ///< of the kernel, once the event is complete
  std::int64_t launched_ns = 0;
};

/// One compute stream and the tasks that it holds, oldest first: a stream works in order.
///
/// Invariant (`is_valid()`): count <= in_flight_max;  first < in_flight_max;  each of the `count`
/// entries from `first` on has a task, and launch times do not decrease from one to the next.
///
/// Thread: the device's manager. Entries stay where they are: kernels write to `info`.
class StreamQueue {
 public:
  /// One kernel runs, the others are queued behind it, so that the device does not wait for the
  /// manager. More would leave less to choose by priority.
  static constexpr std::size_t in_flight_max = 3;

  StreamQueue(Device& device, StreamPriority priority, Notifier* notifier)
      : stream_(device.create_stream(priority, notifier)) {
    for (LaunchedTask& entry : entries_) entry.event = device.create_event();
  }

  [[nodiscard]] Stream& stream() { return *stream_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] bool is_empty() const { return count_ == 0; }
  [[nodiscard]] bool is_full() const { return count_ == in_flight_max; }

  [[nodiscard]] LaunchedTask& oldest() {
    HEDDLE_CHECK(count_ > 0, "an empty stream");
    return entries_[first_];
  }
  /// Appends a task, whose kernel the caller launches, and whose event it records next.
  LaunchedTask& push(protocol::Task& task, bool is_acquired, std::int64_t now_ns) {
    HEDDLE_CHECK(!is_full(), "a stream that holds {} kernels", count_);
    LaunchedTask& entry = at(count_++);
    entry.task = &task;
    entry.is_acquired = is_acquired;
    entry.info = 0;
    entry.launched_ns = now_ns;
    return entry;
  }
  /// Removes the oldest task, whose kernel ended at `end_ns`.
  void pop(std::int64_t end_ns) {
    HEDDLE_CHECK(count_ > 0, "an empty stream");
    entries_[first_].task = nullptr;
    first_ = (first_ + 1) % in_flight_max;
    --count_;
    free_since_ns_ = end_ns;
  }
  /// When the kernel of the oldest task began: at its launch, or when the stream became free.
  [[nodiscard]] std::int64_t started_ns() { return std::max(oldest().launched_ns, free_since_ns_); }

  /// The highest priority of its tasks; WaitingTasks::nothing without one.
  [[nodiscard]] std::int32_t priority() const {
    std::int32_t highest = WaitingTasks::nothing;
    for (std::size_t i = 0; i < count_; ++i) highest = std::max(highest, at(i).task->priority);
    return highest;
  }

  [[nodiscard]] bool is_valid() const {
    if (count_ > in_flight_max || first_ >= in_flight_max) return false;
    for (std::size_t i = 0; i < in_flight_max; ++i) {
      if ((at(i).task != nullptr) != (i < count_)) return false;
      if (i > 0 && i < count_ && at(i).launched_ns < at(i - 1).launched_ns) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] LaunchedTask& at(std::size_t i) { return entries_[(first_ + i) % in_flight_max]; }
  [[nodiscard]] const LaunchedTask& at(std::size_t i) const {
    return entries_[(first_ + i) % in_flight_max];
  }

  std::unique_ptr<Stream> stream_;
  std::array<LaunchedTask, in_flight_max> entries_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::int64_t free_since_ns_ = 0;  ///< end of the last finished kernel
};

}  // namespace heddle
