#include "node-runtime/threads/stream_queue.hpp"

#include <gtest/gtest.h>
#include <vector>

#include "node-runtime/device/devices.hpp"
#include "node-runtime/threads/compute_streams.hpp"

namespace heddle {
namespace {

class StreamQueueTest : public ::testing::Test {
 protected:
  [[nodiscard]] Device& device() const { return *set_.devices[0]; }
  [[nodiscard]] protocol::Task& task(std::int32_t priority) {
    protocol::Task& made = *tasks_.emplace_back(std::make_unique<protocol::Task>());
    made.priority = priority;
    return made;
  }
  /// Appends one task for each priority.
  void push(StreamQueue& queue, const std::vector<std::int32_t>& priorities) {
    for (const std::int32_t priority : priorities) {
      queue.push(task(priority), true, ++now_ns_);
      EXPECT_TRUE(queue.is_valid());
    }
  }
  void fill(StreamQueue& queue, std::int32_t priority) {
    while (!queue.is_full()) push(queue, {priority});
  }

  DeviceSet set_ = make_devices({DeviceBackend::emulated, 1, {}, {}});
  std::vector<std::unique_ptr<protocol::Task>> tasks_;
  std::int64_t now_ns_ = 0;
};

}  // namespace

TEST_F(StreamQueueTest, gives_tasks_back_in_the_order_of_their_launch) {
  StreamQueue queue(device(), StreamPriority::normal, nullptr);
  std::int32_t next = 0;
  std::int32_t expected = 0;
  push(queue, {next++, next++});
  for (int round = 0; round < 7; ++round) {
    push(queue, {next++});
    EXPECT_TRUE(queue.is_full());
    EXPECT_EQ(queue.oldest().task->priority, expected++);
    queue.pop(now_ns_);
    EXPECT_TRUE(queue.is_valid());
  }
  EXPECT_EQ(queue.count(), 2U);
}

TEST_F(StreamQueueTest, has_the_highest_priority_of_its_tasks) {
  StreamQueue queue(device(), StreamPriority::normal, nullptr);
  EXPECT_EQ(queue.priority(), WaitingTasks::nothing);
  push(queue, {5, 9, 7});
  EXPECT_EQ(queue.priority(), 9);
  queue.pop(now_ns_);
  queue.pop(now_ns_);
  EXPECT_EQ(queue.priority(), 7);
  queue.pop(now_ns_);
  EXPECT_EQ(queue.priority(), WaitingTasks::nothing);
  EXPECT_TRUE(queue.is_empty());
}

TEST_F(StreamQueueTest, a_kernel_begins_when_the_one_before_it_has_ended) {
  StreamQueue queue(device(), StreamPriority::normal, nullptr);
  queue.push(task(1), true, 100);
  queue.push(task(1), true, 110);
  EXPECT_EQ(queue.started_ns(), 100);
  queue.pop(150);
  EXPECT_EQ(queue.started_ns(), 150);
  queue.pop(170);
  queue.push(task(1), true, 500);
  EXPECT_EQ(queue.started_ns(), 500);
}

TEST_F(StreamQueueTest, a_new_entry_has_no_result_of_the_kernel_before_it) {
  StreamQueue queue(device(), StreamPriority::normal, nullptr);
  for (std::size_t i = 0; i <= StreamQueue::in_flight_max; ++i) {
    LaunchedTask& launched = queue.push(task(1), false, ++now_ns_);
    EXPECT_EQ(launched.info, 0);
    EXPECT_FALSE(launched.is_acquired);
    launched.info = 7;
    queue.pop(now_ns_);
  }
}

TEST_F(StreamQueueTest, the_next_task_goes_to_the_stream_with_the_fewest) {
  ComputeStreams streams(device(), 2, nullptr);
  StreamQueue& first = streams.all()[0];
  StreamQueue& second = streams.all()[1];
  EXPECT_EQ(streams.choose(), &first);
  push(first, {1});
  EXPECT_EQ(streams.choose(), &second);
  push(second, {1, 1});
  EXPECT_EQ(streams.choose(), &first);
  EXPECT_EQ(streams.in_flight(), 3U);
  EXPECT_TRUE(streams.is_valid());
}

TEST_F(StreamQueueTest, only_urgent_tasks_are_taken_when_all_other_streams_are_full) {
  ComputeStreams streams(device(), 2, nullptr);
  EXPECT_EQ(streams.floor_of(streams.all()[0]), WaitingTasks::nothing);
  fill(streams.all()[0], 4);
  fill(streams.all()[1], 6);
  ASSERT_EQ(streams.choose(), &streams.urgent());
  EXPECT_EQ(streams.floor_of(streams.urgent()), 6);
  fill(streams.urgent(), 9);
  EXPECT_EQ(streams.choose(), nullptr);
  EXPECT_EQ(streams.held_priority(), 6) << "the urgent stream is not to be overtaken";
  EXPECT_EQ(streams.highest_priority(), 9);
}

TEST_F(StreamQueueTest, a_task_overtakes_where_it_is_more_urgent_than_all_that_is_held) {
  ComputeStreams streams(device(), 2, nullptr);
  StreamQueue& first = streams.all()[0];
  EXPECT_EQ(&streams.queue_for(task(9), first), &first) << "there is nothing to overtake";
  push(streams.all()[1], {5});
  EXPECT_EQ(&streams.queue_for(task(5), first), &first);
  EXPECT_EQ(&streams.queue_for(task(6), first), &streams.urgent());
  fill(streams.urgent(), 6);
  EXPECT_EQ(&streams.queue_for(task(7), first), &first) << "the urgent stream is full";
}

TEST_F(StreamQueueTest, the_oldest_kernel_of_all_streams_was_launched_first) {
  ComputeStreams streams(device(), 1, nullptr);
  EXPECT_EQ(streams.oldest(), nullptr);
  push(streams.urgent(), {3});
  push(streams.all()[0], {2});
  EXPECT_EQ(streams.oldest()->task->priority, 3);
  streams.urgent().pop(now_ns_);
  EXPECT_EQ(streams.oldest()->task->priority, 2);
  EXPECT_EQ(streams.number_of(streams.all()[0]), 1);
  EXPECT_EQ(streams.number_of(streams.urgent()), 2);
}

}  // namespace heddle
