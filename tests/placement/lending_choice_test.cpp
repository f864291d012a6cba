#include "node-runtime/placement/lending_choice.hpp"

#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace heddle {
namespace {

using protocol::Task;

constexpr double kernel_seconds = 1e-3;
constexpr std::uint64_t tile_bytes = 1'000'000;

/// Tasks whose costs are known, on devices 1 and 2 and some workers.
class Tasks final : public LendableTasks {
 public:
  double worker = 1;       ///< seconds on one worker
  std::int32_t parts = 1;  ///< that keep a worker busy each
  int widths_asked = 0;
  Visit bytes{2 * tile_bytes, tile_bytes, tile_bytes};
  std::set<const Task*> away;  ///< their tiles are not on their device
  std::set<const Task*> claimed;
  bool devices_can = true;
  bool homes_can = true;
  bool workers_can = true;
  bool host_has_memory = true;
  bool is_fill = false;
  Kind of_all;

  [[nodiscard]] const Kind& kind(const Task& /*task*/) override {
    of_all = {{worker, kernel_seconds}, homes_can ? ~std::uint64_t{0} : 0};
    return of_all;
  }
  [[nodiscard]] std::int32_t width(const Task& /*task*/) override {
    ++widths_asked;
    return parts;
  }
  [[nodiscard]] Lacking lacking(const Task& /*task*/) const override {
    return {.host = homes_can ? 0 : bytes.there};
  }
  [[nodiscard]] Visit visit(const Task& /*task*/) const override { return bytes; }
  [[nodiscard]] bool may_move(const Task& /*task*/) const override { return workers_can; }
  [[nodiscard]] bool is_dividable(const Task& /*task*/) const override { return !is_fill; }
  [[nodiscard]] bool may_visit(const Task& /*task*/, PlaceId /*device*/) override {
    return devices_can;
  }
  [[nodiscard]] bool back(const Task& /*task*/) override { return host_has_memory; }
  [[nodiscard]] bool claim(const Task& task) override {
    if (away.contains(&task)) return false;
    claimed.insert(&task);
    return true;
  }
};

/// A node with two devices, whose links take `seconds_per_tile`.
struct TwoDevices {
  explicit TwoDevices(double seconds_per_tile = 0, std::shared_ptr<const PlacementPolicy> policy =
                                                       std::make_shared<DynamicPlacement>())
      : choice(
            std::move(policy),
            [seconds_per_tile](Location /*from*/, Location /*to*/, std::uint64_t bytes) {
              return seconds_per_tile * static_cast<double>(bytes) / tile_bytes;
            },
            known, 2, 4) {
    for (int p = 0; p < 3; ++p) ready.push_back(std::make_unique<ReadyQueue>());
  }

  Task& add(PlaceId place, std::int32_t priority) {
    Task& task = tasks.emplace_back();
    task.place = place;
    task.priority = priority;
    ready[static_cast<std::size_t>(place.value())]->push(task);
    static_cast<void>(choice.became_ready(task, ready, now_ns));
    return task;
  }
  /// Its four workers are together as fast as a device, and all of them work on a task.
  void let_workers_be_fast() {
    known.worker = 4 * kernel_seconds;
    known.parts = 4;
  }
  /// So many, each more urgent than the one before.
  void add_rising(PlaceId place, int count) {
    for (int i = 0; i < count; ++i) add(place, 10 + i);
  }
  /// For a device that has had nothing of its own for long.
  Task* visitor(PlaceId device, std::uint64_t room = tile_bytes) {
    static_cast<void>(visitor_now(device, room));  // it sees who has too much
    now_ns += 100'000'000;
    return visitor_now(device, room);
  }
  Task* visitor_now(PlaceId device, std::uint64_t room = tile_bytes) {
    return choice.take_for_device(ready, {device, room, idle_since_ns}, now_ns);
  }
  /// The next of a device's tasks has run.
  void finish_one(PlaceId device) {
    Task* const task = ready[static_cast<std::size_t>(device.value())]->pop();
    choice.finished(*task, now_ns);
    idle_since_ns = now_ns;
  }

  Tasks known;
  std::vector<std::unique_ptr<ReadyQueue>> ready;
  std::deque<Task> tasks;
  LendingChoice choice;
  std::int64_t now_ns = 0;
  std::int64_t idle_since_ns = 0;  ///< whoever asks for a visitor
};

constexpr PlaceId first{1};
constexpr PlaceId second{2};

}  // namespace

TEST(LendingChoice, gives_an_idle_device_the_least_urgent_task_of_the_busiest_one) {
  TwoDevices node;
  node.add_rising(first, 12);
  Task* const task = node.visitor(second);
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->priority, 10);
  EXPECT_EQ(task->place, first) << "the home stays";
  EXPECT_EQ(task->runs_at(), second);
  EXPECT_TRUE(task->is_lent_to_device());
  EXPECT_FALSE(task->is_lent_to_host());
  EXPECT_TRUE(node.known.claimed.contains(task));
  EXPECT_EQ(node.ready[1]->count(), 11U);
  EXPECT_EQ(node.choice.visits(), 1);
  EXPECT_EQ(node.choice.lent(), 0);
}

TEST(LendingChoice, leaves_a_device_what_it_comes_to_soon) {
  TwoDevices node;
  node.add_rising(first, static_cast<int>(LendingChoice::kept_by_device));
  EXPECT_FALSE(node.choice.has_surplus(node.ready));
  EXPECT_EQ(node.visitor(second), nullptr);
  node.add(first, 1);
  EXPECT_TRUE(node.choice.has_surplus(node.ready));
  EXPECT_NE(node.visitor(second), nullptr);
  EXPECT_EQ(node.visitor(second), nullptr);
}

/// Two tiles there, the kernel, one tile back: 4 ms.
TEST(LendingChoice, gives_a_device_nothing_before_it_has_had_nothing_for_as_long_as_a_visit_takes) {
  TwoDevices node(1e-3);
  const auto tries_at = [&](std::int64_t now_ns) {
    node.now_ns = now_ns;
    return node.visitor_now(second) != nullptr;
  };
  node.now_ns = 1'000'000'000;  // nobody has had anything for long
  node.add(second, 1);
  node.add_rising(first, 40);
  node.now_ns += 1'000'000;
  node.finish_one(second);
  const std::int64_t idle_ns = node.now_ns;
  EXPECT_FALSE(tries_at(idle_ns));
  EXPECT_FALSE(tries_at(idle_ns + 3'999'000));
  EXPECT_TRUE(tries_at(idle_ns + 4'100'000));
  EXPECT_TRUE(tries_at(idle_ns + 4'100'000)) << "the next one at once";
  node.add(second, 1);
  node.now_ns += 1'000'000;
  node.finish_one(second);
  EXPECT_FALSE(tries_at(node.now_ns)) << "what it has of its own comes again";
}

TEST(LendingChoice, waits_at_the_begin_of_work_as_if_a_device_had_just_come_to_its_end) {
  TwoDevices node;
  node.now_ns = 1'000'000'000;
  node.add_rising(first, 40);
  EXPECT_EQ(node.visitor_now(second), nullptr);
  node.now_ns += 1'000'000;  // a kernel
  EXPECT_NE(node.visitor_now(second), nullptr);
}

TEST(LendingChoice, begins_to_wait_anew_with_each_work_of_the_node) {
  TwoDevices node;
  node.add_rising(first, 40);
  EXPECT_EQ(node.visitor_now(second), nullptr);
  node.now_ns += 1'000'000'000;  // whoever had too much is done with it, and nobody has looked
  node.choice.begin_work(true);
  EXPECT_EQ(node.visitor_now(second), nullptr);
  node.now_ns += 1'000'000;
  EXPECT_NE(node.visitor_now(second), nullptr);
}

TEST(LendingChoice, without_loads_lends_nothing_to_the_host_and_gives_devices_what_they_ask_for) {
  TwoDevices node;
  node.let_workers_be_fast();
  node.choice.begin_work(false);
  node.add_rising(first, 40);
  EXPECT_FALSE(node.choice.may_find_for_host(node.ready));
  EXPECT_EQ(node.choice.take_for_host(node.ready, node.now_ns), nullptr);
  Task* const task = node.visitor(second);
  ASSERT_NE(task, nullptr);
  node.choice.finished(*task, node.now_ns);
  node.choice.begin_work(true);
  node.add_rising(first, 40);
  EXPECT_TRUE(node.choice.may_find_for_host(node.ready));
}

TEST(LendingChoice, counts_what_becomes_ready_from_when_loads_are_kept) {
  TwoDevices node;
  node.let_workers_be_fast();
  node.choice.begin_work(false);
  node.add_rising(first, 12);
  node.choice.keep_loads();
  EXPECT_EQ(node.choice.take_for_host(node.ready, node.now_ns), nullptr) << "it knows of none";
  node.add_rising(first, 12);
  EXPECT_NE(node.choice.take_for_host(node.ready, node.now_ns), nullptr);
  while (node.ready[1]->count() > 0) node.finish_one(first);
  EXPECT_EQ(node.choice.take_for_host(node.ready, node.now_ns), nullptr);
}

TEST(LendingChoice, knows_by_what_devices_have_shown_whether_anything_may_come_to_the_host) {
  TwoDevices node;
  // All workers together need so many times what both devices should.
  const auto may_come = [&node](double times) {
    return node.choice.may_come_to_host({times * kernel_seconds / 2 * 4, kernel_seconds});
  };
  EXPECT_TRUE(may_come(15));
  EXPECT_FALSE(may_come(40));
  EXPECT_FALSE(node.choice.has_shown());
  for (int i = 0; i < 40; ++i) {
    node.add(first, 10);
    node.now_ns += 4'000'000;
    node.finish_one(first);
  }
  EXPECT_TRUE(node.choice.has_shown());
  EXPECT_TRUE(may_come(40)) << "a device is four times as slow";
  EXPECT_FALSE(may_come(80));
}

TEST(LendingChoice, of_one_device_nothing_visits_itself) {
  TwoDevices node;
  node.add_rising(first, 20);
  EXPECT_EQ(node.visitor(first), nullptr) << "the other one has none";
}

TEST(LendingChoice, counts_the_way_there_and_back) {
  // The home has run the last of twelve tasks after 12 ms. There: 2 tiles while nothing else is to
  // do, the kernel, and 1 tile back, both for twice as long.
  for (const double tile_ms : {2.4, 2.6}) {
    TwoDevices node(tile_ms * 1e-3);
    node.add_rising(first, 12);
    const double away_ms = 2 * tile_ms + 2 * (1 + tile_ms);
    EXPECT_EQ(node.visitor(second) != nullptr, away_ms < 12) << tile_ms;
  }
}

TEST(LendingChoice, ends_when_both_have_about_as_much_to_do) {
  TwoDevices node;
  node.add_rising(first, 40);
  ASSERT_NE(node.visitor(second), nullptr);
  int visits = 1;
  while (node.visitor_now(second) != nullptr) ++visits;
  EXPECT_NEAR(visits, 20, 1);
}

TEST(LendingChoice, passes_over_tasks_whose_tiles_are_elsewhere) {
  TwoDevices node;
  const Task& least = node.add(first, 1);
  node.add_rising(first, 12);
  node.known.away.insert(&least);
  const Task* const task = node.visitor(second);
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->priority, 10);
  for (const Task& each : node.tasks) node.known.away.insert(&each);
  EXPECT_EQ(node.visitor(second), nullptr);
  EXPECT_EQ(node.ready[1]->count(), 12U) << "they are all still there";
}

TEST(LendingChoice, leaves_tasks_at_home_whose_tiles_have_no_room_there) {
  TwoDevices node;
  node.add_rising(first, 20);
  EXPECT_EQ(node.visitor(second, tile_bytes - 1), nullptr);
  EXPECT_TRUE(node.known.claimed.empty());
  EXPECT_NE(node.visitor(second, tile_bytes), nullptr);
}

TEST(LendingChoice, leaves_kernels_at_home_that_the_other_device_lacks) {
  TwoDevices node;
  node.known.devices_can = false;
  node.add_rising(first, 20);
  EXPECT_EQ(node.visitor(second), nullptr);
}

TEST(LendingChoice, counts_a_visit_where_it_runs_until_it_is_over) {
  TwoDevices node;
  node.add_rising(first, 40);
  std::vector<Task*> visiting{node.visitor(second)};
  while (Task* const task = node.visitor_now(second)) visiting.push_back(task);
  // Half of the visits are over: the second device has half as much to do as the first one.
  for (std::size_t i = 0; i < visiting.size() / 2; ++i) {
    node.now_ns += 1'000'000;
    node.choice.finished(*visiting[i], node.now_ns);
  }
  EXPECT_NE(node.visitor_now(second), nullptr);
}

TEST(LendingChoice, gives_the_host_what_it_ends_first) {
  TwoDevices node;
  node.let_workers_be_fast();
  node.add_rising(first, 8);
  node.add_rising(second, 4);
  const Task* const task = node.choice.take_for_host(node.ready, node.now_ns);
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->place, first);
  EXPECT_EQ(task->priority, 10);
  EXPECT_EQ(task->runs_at(), host_place);
  EXPECT_TRUE(node.known.claimed.empty()) << "its tiles are asked for instead";
  node.known.worker = 1;
  EXPECT_EQ(node.choice.take_for_host(node.ready, node.now_ns), nullptr);
}

TEST(LendingChoice, calls_a_worker_only_where_it_may_find_something) {
  TwoDevices node;
  EXPECT_FALSE(node.choice.may_find_for_host(node.ready)) << "there is nothing";
  node.add_rising(first, 8);
  EXPECT_FALSE(node.choice.may_find_for_host(node.ready)) << "a worker takes a second";
  node.known.worker = 4e-3;
  EXPECT_TRUE(node.choice.may_find_for_host(node.ready));
  for (int i = 0; i < 12; ++i) node.add(host_place, 1);
  EXPECT_FALSE(node.choice.may_find_for_host(node.ready)) << "three tasks for each of four workers";
}

/// Four workers that together are half as fast as a device, which has two tasks for each of theirs.
TEST(LendingChoice, does_not_take_the_host_for_slow_where_most_workers_have_nothing_to_do) {
  TwoDevices node;
  node.known.worker = 8 * kernel_seconds;
  for (int i = 0; i < 100; ++i) {
    while (node.ready[1]->count() < 12) node.add(first, 10);
    Task* const task = node.choice.take_for_host(node.ready, node.now_ns);
    ASSERT_NE(task, nullptr) << i;
    node.now_ns += 8'000'000;
    node.choice.finished(*task, node.now_ns);
  }
}

/// What workers are worth is not what they needed lately, tiles that had to come among it: so they
/// are given something again when they would be sooner, and can show what they need now.
TEST(LendingChoice, gives_workers_that_were_slow_something_when_they_would_be_sooner_all_the_same) {
  TwoDevices node;
  node.known.worker = 8 * kernel_seconds;  // together as much as a device
  node.known.parts = 4;
  const auto take = [&node](std::size_t of) {
    while (node.ready[1]->count() < of) node.add(first, 10);
    return node.choice.take_for_host(node.ready, node.now_ns);
  };
  for (int i = 0; i < 40; ++i) {
    Task* const task = take(400);
    ASSERT_NE(task, nullptr) << i;
    node.now_ns += 80'000'000;  // 40 times what is known
    node.choice.finished(*task, node.now_ns);
  }
  EXPECT_NE(take(400), nullptr) << "it ends long before 400 tasks of the device";
}

TEST(LendingChoice, gives_the_host_a_task_for_each_worker_that_has_nothing_to_do) {
  TwoDevices node;
  node.known.worker = 8 * kernel_seconds;
  node.add_rising(first, 14);  // each worker ends one before the device comes to the last of them
  int taken = 0;
  while (node.choice.take_for_host(node.ready, node.now_ns) != nullptr) ++taken;
  EXPECT_EQ(taken, 4);
}

TEST(LendingChoice, gives_the_host_what_a_device_cannot_run) {
  TwoDevices node(1e-3);
  node.known.homes_can = false;
  node.let_workers_be_fast();
  for (int i = 0; i < 30; ++i) node.add(host_place, 1);  // more than it would borrow beside
  Task& task = node.add(first, 10);
  EXPECT_EQ(task.place, first) << "the home stays";
  EXPECT_TRUE(task.is_lent_to_host());
  EXPECT_EQ(node.ready[1]->count(), 0U);
  EXPECT_EQ(node.choice.lent(), 1);
  node.now_ns += 1'000'000;
  node.choice.finished(task, node.now_ns);

  EXPECT_FALSE(node.add(host_place, 1).is_lent_to_host()) << "it is there";
  node.known.is_fill = true;
  EXPECT_FALSE(node.add(first, 10).is_lent_to_host()) << "what it writes belongs home";
  node.known.is_fill = false;
  node.known.workers_can = false;
  EXPECT_FALSE(node.add(first, 10).is_lent_to_host()) << "nobody runs it";
  node.known.homes_can = node.known.workers_can = true;
  EXPECT_FALSE(node.add(first, 10).is_lent_to_host()) << "its device does";
  EXPECT_EQ(node.ready[1]->count(), 3U);
}

TEST(LendingChoice, leaves_to_devices_what_the_host_has_no_memory_for) {
  TwoDevices node;
  node.let_workers_be_fast();
  node.known.host_has_memory = false;
  node.add_rising(first, 8);
  EXPECT_EQ(node.choice.take_for_host(node.ready, node.now_ns), nullptr);
  node.known.homes_can = false;
  EXPECT_FALSE(node.add(second, 10).is_lent_to_host()) << "it is staged";
  EXPECT_EQ(node.ready[1]->count() + node.ready[2]->count(), 9U);
  EXPECT_EQ(node.choice.lent(), 0);
  node.known.homes_can = node.known.host_has_memory = true;
  EXPECT_NE(node.choice.take_for_host(node.ready, node.now_ns), nullptr);
}

TEST(LendingChoice, leaves_what_a_device_cannot_run_to_staging_where_the_policy_moves_nothing) {
  TwoDevices node(1e-3, std::make_shared<StaticPlacement>());
  node.known.homes_can = false;
  EXPECT_FALSE(node.add(first, 10).is_lent_to_host());
  EXPECT_EQ(node.ready[1]->count(), 1U);
}

TEST(LendingChoice, leaves_to_devices_what_workers_would_hardly_help_with) {
  for (const bool is_worthwhile : {true, false}) {
    TwoDevices node;
    // All workers together need so many times what both devices do.
    const double times = is_worthwhile ? 15 : 17;
    node.known.worker = times * kernel_seconds / 2 * 4;
    node.add_rising(first, 500);
    EXPECT_EQ(node.choice.take_for_host(node.ready, node.now_ns) != nullptr, is_worthwhile);
    EXPECT_EQ(node.known.widths_asked > 0, is_worthwhile) << "graphs may be made for that";
  }
}

TEST(LendingChoice, knows_beforehand_what_workers_would_hardly_help_with) {
  // All workers together need so many times what both devices do, were these twice as slow as is
  // known.
  for (const double times : {1.0, 15.0, 31.0, 33.0, 1000.0}) {
    const TwoDevices node;
    const LendableTasks::Costs costs{times * kernel_seconds / 2 * 4, kernel_seconds};
    EXPECT_EQ(node.choice.may_lend(costs, 2), times < 32) << times;
  }
  const TwoDevices fixed(0, std::make_shared<StaticPlacement>());
  EXPECT_FALSE(fixed.choice.may_lend({kernel_seconds, kernel_seconds}, 2));
}

}  // namespace heddle
