#include "replay/message_ways.hpp"

#include <gtest/gtest.h>

#include "tests/replay/random_simulation.hpp"
#include "tests/replay/run_builder.hpp"

namespace heddle::replay {
namespace {

/// Of 2 us and 4 GB/s, each with something more.
std::vector<Transfer> transfers(const std::vector<double>& more_us) {
  std::vector<Transfer> result;
  double bytes = 1000;
  for (const double more : more_us) {
    result.push_back({bytes, 2e-6 + bytes / 4e9 + more * 1e-6});
    bytes = bytes < 100'000 ? 2 * bytes : 1000;
  }
  return result;
}

TEST(FitWay, finds_latency_and_rate_below_what_waited) {
  // Every other one waited, for times without a rule.
  const auto all = transfers({0, 90, 0, 5, 0, 170, 0, 12, 0, 60, 0, 300, 0, 8, 0, 45, 0, 77});
  const std::optional<Way> way = fit_way(all, 0.25, 0);
  ASSERT_TRUE(way);
  EXPECT_NEAR(way->latency_s, 2e-6, 1e-9);
  EXPECT_NEAR(way->bytes_per_s, 4e9, 1e6);
}

TEST(FitWay, is_between_as_many_above_as_below_at_the_median) {
  const auto all = transfers({-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, 0, 0, 0});
  const std::optional<Way> way = fit_way(all, 0.5, 0);
  ASSERT_TRUE(way);
  int above = 0;
  int below = 0;
  for (const Transfer& one : all) {
    const double line = way->latency_s + one.bytes / way->bytes_per_s;
    above += one.seconds > line + 1e-9 ? 1 : 0;
    below += one.seconds < line - 1e-9 ? 1 : 0;
  }
  EXPECT_LE(above, 8);
  EXPECT_LE(below, 8);
  EXPECT_GT(above, 0);
  EXPECT_GT(below, 0);
}

TEST(FitWay, has_no_negative_latency_and_no_negative_rate) {
  const std::optional<Way> steep = fit_way({{1000, 1e-6}, {2000, 4e-6}}, 0.5, 0);
  ASSERT_TRUE(steep);
  EXPECT_EQ(steep->latency_s, 0);
  EXPECT_GT(steep->bytes_per_s, 0);
  const std::optional<Way> falling = fit_way({{1000, 4e-6}, {2000, 1e-6}}, 0.5, 0);
  ASSERT_TRUE(falling);
  EXPECT_GE(falling->latency_s, 0);
  EXPECT_GT(falling->bytes_per_s, 1e9);
}

TEST(FitWay, takes_the_latency_that_is_known_where_all_sizes_are_alike) {
  const std::vector<Transfer> alike(5, {8000, 5e-6});
  const std::optional<Way> way = fit_way(alike, 0.5, 1e-6);
  ASSERT_TRUE(way);
  EXPECT_DOUBLE_EQ(way->latency_s, 1e-6);
  EXPECT_DOUBLE_EQ(way->bytes_per_s, 2e9);
  EXPECT_DOUBLE_EQ(fit_way(alike, 0.5, 4e-6)->latency_s, 2.5e-6) << "half at most";
  EXPECT_FALSE(fit_way({}, 0.5, 1e-6));
}

TEST(MessageWays, tells_neighbours_from_other_hosts) {
  SimulatedMachine machine = free_machine();
  machine.nodes = 4;
  machine.nodes_per_host = 2;
  test::RunBuilder builder(4, 1);
  builder.message(0, 1, 0, 1, 100, 104).message(0, 2, 1, 1, 100, 120);
  const MessageWays ways = message_ways(builder.run(), 0, machine);
  ASSERT_TRUE(ways.memory && ways.network);
  EXPECT_NEAR(ways.memory->bytes_per_s, 4096 / 4e-6, 1);
  EXPECT_NEAR(ways.network->bytes_per_s, 4096 / 20e-6, 1);
  EXPECT_FALSE(message_ways(builder.run(), 1, machine).memory) << "of another job";
}

TEST(MessageWays, counts_from_the_end_of_the_message_before) {
  SimulatedMachine machine = free_machine();
  machine.nodes = machine.nodes_per_host = 2;
  test::RunBuilder builder(2, 1);
  for (int i = 0; i < 10; ++i) builder.message(0, 1, i, 1, 100, 104 + 4 * i);
  EXPECT_NEAR(message_ways(builder.run(), 0, machine).memory->bytes_per_s, 4096 / 4e-6, 1);
}

TEST(MessageWays, counts_what_a_node_receives_by_turns_as_one) {
  SimulatedMachine machine = free_machine();
  machine.nodes = machine.nodes_per_host = 3;
  test::RunBuilder builder(3, 1);
  // Of one node four by turns, with hardly a difference between their ends; of the other one alone.
  for (int i = 0; i < 4; ++i) builder.message(0, 1, i, 1, 100 + i, 177 + i);
  builder.message(0, 2, 4, 1, 300, 320);
  EXPECT_NEAR(message_ways(builder.run(), 0, machine).memory->bytes_per_s, 4096 / 20e-6, 1);
}

TEST(MessageWays, takes_together_what_all_took) {
  SimulatedMachine machine = free_machine();
  machine.nodes = machine.nodes_per_host = 2;
  test::RunBuilder builder(2, 1);
  for (int i = 0; i < 9; ++i) builder.message(0, 1, i, 1, 100 * i, 100 * i + 4);
  builder.message(0, 1, 9, 1, 900, 900 + 64);
  EXPECT_NEAR(message_ways(builder.run(), 0, machine).memory->bytes_per_s, 4096 / 10e-6, 1);
}

TEST(MessageWays, counts_from_when_a_shared_core_was_free_to_look) {
  SimulatedMachine machine = free_machine();
  machine.nodes = machine.nodes_per_host = 2;
  test::RunBuilder builder(2, 1);
  // The receiver's worker steps aside at 300, not at 360, which is too soon.
  builder.task(1, 0, "a", 0, 300, {test::changes(7, 0)});
  builder.task(1, 0, "a", 310, 360, {test::changes(8, 0)});
  builder.task(1, 0, "a", 365, 500, {test::changes(9, 0)});
  builder.task(1, 0, "a", 506, 600, {test::changes(10, 0)});
  builder.message(0, 1, 0, 1, 100, 304).message(0, 1, 1, 1, 320, 504);
  const double own = message_ways(builder.run(), 0, machine).memory->bytes_per_s;
  EXPECT_NEAR(own, 4096 / 194e-6, 1) << "between the two, where each has a core";
  machine.cores = 2;
  EXPECT_NEAR(message_ways(builder.run(), 0, machine).memory->bytes_per_s, 4096 / 4e-6, 1);
}

}  // namespace
}  // namespace heddle::replay
