#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "node-runtime/threads/stream_queue.hpp"

namespace heddle {

/// The compute streams of one device, and which of them a task goes to: ordinary streams for the
/// next tasks by priority, and one, which the device prefers, for tasks that are more urgent than
/// all that the others hold.
///
/// Invariant (`is_valid()`): that of each stream; at least one stream is ordinary.
///
/// Thread: the device's manager.
class ComputeStreams {
 public:
  /// `ordinary` >= 1 streams, and the urgent one.
  ComputeStreams(Device& device, std::int32_t ordinary, Notifier* notifier);

  /// All of them, the urgent one last.
  [[nodiscard]] std::span<StreamQueue> all() { return queues_; }
  [[nodiscard]] StreamQueue& urgent() { return queues_.back(); }
  /// From 1 on, as traces name it; streams beyond the 255th have that number.
  [[nodiscard]] std::uint8_t number_of(const StreamQueue& queue) const;
  /// Tasks in all streams.
  [[nodiscard]] std::size_t in_flight() const;

  /// The ordinary stream with the fewest tasks; the urgent one when the others are full; null when
  /// all are.
  [[nodiscard]] StreamQueue* choose();
  /// The priority above which a task may be taken for `queue`: the urgent stream takes only tasks
  /// that are more urgent than all that the others hold.
  [[nodiscard]] std::int32_t floor_of(const StreamQueue& queue) const {
    return &queue == &queues_.back() ? held_priority() : WaitingTasks::nothing;
  }
  /// `chosen`, or the urgent stream for a task that is to overtake what the others hold.
  [[nodiscard]] StreamQueue& queue_for(const protocol::Task& task, StreamQueue& chosen);
  /// The highest priority that the ordinary streams hold.
  [[nodiscard]] std::int32_t held_priority() const;
  /// The highest priority that all streams hold.
  [[nodiscard]] std::int32_t highest_priority() const {
    return std::max(held_priority(), queues_.back().priority());
  }
  /// The task that was launched first; null without one.
  [[nodiscard]] const LaunchedTask* oldest();

  /// Makes all streams give up what they hold.
  void abandon(const std::string& reason);
  [[nodiscard]] bool is_valid() const;

 private:
  std::vector<StreamQueue> queues_;  ///< the urgent one last
};

}  // namespace heddle
