#include "replay/idleness.hpp"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <vector>

#include "replay/analysis.hpp"
#include "tests/replay/run_builder.hpp"
#include "tests/support/seeds.hpp"

namespace heddle::replay {
namespace {

using test::changes;
using test::reads;
using test::RunBuilder;
using test::Use;

std::int64_t us(const ThreadTime& time, IdleCause cause) {
  return time.idle_ns.at(static_cast<std::size_t>(cause)) / 1000;
}

}  // namespace

TEST(Idleness, is_shared_out_by_what_was_missing_last) {
  RunBuilder build(2, 1);
  build.task(0, 0, "make", 0, 100, {changes(0, 0)});
  build.message(0, 1, 0, 1, 110, 150, 5);
  build.copy(1, 0, 1, host_place, 150, 170);
  build.task(1, 0, "use", 180, 200, {changes(1, 0), reads(0, 1)});
  build.task(0, 0, "more", 190, 230, {changes(2, 0), reads(0, 1)});
  const RunTrace run = build.run();
  const Graph graph(run, 0);
  const std::vector<ThreadTime> times = thread_times(run, graph, {0, 300'000});
  ASSERT_EQ(times.size(), 2U) << "the one that brings messages runs no tasks";
  EXPECT_EQ(times[0].busy_ns, 140'000);
  EXPECT_EQ(us(times[0], IdleCause::runtime), 90);
  EXPECT_EQ(us(times[0], IdleCause::end), 70);
  EXPECT_EQ(us(times[1], IdleCause::task_there), 100);
  EXPECT_EQ(us(times[1], IdleCause::message), 50);
  EXPECT_EQ(us(times[1], IdleCause::copy), 20);
  EXPECT_EQ(us(times[1], IdleCause::runtime), 10);
  EXPECT_EQ(us(times[1], IdleCause::end), 100);
  EXPECT_EQ(times[1].busy_ns, 20'000);
}

TEST(Idleness, knows_tasks_of_the_same_node) {
  RunBuilder build(1, 2);
  build.task(0, 0, "make", 10, 60, {changes(0, 0)});
  build.task(0, 1, "use", 65, 70, {reads(0, 1)});
  const RunTrace run = build.run();
  const std::vector<ThreadTime> times = thread_times(run, Graph(run, 0), {0, 70'000});
  EXPECT_EQ(us(times[1], IdleCause::task_here), 60);
  EXPECT_EQ(us(times[1], IdleCause::runtime), 5);
}

TEST(Idleness, counts_tasks_that_overlap_once) {
  RunBuilder build(1, 1);
  build.nodes()[0].threads[0].name = "device 0";
  build.task(0, 0, "a", 0, 50, {changes(0, 0)});
  build.task(0, 0, "b", 20, 90, {changes(1, 0)});
  build.task(0, 0, "c", 30, 40, {changes(2, 0)});
  const RunTrace run = build.run();
  const std::vector<ThreadTime> times = thread_times(run, Graph(run, 0), {0, 100'000});
  EXPECT_EQ(times[0].busy_ns, 90'000);
  EXPECT_EQ(us(times[0], IdleCause::end), 10);
}

TEST(Overlap, is_the_share_of_busy_threads_while_data_moves) {
  RunBuilder build(2, 2);
  build.task(1, 0, "a", 0, 100, {changes(0, 0)});
  build.task(1, 1, "b", 0, 50, {changes(1, 0)});
  build.message(0, 1, 5, 1, 0, 100);
  const RunTrace run = build.run();
  const Overlap overlap = overlap_of(run, {0, 100'000});
  EXPECT_NEAR(overlap.messages, 0.75, 1e-12);
  EXPECT_EQ(overlap.copies, 1) << "there are none";
}

/// Random programs, run by workers of several nodes as they come: all time is accounted for, and no
/// bound is beaten.
TEST(Idleness, adds_up_on_random_runs) {
  for (const std::uint64_t seed : simulation::seeds(100)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    const auto below = [&](std::int64_t bound) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
    };
    const auto nodes = static_cast<std::int32_t>(1 + below(3));
    const auto workers = static_cast<std::int32_t>(1 + below(3));
    const auto tiles = static_cast<std::int32_t>(1 + below(8));
    RunBuilder build(nodes, workers);
    std::vector<std::int64_t> free_at(static_cast<std::size_t>(nodes * workers));
    std::map<std::int32_t, std::pair<std::int32_t, std::int64_t>> versions;  // and when it is there
    std::int64_t busy_us = 0;
    for (std::int64_t tasks = below(200) + 1; tasks > 0; --tasks) {
      const auto who = static_cast<std::size_t>(below(nodes * workers));
      std::vector<Use> uses;
      std::int64_t start = free_at[who];
      for (std::int64_t accesses = 1 + below(5); accesses > 0; --accesses) {
        const auto tile = static_cast<std::int32_t>(below(tiles));
        const bool is_known =
            std::ranges::any_of(uses, [&](const Use& u) { return u.tile == tile; });
        if (is_known) continue;
        const auto [version, time] = versions[tile];
        start = std::max(start, time);
        uses.push_back(below(2) == 0 ? reads(tile, version) : changes(tile, version));
      }
      start += below(20);
      const std::int64_t end = start + 1 + below(100);
      for (const Use& use : uses) {
        if (use.mode == trace::AccessMode::read) continue;
        versions[use.tile] = {use.version + 1, end};
      }
      free_at[who] = end;
      busy_us += end - start;
      build.task(static_cast<std::int32_t>(who) / workers, who % static_cast<std::size_t>(workers),
                 "k", start, end, uses);
    }
    const RunTrace run = build.run();
    const Analysis analysis = analyze(run, 0);
    std::int64_t busy_ns = 0;
    for (const ThreadTime& time : analysis.threads) {
      EXPECT_EQ(time.busy_ns + time.idle(), analysis.span.ns());
      busy_ns += time.busy_ns;
    }
    EXPECT_EQ(busy_ns, busy_us * 1000);
    EXPECT_LE(analysis.bounds.seconds(), analysis.seconds() * (1 + 1e-12));
    double chain_s = 0;
    for (const PathPart& part : analysis.chain) chain_s += part.seconds;
    EXPECT_NEAR(chain_s, analysis.seconds(), 1e-9) << "the chain leaves no time out";
  }
}

}  // namespace heddle::replay
