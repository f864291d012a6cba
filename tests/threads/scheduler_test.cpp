#include "node-runtime/threads/scheduler.hpp"

#include <gtest/gtest.h>

#include "tests/threads/engine_parts.hpp"

namespace heddle {
namespace {

constexpr PlaceId device{1};

/// Ready tasks of a job at any place.
class SchedulerTest : public ::testing::Test {
 protected:
  /// A ready task per priority, at `place`.
  void make_ready(PlaceId place, std::initializer_list<std::int32_t> priorities) {
    for (const std::int32_t priority : priorities) {
      node_.append(*job_, testing::nothing, next_tile_++, priority);
    }
    const auto tasks = node_.take_ready();
    ASSERT_EQ(tasks.size(), priorities.size());
    for (protocol::Task* task : tasks) task->place = place;
    scheduler_.make_ready(tasks, wakes_);
    scheduler_.publish();
    EXPECT_TRUE(scheduler_.is_valid());
  }
  std::int32_t take_for_host() {
    const HostWork work = scheduler_.take_for_host(0);
    scheduler_.publish();
    EXPECT_TRUE(scheduler_.is_valid());
    return work.task == nullptr ? -1 : work.task->priority;
  }

  testing::LoneProtocol node_;
  std::shared_ptr<JobRecord> job_ = node_.begin("job");
  Counters counters_;
  Scheduler scheduler_{3, 2, {}, nullptr, counters_};
  Wakes wakes_;
  std::int32_t next_tile_ = 0;
};

}  // namespace

TEST_F(SchedulerTest, gives_the_host_the_most_urgent_task_first) {
  make_ready(host_place, {3, 9, 5});
  EXPECT_EQ(wakes_.cpu, 3U);
  EXPECT_EQ(scheduler_.ready_hint(), 3U);
  EXPECT_EQ(take_for_host(), 9);
  EXPECT_EQ(take_for_host(), 5);
  EXPECT_EQ(take_for_host(), 3);
  EXPECT_EQ(take_for_host(), -1);
  EXPECT_EQ(scheduler_.ready_hint(), 0U);
  EXPECT_EQ(counters_.running(), 3);
}

TEST_F(SchedulerTest, wakes_the_device_whose_task_it_is) {
  make_ready(PlaceId{2}, {1});
  EXPECT_EQ(wakes_.cpu, 0U);
  EXPECT_EQ(wakes_.devices, 2U);
  EXPECT_EQ(scheduler_.ready_hint(), 0U) << "nothing for the host";
  EXPECT_EQ(take_for_host(), -1);
}

TEST_F(SchedulerTest, gives_a_device_what_is_more_urgent_than_what_it_has) {
  make_ready(device, {4, 8});
  std::size_t left = 0;
  EXPECT_EQ(scheduler_.take_for_device(device, 8, left), nullptr);
  EXPECT_EQ(left, 2U);
  protocol::Task* const task = scheduler_.take_for_device(device, 7, left);
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->priority, 8);
  EXPECT_EQ(left, 1U);
  EXPECT_EQ(counters_.running(), 1);
}

TEST_F(SchedulerTest, gives_the_host_staged_tasks_before_all_others) {
  make_ready(device, {1});
  make_ready(host_place, {100});
  std::size_t left = 0;
  protocol::Task* const task = scheduler_.take_for_device(device, -1, left);
  scheduler_.stage(*task);
  scheduler_.publish();
  EXPECT_EQ(scheduler_.ready_hint(), 2U);
  const HostWork first = scheduler_.take_for_host(1);
  EXPECT_EQ(first.task, task);
  EXPECT_TRUE(first.is_staged);
  EXPECT_EQ(counters_.running(), 1) << "counted when its device took it";
  EXPECT_EQ(take_for_host(), 100);
}

TEST(ReadyQueue, notices_a_task_that_is_not_where_its_priority_says) {
  testing::LoneProtocol node;
  const auto job = node.begin("job");
  ReadyQueue queue;
  EXPECT_TRUE(queue.is_valid());
  node.append(*job, testing::nothing, 0, 5);
  protocol::Task* const task = node.take_ready().front();
  queue.push(*task);
  EXPECT_TRUE(queue.is_valid());
  task->priority = 6;
  EXPECT_FALSE(queue.is_valid());
}

}  // namespace heddle
