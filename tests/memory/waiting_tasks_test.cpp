#include "node-runtime/residency/waiting_tasks.hpp"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "node-runtime/protocol/record_slabs.hpp"
#include "tests/support/seeds.hpp"

namespace heddle {
namespace {

using protocol::Task;

constexpr std::int32_t nothing = WaitingTasks::nothing;

/// A device's tasks: which of them have all of their tiles there, and which are ready.
class WaitingTasksTest : public ::testing::Test {
 protected:
  WaitingTasksTest() = default;
  WaitingTasksTest(const WaitingTasksTest&) = delete;
  WaitingTasksTest& operator=(const WaitingTasksTest&) = delete;
  ~WaitingTasksTest() override {
    for (Task* task : made_) records_.destroy(task);
  }

  Task* make(std::int32_t priority) {
    Task* const task = records_.create(0);
    task->priority = priority;
    made_.push_back(task);
    return task;
  }
  Task* make_ready(std::int32_t priority) { return ready_.emplace_back(make(priority)); }
  void tiles_are_there(const Task* task) { there_.insert(task); }

  Task* next(std::int32_t above = nothing) {
    return tasks_.next(
        above, [this](Task& task) { return there_.contains(&task); },
        [this](std::int32_t priority) -> Task* {
          const auto best = std::ranges::max_element(ready_, {}, &Task::priority);
          if (best == ready_.end() || (*best)->priority <= priority) return nullptr;
          Task* const task = *best;
          ready_.erase(best);
          return task;
        });
  }
  Task* ask(std::int32_t span = std::numeric_limits<std::int32_t>::max()) {
    return tasks_.ask([span](const Task&) { return span; });
  }

  WaitingTasks tasks_;
  std::vector<Task*> ready_;

 private:
  protocol::TaskRecords records_;
  std::vector<Task*> made_;
  std::set<const Task*> there_;
};

}  // namespace

TEST_F(WaitingTasksTest, a_ready_task_whose_tiles_are_there_is_the_next_and_others_wait) {
  Task* const lacking = make_ready(9);
  Task* const good = make_ready(5);
  tiles_are_there(good);
  EXPECT_EQ(next(), good);
  EXPECT_EQ(tasks_.count(), 1U);
  EXPECT_TRUE(tasks_.has_waiting());
  EXPECT_EQ(next(), nullptr);
  EXPECT_EQ(ask(), lacking);
  EXPECT_FALSE(tasks_.has_waiting());
  EXPECT_EQ(tasks_.count(), 1U);  // ahead
  tasks_.arrive(*lacking);
  EXPECT_EQ(tasks_.count(), 0U);
  EXPECT_FALSE(tasks_.empty());
  EXPECT_EQ(next(), lacking);
  EXPECT_TRUE(tasks_.empty());
}

TEST_F(WaitingTasksTest, those_that_wait_are_looked_at_again_only_when_tiles_may_have_come) {
  Task* const task = make_ready(1);
  EXPECT_EQ(next(), nullptr);
  tiles_are_there(task);
  EXPECT_EQ(next(), nullptr);
  tasks_.look_again();
  EXPECT_EQ(next(), task);
}

TEST_F(WaitingTasksTest, the_most_urgent_goes_first_and_equals_in_their_order) {
  std::vector<Task*> tasks;
  for (const std::int32_t priority : {3, 7, 3, 7, 5}) tasks.push_back(make_ready(priority));
  EXPECT_EQ(next(), nullptr);
  for (Task* task : tasks) tiles_are_there(task);
  tasks_.look_again();
  for (const std::size_t i : {1U, 3U, 4U, 0U, 2U}) EXPECT_EQ(next(), tasks[i]) << i;
  EXPECT_EQ(next(), nullptr);
}

TEST_F(WaitingTasksTest, what_has_arrived_goes_before_what_waits_and_what_is_ready) {
  Task* const first = make_ready(1);
  EXPECT_EQ(next(), nullptr);
  EXPECT_EQ(ask(), first);
  Task* const ready = make_ready(8);
  tiles_are_there(ready);
  tasks_.arrive(*first);
  EXPECT_EQ(next(), first);
  EXPECT_EQ(next(), ready);
}

TEST_F(WaitingTasksTest, only_tasks_above_a_priority_are_the_next) {
  Task* const arrived = make_ready(4);
  Task* const waiting = make_ready(3);
  EXPECT_EQ(next(), nullptr);
  EXPECT_EQ(ask(), arrived);
  tasks_.arrive(*arrived);
  tiles_are_there(waiting);
  Task* const ready = make_ready(5);
  tiles_are_there(ready);
  EXPECT_EQ(next(5), nullptr);
  EXPECT_EQ(next(4), ready);
  EXPECT_EQ(next(4), nullptr);
  EXPECT_EQ(next(3), arrived);
  EXPECT_EQ(next(3), nullptr);
  tasks_.look_again();
  EXPECT_EQ(next(2), waiting);
}

TEST_F(WaitingTasksTest, so_many_wait_and_so_many_are_ahead_at_most) {
  constexpr auto many = WaitingTasks::waiting_max + 10;
  for (std::size_t i = 0; i < many; ++i) make_ready(1);
  EXPECT_EQ(next(), nullptr);
  EXPECT_EQ(tasks_.count(), WaitingTasks::waiting_max);
  EXPECT_EQ(ready_.size(), 10U);
  std::vector<Task*> ahead;
  while (Task* const task = ask()) ahead.push_back(task);
  EXPECT_EQ(ahead.size(), WaitingTasks::ahead_max);
  EXPECT_FALSE(tasks_.is_held_back());
  tasks_.arrive(*ahead.front());
  EXPECT_NE(ask(), nullptr);
  EXPECT_EQ(ask(), nullptr);
}

TEST_F(WaitingTasksTest, a_task_is_held_back_for_more_urgent_work_until_that_has_paused) {
  constexpr std::int64_t begin_ns = 5'000'000'000;
  constexpr std::int64_t pause_ns = WaitingTasks::front_pause_ns;
  Task* const task = make_ready(10);
  EXPECT_EQ(next(), nullptr);
  tasks_.follow_front(100, begin_ns);
  EXPECT_EQ(ask(89), nullptr);
  EXPECT_TRUE(tasks_.is_held_back());
  tasks_.follow_front(nothing, begin_ns + pause_ns);  // a pause of a chain
  EXPECT_EQ(ask(89), nullptr);
  tasks_.follow_front(nothing, begin_ns + pause_ns + 1);
  EXPECT_EQ(ask(89), task);
  EXPECT_FALSE(tasks_.is_held_back());
}

TEST_F(WaitingTasksTest, what_has_arrived_is_under_way) {
  Task* const urgent = make_ready(100);
  Task* const task = make_ready(10);
  EXPECT_EQ(next(), nullptr);
  EXPECT_EQ(ask(), urgent);
  tasks_.arrive(*urgent);
  tasks_.follow_front(nothing, 0);
  EXPECT_EQ(ask(89), nullptr);
  EXPECT_EQ(ask(90), task);
}

/// Whoever is asked for arrives, and tiles are there or not as it comes: each task is the next
/// once.
TEST_F(WaitingTasksTest, every_task_goes_once) {
  std::int64_t now_ns = 0;
  for (const std::uint64_t seed : simulation::seeds(200)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 engine(seed);
    const auto below = [&](std::int32_t n) {
      return static_cast<std::int32_t>(engine() % static_cast<std::uint64_t>(n));
    };
    std::vector<Task*> ahead;
    std::set<Task*> gone;
    std::size_t made = 0;
    const auto go = [&](Task* task) {
      if (task == nullptr) return false;
      EXPECT_TRUE(gone.insert(task).second);
      return true;
    };
    for (int step = 0; step < 400 || gone.size() < made; ++step) {
      ASSERT_LT(step, 100'000) << gone.size() << " of " << made;
      if (step < 400) {
        for (std::int32_t i = below(4); i > 0; --i, ++made) {
          Task* const task = make_ready(below(50));
          if (below(3) == 0) tiles_are_there(task);
        }
      }
      if (below(2) == 0) tasks_.look_again();
      while (go(next(below(40) - 30))) {
      }
      now_ns += below(400'000);
      tasks_.follow_front(below(60) - 30, now_ns);
      while (Task* const task = ask(below(50))) {
        ahead.push_back(task);
      }
      EXPECT_LE(ahead.size(), WaitingTasks::ahead_max);
      ASSERT_TRUE(tasks_.is_valid());
      if (ahead.empty() || below(3) == 0) continue;
      tasks_.arrive(*ahead.back());
      ahead.pop_back();
    }
    EXPECT_TRUE(tasks_.empty());
    EXPECT_TRUE(ready_.empty());
  }
}

}  // namespace heddle
