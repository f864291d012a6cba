#include "replay/runtime_costs.hpp"

#include <gtest/gtest.h>

#include "tests/replay/random_simulation.hpp"
#include "tests/replay/run_builder.hpp"

namespace heddle::replay {
namespace {

using trace::WaitCause;

RuntimeCosts costs_of(const test::RunBuilder& builder, const SimulatedMachine& machine) {
  const RunTrace run = builder.run();
  return runtime_costs(run, Graph(run, 0), machine);
}

TEST(RuntimeCosts, a_run_without_tasks_tells_nothing) {
  const RuntimeCosts costs = costs_of(test::RunBuilder(1, 1), free_machine());
  EXPECT_FALSE(costs.append_s || costs.task_s || costs.look_s || costs.wake_s);
}

TEST(RuntimeCosts, between_tasks_is_what_a_worker_that_does_not_wait_takes) {
  test::RunBuilder builder(1, 1);
  builder.task(0, 0, "a", 0, 10, {test::changes(0, 0)});
  builder.task(0, 0, "a", 11, 20, {test::changes(1, 0)});
  builder.task(0, 0, "a", 23, 30, {test::changes(2, 0)});
  builder.task(0, 0, "a", 90, 95, {test::changes(3, 0)});
  builder.nodes()[0].threads[0].records.push_back(trace::Record::of(
      trace::WaitRecord{.cause = WaitCause::no_task, .start_ns = 31'000, .end_ns = 89'000}));
  EXPECT_NEAR(*costs_of(builder, free_machine()).task_s, 2e-6, 1e-12);
}

TEST(RuntimeCosts, a_look_is_what_stepping_aside_takes_beside_messages) {
  test::RunBuilder builder(2, 1);
  builder.task(0, 0, "a", 0, 150, {test::changes(0, 0)});
  builder.task(0, 0, "a", 160, 200, {test::changes(1, 0)});
  builder.task(0, 0, "a", 202, 300, {test::changes(2, 0)});
  builder.task(0, 0, "a", 310, 320, {test::changes(3, 0)});
  builder.message(1, 0, 9, 1, 100, 305);
  SimulatedMachine machine = free_machine();
  machine.nodes = machine.nodes_per_host = machine.cores = 2;
  machine.message_s = 4e-6;
  machine.memory.bytes_per_s = 4096 / 2e-6;
  // At 150 and 300, of 10 us each, one with the end of a message, which was read; 2 us between the
  // others.
  const RuntimeCosts shared = costs_of(builder, machine);
  EXPECT_NEAR(*shared.task_s, 2e-6, 1e-12);
  EXPECT_NEAR(*shared.look_s, 7e-6, 1e-12);
  machine.cores = 0;
  const RuntimeCosts own = costs_of(builder, machine);
  EXPECT_NEAR(*own.task_s, 22e-6 / 3, 1e-12);
  EXPECT_FALSE(own.look_s);
}

TEST(RuntimeCosts, generation_is_timed_between_its_turns) {
  test::RunBuilder builder(2, 1);
  builder.task(0, 0, "a", 0, 10, {test::changes(0, 0)});
  builder.generated(0, 16, 10).generated(0, 32, 18).generated(0, 48, 26).generated(0, 64, 34);
  builder.generated(0, 65, 501);    // the end of it
  builder.generated(1, 1000, 501);  // of another node: no turn of the first one
  EXPECT_NEAR(*costs_of(builder, free_machine()).append_s, 0.5e-6, 1e-12);
}

TEST(RuntimeCosts, generation_is_not_timed_while_it_pauses) {
  test::RunBuilder builder(1, 1);
  builder.task(0, 0, "a", 0, 10, {test::changes(0, 0)});
  builder.generated(0, 4, 10).generated(0, 8, 62).generated(0, 12, 114).generated(0, 16, 166);
  for (const std::int64_t from : {10, 62, 114}) {
    builder.generation_waits(0, trace::WaitCause::window_full, from, from + 50);
  }
  EXPECT_NEAR(*costs_of(builder, free_machine()).append_s, 0.5e-6, 1e-12);
}

TEST(RuntimeCosts, waking_is_timed_where_a_waiting_worker_begins_what_its_node_made_ready) {
  test::RunBuilder builder(2, 2);
  const auto waits = [&](std::size_t node, std::size_t worker, int from_us, int to_us) {
    builder.nodes()[node].threads[worker].records.push_back(trace::Record::of(trace::WaitRecord{
        .cause = WaitCause::no_task, .start_ns = from_us * 1000, .end_ns = to_us * 1000}));
  };
  for (int i = 0; i < 8; ++i) {
    EXPECT_FALSE(costs_of(builder, free_machine()).wake_s) << "too few";
    const int at = 100 * i;
    builder.task(0, 0, "a", at, at + 50, {test::changes(3 * i, 0)});
    waits(0, 1, at + 1, at + 55);
    builder.task(0, 1, "b", at + 56, at + 60, {test::reads(3 * i, 1), test::changes(3 * i + 1, 0)});
    // Ready at the same time, but behind the other one: no waking.
    builder.task(0, 1, "b", at + 62, at + 90, {test::reads(3 * i, 1), test::changes(3 * i + 2, 0)});
    // Nobody knows when what another node has made came here.
    waits(1, 0, at + 1, at + 85);
    builder.task(1, 0, "b", at + 88, at + 95, {test::reads(3 * i, 1), test::changes(1000 + i, 0)});
  }
  EXPECT_NEAR(*costs_of(builder, free_machine()).wake_s, 6e-6, 1e-12);
}

TEST(RuntimeCosts, wakings_are_told_apart_by_how_long_workers_had_waited) {
  test::RunBuilder builder(1, 2);
  const auto wait = [&](int from_us, int to_us) {
    builder.nodes()[0].threads[1].records.push_back(trace::Record::of(trace::WaitRecord{
        .cause = WaitCause::no_task, .start_ns = from_us * 1000, .end_ns = to_us * 1000}));
  };
  // Waits of 10 us end 3 us after the task, of 50 us 15, of 400 us 40; of the last ones too few.
  const auto add = [&](int at, int i, int waited, int wakes) {
    builder.task(0, 0, "a", at, at + 500, {test::changes(2 * i, 0)});
    wait(at + 500 - waited, at + 500 + wakes - 1);
    builder.task(0, 1, "b", at + 500 + wakes, at + 590,
                 {test::reads(2 * i, 1), test::changes(2 * i + 1, 0)});
  };
  int i = 0;
  for (; i < 9; ++i) add(1000 * i, i, 10, 3);
  for (; i < 20; ++i) add(1000 * i, i, 50, 15);
  for (; i < 27; ++i) add(1000 * i, i, 400, 40);
  const RuntimeCosts costs = costs_of(builder, free_machine());
  EXPECT_NEAR(*costs.wake_s, 15e-6, 1e-12) << "of all of them";
  ASSERT_EQ(costs.wakings.size(), 3U);
  EXPECT_EQ(costs.wakings[0].waited_s, 0);
  EXPECT_EQ(costs.wakings[0].seconds, std::vector<double>(9, 3000 * 1e-9));
  EXPECT_EQ(costs.wakings[1].seconds, std::vector<double>(11, 15000 * 1e-9));
  EXPECT_GT(costs.wakings[2].waited_s, costs.wakings[1].waited_s);
  EXPECT_TRUE(costs.wakings[2].seconds.empty()) << "7 only";
}

TEST(RuntimeCosts, waking_is_timed_where_a_waiting_worker_begins_what_a_message_made_ready) {
  test::RunBuilder builder(2, 1);
  for (int i = 0; i < 8; ++i) {
    const int at = 100 * i;
    builder.task(0, 0, "a", at, at + 50, {test::changes(2 * i, 0)});
    builder.nodes()[1].threads[0].records.push_back(trace::Record::of(trace::WaitRecord{
        .cause = WaitCause::no_task, .start_ns = (at + 1) * 1000, .end_ns = (at + 85) * 1000}));
    builder.message(0, 1, 2 * i, 1, at + 55, at + 80);
    builder.task(1, 0, "b", at + 87, at + 95, {test::reads(2 * i, 1), test::changes(2 * i + 1, 0)});
  }
  EXPECT_NEAR(*costs_of(builder, free_machine()).wake_s, 7e-6, 1e-12);
}

TEST(RuntimeCosts, a_full_window_is_filled_again_when_its_generation_thread_has_woken) {
  test::RunBuilder builder(1, 1);
  builder.generated(0, 3, 0);
  for (int i = 0; i < 8; ++i) {
    const int at = 100 * i;
    builder.task(0, 0, "a", at, at + 50, {test::changes(i, 0)});
    builder.generation_waits(0, WaitCause::window_full, at + 1, at + 57);
    builder.generated(0, 4 + i, at + 60);
  }
  const RunTrace run = builder.run();
  const RuntimeCosts costs = runtime_costs(run, Graph(run, 0), free_machine(), 3);
  ASSERT_EQ(costs.refills.size(), 8U);
  EXPECT_EQ(costs.refills[2].order, 5U);
  EXPECT_NEAR(*costs.refill_s, 7e-6, 1e-12);
  // Of a wide window one task is not enough.
  EXPECT_TRUE(runtime_costs(run, Graph(run, 0), free_machine(), 800).refills.empty());
}

TEST(RuntimeCosts, a_task_is_begun_when_it_is_ready_and_generated_and_its_worker_is_free) {
  test::RunBuilder builder(1, 1);
  builder.generated(0, 0, 0).generated(0, 1, 52);
  builder.generation_waits(0, WaitCause::window_full, 53, 90);
  builder.generated(0, 2, 94);
  builder.task(0, 0, "a", 0, 50, {test::changes(0, 0)});
  builder.task(0, 0, "a", 61, 70, {test::changes(0, 1)});    // free at 50, as is its tile
  builder.task(0, 0, "a", 105, 120, {test::changes(0, 2)});  // generated from 90 on
  const RuntimeCosts costs = costs_of(builder, free_machine());
  ASSERT_EQ(costs.begun.size(), 2U);
  EXPECT_NEAR(costs.begun[0].seconds, 11e-6, 1e-12);
  EXPECT_NEAR(costs.begun[1].seconds, 15e-6, 1e-12);
}

}  // namespace
}  // namespace heddle::replay
