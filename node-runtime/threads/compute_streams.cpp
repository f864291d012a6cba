#include "node-runtime/threads/compute_streams.hpp"

#include <algorithm>

namespace heddle {

ComputeStreams::ComputeStreams(Device& device, std::int32_t ordinary, Notifier* notifier) {
  HEDDLE_CHECK(ordinary >= 1, "{} compute streams", ordinary);
  queues_.reserve(static_cast<std::size_t>(ordinary) + 1);
  for (std::int32_t i = 0; i < ordinary; ++i) {
    queues_.emplace_back(device, StreamPriority::normal, notifier);
  }
  queues_.emplace_back(device, StreamPriority::high, notifier);
  for (StreamQueue& queue : queues_) queue.stream().prepare_kernels();
}

std::uint8_t ComputeStreams::number_of(const StreamQueue& queue) const {
  return static_cast<std::uint8_t>(std::min<std::ptrdiff_t>(&queue - queues_.data() + 1, 255));
}

std::size_t ComputeStreams::in_flight() const {
  std::size_t count = 0;
  for (const StreamQueue& queue : queues_) count += queue.count();
  return count;
}

StreamQueue* ComputeStreams::choose() {
  const auto least = std::min_element(
      queues_.begin(), queues_.end() - 1,
      [](const StreamQueue& a, const StreamQueue& b) { return a.count() < b.count(); });
  if (!least->is_full()) return &*least;
  return urgent().is_full() ? nullptr : &urgent();
}

StreamQueue& ComputeStreams::queue_for(const protocol::Task& task, StreamQueue& chosen) {
  const bool overtakes = in_flight() > 0 && task.priority > held_priority();
  return overtakes && !urgent().is_full() ? urgent() : chosen;
}

std::int32_t ComputeStreams::held_priority() const {
  std::int32_t highest = WaitingTasks::nothing;
  for (auto queue = queues_.begin(); queue + 1 != queues_.end(); ++queue) {
    highest = std::max(highest, queue->priority());
  }
  return highest;
}

const LaunchedTask* ComputeStreams::oldest() {
  const LaunchedTask* oldest = nullptr;
  for (StreamQueue& queue : queues_) {
    if (queue.is_empty()) continue;
    const LaunchedTask& of_queue = queue.oldest();
    if (oldest == nullptr || of_queue.launched_ns < oldest->launched_ns) oldest = &of_queue;
  }
  return oldest;
}

void ComputeStreams::abandon(const std::string& reason) {
  for (StreamQueue& queue : queues_) queue.stream().abandon(reason);
}

bool ComputeStreams::is_valid() const {
  return queues_.size() >= 2 &&
         std::ranges::all_of(queues_, [](const StreamQueue& queue) { return queue.is_valid(); });
}

}  // namespace heddle
