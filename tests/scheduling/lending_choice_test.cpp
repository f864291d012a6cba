#include "node-runtime/scheduling/lending_choice.hpp"

#include <algorithm>
#include <deque>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "tests/support/seeds.hpp"

namespace heddle {
namespace {

using protocol::Task;

constexpr double device_seconds = 1e-3;
constexpr std::uint64_t tile_bytes = 1'000'000;
constexpr std::int32_t workers = 4;
constexpr PlaceId first{1};
constexpr PlaceId second{2};

/// Tasks of one kind.
class Tasks final : public LendableTasks {
 public:
  Kind of_all{.seconds = {.worker = workers * device_seconds, .device = device_seconds},
              .devices = 0b11,
              .is_dividable = true,
              .may_be_lent = true};
  std::int32_t parts = 1;  ///< that keep a worker busy each
  bool cancelled = false;
  std::map<const Task*, std::uint64_t> missing;

  [[nodiscard]] const Kind& kind(const Task& /*task*/) override { return of_all; }
  [[nodiscard]] std::int32_t width(const Task& /*task*/) override { return parts; }
  [[nodiscard]] std::uint64_t missing_on_host(const Task& task) const override {
    const auto found = missing.find(&task);
    return found == missing.end() ? 0 : found->second;
  }
  [[nodiscard]] bool is_cancelled(const Task& /*task*/) const override { return cancelled; }
};

/// Two devices and four workers, which together are as fast as a device; a tile takes
/// `tile_seconds` from place to place.
class LendingChoiceTest : public testing::Test {
 protected:
  explicit LendingChoiceTest(double tile_seconds = 0)
      : choice_(
            std::make_shared<DynamicPlacement>(),
            [this](Location /*from*/, Location /*to*/, std::uint64_t bytes) {
              return tile_seconds_ * static_cast<double>(bytes) / tile_bytes;
            },
            known_, 2, workers),
        tile_seconds_(tile_seconds) {
    for (int p = 0; p < 3; ++p) ready_.push_back(std::make_unique<ReadyQueue>());
  }

  Task& add(PlaceId place, std::int32_t priority) {
    Task& task = tasks_.emplace_back();
    task.place = place;
    task.priority = priority;
    ready_[static_cast<std::size_t>(place.value())]->push(task);
    was_lent_ = choice_.became_ready(task, ready_);
    live_.push_back(&task);
    EXPECT_TRUE(choice_.is_valid(live_));
    return task;
  }
  /// Each more urgent than the one before.
  void add_rising(PlaceId place, int count) {
    for (int i = 0; i < count; ++i) add(place, 10 + i);
  }
  /// Tasks that the host takes now.
  std::vector<Task*> take_all() {
    std::vector<Task*> taken;
    while (Task* const task = choice_.take_for_host(ready_)) taken.push_back(task);
    EXPECT_TRUE(choice_.is_valid(live_));
    return taken;
  }
  void finish(const Task& task) {
    choice_.finished(task);
    std::erase(live_, &task);
    EXPECT_TRUE(choice_.is_valid(live_));
  }

  Tasks known_;
  std::vector<std::unique_ptr<ReadyQueue>> ready_;
  std::deque<Task> tasks_;
  LendingChoice choice_;
  double tile_seconds_;
  bool was_lent_ = false;          ///< the task that was added last
  std::vector<const Task*> live_;  ///< that have not finished
};

}  // namespace

TEST_F(LendingChoiceTest, takes_the_least_urgent_task_of_the_device_with_most) {
  add_rising(first, 10);
  add_rising(second, 12);
  Task* const task = choice_.take_for_host(ready_);
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->priority, 10);
  EXPECT_EQ(task->place, second) << "the home stays";
  EXPECT_TRUE(task->is_lent);
  EXPECT_EQ(task->runs_at(), host_place);
  EXPECT_EQ(ready_[2]->count(), 11U);
  EXPECT_EQ(choice_.lent(), 1);
  EXPECT_TRUE(choice_.is_valid(live_));
}

TEST_F(LendingChoiceTest, leaves_a_device_what_it_would_come_to_first) {
  // A worker needs as long as the device for four tasks.
  add_rising(first, 4);
  EXPECT_FALSE(choice_.may_find_for_host(ready_));
  EXPECT_EQ(choice_.take_for_host(ready_), nullptr);
  add(first, 20);
  EXPECT_TRUE(choice_.may_find_for_host(ready_));
  EXPECT_NE(choice_.take_for_host(ready_), nullptr);
  EXPECT_EQ(choice_.take_for_host(ready_), nullptr) << "four are left";
}

TEST_F(LendingChoiceTest, divided_tasks_need_the_time_of_all_workers_one_after_the_other) {
  known_.parts = 16;
  add_rising(first, 20);
  // Each takes 1 ms: the first one at once, the next ones behind it.
  const std::vector<Task*> taken = take_all();
  EXPECT_EQ(taken.size(), 3U) << "for each worker three parts at a time";
  finish(*taken.front());
  EXPECT_EQ(take_all().size(), 1U);
}

TEST_F(LendingChoiceTest, holds_three_tasks_for_each_worker_at_most) {
  add_rising(first, 100);
  const std::vector<Task*> taken = take_all();
  EXPECT_EQ(taken.size(), 3U * workers);
  for (const Task* task : taken) finish(*task);
  EXPECT_EQ(take_all().size(), 3U * workers);
}

TEST_F(LendingChoiceTest, takes_fewer_where_the_host_has_tasks_of_its_own) {
  for (int i = 0; i < 3 * workers - 1; ++i) add(host_place, 1);
  add_rising(first, 100);
  EXPECT_EQ(take_all().size(), 1U);
  finish(*ready_[0]->pop());
  EXPECT_EQ(take_all().size(), 1U);
}

TEST_F(LendingChoiceTest, prefers_a_task_whose_tiles_the_host_has) {
  add_rising(first, 10);
  for (int i = 0; i < 10; ++i) {
    if (i != 5) known_.missing[&tasks_[static_cast<std::size_t>(i)]] = 3 * tile_bytes;
  }
  const Task* const task = choice_.take_for_host(ready_);
  ASSERT_EQ(task, &tasks_[5]);
  EXPECT_EQ(choice_.take_for_host(ready_), &tasks_[0]) << "of others the least urgent";
}

/// A worker needs 4 ms, the device for nine tasks 9 ms.
TEST_F(LendingChoiceTest, counts_the_way_of_tiles_that_the_host_lacks) {
  add_rising(first, 9);
  for (Task& task : tasks_) known_.missing[&task] = 3 * tile_bytes;
  tile_seconds_ = 1.7e-3;
  EXPECT_EQ(choice_.take_for_host(ready_), nullptr);
  tile_seconds_ = 1.6e-3;
  EXPECT_NE(choice_.take_for_host(ready_), nullptr);
}

TEST_F(LendingChoiceTest, takes_nothing_that_workers_may_not_run) {
  using Change = void (*)(Tasks&);
  for (const Change change : {Change([](Tasks& tasks) { tasks.of_all.may_be_lent = false; }),
                              Change([](Tasks& tasks) { tasks.of_all.runs_on_workers = false; }),
                              Change([](Tasks& tasks) { tasks.cancelled = true; })}) {
    const Tasks::Kind before = known_.of_all;
    add_rising(first, 40);
    change(known_);
    EXPECT_FALSE(choice_.may_find_for_host(ready_));
    EXPECT_TRUE(take_all().empty());
    known_.of_all = before;
    known_.cancelled = false;
    while (Task* const task = ready_[1]->pop()) finish(*task);
  }
}

TEST_F(LendingChoiceTest, takes_at_once_what_the_device_lacks_and_workers_can_divide) {
  known_.of_all.devices = 0b10;
  add(second, 1);
  EXPECT_FALSE(was_lent_) << "the second device has the kernel";
  const Task& task = add(first, 1);
  EXPECT_TRUE(was_lent_);
  EXPECT_TRUE(task.is_lent);
  EXPECT_EQ(ready_[1]->count(), 0U);
  EXPECT_EQ(choice_.lent(), 1);
  known_.of_all.is_dividable = false;
  add(first, 1);
  EXPECT_FALSE(was_lent_) << "it is staged: a worker runs it whole";
  known_.of_all.is_dividable = true;
  known_.cancelled = true;
  add(first, 1);
  EXPECT_FALSE(was_lent_);
}

TEST_F(LendingChoiceTest, decides_once_for_each_kind_by_what_all_devices_and_all_workers_need) {
  const double both_devices = device_seconds / 2;
  EXPECT_TRUE(
      choice_.may_lend({.worker = 15.9 * workers * both_devices, .device = device_seconds}));
  EXPECT_FALSE(
      choice_.may_lend({.worker = 16.1 * workers * both_devices, .device = device_seconds}));
}

TEST_F(LendingChoiceTest, keeps_its_invariant_in_random_sequences) {
  for (const std::uint64_t seed : simulation::seeds(100)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    known_.parts = static_cast<std::int32_t>(1 + random() % 6);
    known_.of_all.devices = random() % 3 == 0 ? 0b10 : 0b11;
    std::vector<Task*> on_host;
    for (int step = 0; step < 300; ++step) {
      const auto place = static_cast<std::int32_t>(random() % 3);
      const auto index = static_cast<std::size_t>(place);
      if (random() % 2 == 0) {
        Task& task = add(PlaceId{place}, static_cast<std::int32_t>(random() % 50));
        if (was_lent_) on_host.push_back(&task);
      } else if (random() % 3 == 0 && !on_host.empty()) {
        finish(*on_host.back());
        on_host.pop_back();
      } else if (random() % 3 == 0) {
        for (Task* const task : take_all()) on_host.push_back(task);
      } else if (const Task* const task = ready_[index]->pop()) {
        finish(*task);
      }
      ASSERT_FALSE(HasFailure());
    }
    for (Task* const task : on_host) finish(*task);
    for (const auto& queue : ready_) {
      while (const Task* const task = queue->pop()) finish(*task);
    }
    ASSERT_TRUE(live_.empty());
    tasks_.clear();
  }
}

/// Workers that take `times` as long as the device for a task, and pull until nothing is left, in
/// virtual time.
TEST_F(LendingChoiceTest, host_and_device_end_at_the_same_time) {
  for (const double times : {1.0, 3.0, 10.0}) {
    known_.of_all.seconds.worker = workers * times * device_seconds;
    known_.parts = workers;
    constexpr int count = 110;
    add_rising(first, count);
    const double host_task = times * device_seconds;
    double host_ns = 0;
    double device_ns = 0;
    int lent = 0;
    std::deque<Task*> host;
    for (;;) {
      for (Task* const task : take_all()) host.push_back(task);
      if (host.empty() && ready_[1]->count() == 0) break;
      const bool host_is_next = !host.empty() && (host_ns <= device_ns || ready_[1]->count() == 0);
      if (host_is_next) {
        finish(*host.front());
        host.pop_front();
        host_ns += host_task;
        ++lent;
      } else {
        finish(*ready_[1]->pop());
        device_ns += device_seconds;
      }
    }
    const double best = count * device_seconds * times / (1 + times);
    EXPECT_LT(std::max(host_ns, device_ns), best + 1.5 * host_task) << times;
    EXPECT_NEAR(lent, count / (1 + times), 3) << times;
    tasks_.clear();
  }
}

}  // namespace heddle
