#include "node-runtime/scheduling/ready_queue.hpp"

#include <cstdint>
#include <deque>
#include <gtest/gtest.h>
#include <list>
#include <random>
#include <vector>

namespace heddle {
namespace {

class ReadyQueueTest : public testing::Test {
 protected:
  protocol::Task& push(std::int32_t priority) {
    protocol::Task& task = tasks_.emplace_back();
    task.priority = priority;
    queue_.push(task);
    return task;
  }

  std::deque<protocol::Task> tasks_;
  ReadyQueue queue_;
};

}  // namespace

TEST_F(ReadyQueueTest, returns_the_highest_priority_first_and_equal_ones_in_their_order) {
  const protocol::Task& low = push(3);
  const protocol::Task& first = push(900);
  const protocol::Task& second = push(900);
  EXPECT_EQ(queue_.top(), 900);
  EXPECT_EQ(queue_.front(), &first);
  EXPECT_EQ(queue_.pop(), &first);
  EXPECT_EQ(queue_.pop(), &second);
  EXPECT_EQ(queue_.top(), 3);
  EXPECT_EQ(queue_.pop(), &low);
  EXPECT_EQ(queue_.pop(), nullptr);
  EXPECT_EQ(queue_.top(), -1);
  EXPECT_EQ(queue_.front(), nullptr);
}

TEST_F(ReadyQueueTest, clamps_priorities_to_its_levels) {
  const protocol::Task& below = push(-7);
  const protocol::Task& above = push(5000);
  EXPECT_EQ(queue_.top(), ReadyQueue::levels - 1);
  EXPECT_EQ(queue_.pop(), &above);
  EXPECT_EQ(queue_.top(), 0);
  EXPECT_EQ(queue_.pop(), &below);
}

TEST_F(ReadyQueueTest, shows_tasks_from_the_lowest_priority_until_told_to_stop) {
  push(70);
  push(5);
  push(1000);
  push(5);
  std::vector<std::int32_t> shown;
  queue_.from_lowest([&](const protocol::Task& task) {
    shown.push_back(task.priority);
    return shown.size() < 3;
  });
  EXPECT_EQ(shown, (std::vector<std::int32_t>{5, 5, 70}));
  EXPECT_EQ(queue_.count(), 4U);
}

TEST_F(ReadyQueueTest, agrees_with_a_list_under_random_pushes_pops_and_removals) {
  std::mt19937 random(7);
  std::list<protocol::Task*> model;  // in the order of pop()
  const auto number = [&](std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(random);
  };
  for (int step = 0; step < 2000; ++step) {
    const std::size_t choice = model.empty() ? 0 : number(4);
    if (choice < 2) {
      protocol::Task& task = push(static_cast<std::int32_t>(number(6) * 200));
      auto behind = model.begin();
      while (behind != model.end() && (*behind)->priority >= task.priority) ++behind;
      model.insert(behind, &task);
    } else if (choice == 2) {
      ASSERT_EQ(queue_.pop(), model.front());
      model.pop_front();
    } else {
      const auto removed =
          std::next(model.begin(), static_cast<std::ptrdiff_t>(number(model.size())));
      queue_.remove(**removed);
      model.erase(removed);
    }
    ASSERT_EQ(queue_.count(), model.size());
    ASSERT_EQ(queue_.front(), model.empty() ? nullptr : model.front());
    ASSERT_TRUE(queue_.is_valid());
  }
}

}  // namespace heddle
