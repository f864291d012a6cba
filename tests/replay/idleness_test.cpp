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
  const std::vector<ThreadTime> times = idleness_of(run, graph, {0, 300'000}).threads;
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

TEST(Idleness, of_tiles_that_come_back_is_a_copys) {
  constexpr PlaceId device{1};
  RunBuilder build(1, 1);
  build.task(0, 0, "make", 0, 100, {changes(0, 0)});
  build.transfer(0, 0, device, host_place, 100, 120);
  build.transfer(0, 1, device, host_place, 100, 170);  // nobody waits for that one
  build.transfer(0, 0, host_place, device, 120, 165);  // nor here for what goes there
  build.task(0, 0, "use", 130, 140, {reads(0, 1)});
  build.transfer(0, 0, device, host_place, 165, 180);  // another time
  build.task(0, 0, "use", 200, 210, {reads(0, 1)});
  build.transfer(0, 0, device, host_place, 190, 230);  // not over when the task began
  const RunTrace run = build.run();
  std::vector<IdlePart> parts;
  const auto times = idleness_of(run, Graph(run, 0), {0, 210'000}, &parts).threads;
  EXPECT_EQ(us(times[0], IdleCause::copy), 20 + 40);
  EXPECT_EQ(us(times[0], IdleCause::runtime), 10 + 20);
  EXPECT_EQ(parts[2].cause, IdleCause::copy);
  EXPECT_EQ(parts[2].time.start_ns, 140'000);
  EXPECT_EQ(parts[2].time.end_ns, 180'000);
}

TEST(Idleness, is_made_of_parts_that_fill_the_gaps) {
  RunBuilder build(1, 2);
  build.task(0, 0, "make", 10, 60, {changes(0, 0)});
  build.task(0, 1, "use", 65, 70, {reads(0, 1)});
  const RunTrace run = build.run();
  std::vector<IdlePart> parts;
  const auto times = idleness_of(run, Graph(run, 0), {0, 100'000}, &parts).threads;
  ASSERT_EQ(parts.size(), 5U);
  EXPECT_EQ(parts[2].thread, times[1].thread);
  EXPECT_EQ(parts[2].cause, IdleCause::task_here);
  EXPECT_EQ(parts[2].time.start_ns, 0);
  EXPECT_EQ(parts[2].time.end_ns, 60'000);
  EXPECT_EQ(parts[3].cause, IdleCause::runtime);
  EXPECT_EQ(parts[3].time.end_ns, 65'000);
  EXPECT_EQ(parts[4].cause, IdleCause::end);
  EXPECT_EQ(parts[4].time.end_ns, 100'000);
}

TEST(Idleness, tells_when_the_window_was_full_while_a_task_was_not_there_yet) {
  RunBuilder build(1, 1);
  build.generation_waits(0, trace::WaitCause::window_full, 20, 30);
  build.generation_waits(0, trace::WaitCause::window_full, 40, 90);
  build.generated(0, 0, 50);
  build.task(0, 0, "work", 60, 70, {changes(0, 0)});
  const RunTrace run = build.run();
  std::vector<IdlePart> parts;
  const auto times = idleness_of(run, Graph(run, 0), {10'000, 70'000}, &parts).threads;
  EXPECT_EQ(us(times[0], IdleCause::window), 20);
  EXPECT_EQ(us(times[0], IdleCause::generation), 20);
  ASSERT_EQ(parts.size(), 5U);
  EXPECT_EQ(parts[1].cause, IdleCause::window);
  EXPECT_EQ(parts[1].time.start_ns, 20'000);
  EXPECT_EQ(parts[1].time.end_ns, 30'000);
  EXPECT_EQ(parts[3].cause, IdleCause::window);
  EXPECT_EQ(parts[3].time.end_ns, 50'000);
  EXPECT_EQ(parts[4].cause, IdleCause::runtime);
}

TEST(Idleness, knows_tasks_of_the_same_node) {
  RunBuilder build(1, 2);
  build.task(0, 0, "make", 10, 60, {changes(0, 0)});
  build.task(0, 1, "use", 65, 70, {reads(0, 1)});
  const RunTrace run = build.run();
  const std::vector<ThreadTime> times = idleness_of(run, Graph(run, 0), {0, 70'000}).threads;
  EXPECT_EQ(us(times[1], IdleCause::task_here), 60);
  EXPECT_EQ(us(times[1], IdleCause::runtime), 5);
}

TEST(Idleness, of_who_waits_for_users_of_what_it_writes_over_is_theirs) {
  RunBuilder build(1, 2);
  build.task(0, 0, "make", 0, 10, {changes(0, 0)});
  build.task(0, 0, "use", 10, 60, {reads(0, 1)});
  build.task(0, 1, "change", 65, 70, {changes(0, 1)});
  build.task(0, 0, "use", 70, 120, {reads(0, 2)});
  build.task(0, 1, "change", 90, 100, {changes(0, 2)});  // elsewhere: it does not wait
  const RunTrace run = build.run();
  const std::vector<ThreadTime> times = idleness_of(run, Graph(run, 0), {0, 120'000}).threads;
  EXPECT_EQ(us(times[1], IdleCause::task_here), 10 + 50);
  EXPECT_EQ(us(times[1], IdleCause::runtime), 5 + 20);
  ASSERT_EQ(times[1].waited_for.size(), 2U);
  EXPECT_EQ(run.kernel_of(run.at(times[1].waited_for[0].task)), "use");
  EXPECT_EQ(times[1].waited_for[0].ns, 50'000);
}

TEST(Idleness, tells_a_full_window_from_generation_that_is_behind) {
  RunBuilder build(1, 2);
  build.task(0, 0, "make", 0, 30, {changes(0, 0)});
  build.task(0, 1, "use", 95, 100, {changes(1, 0), reads(0, 1)});
  build.generated(0, 0, 0).generation_waits(0, trace::WaitCause::window_full, 5, 40);
  build.generated(0, 3, 90);
  const RunTrace run = build.run();
  const std::vector<ThreadTime> times = idleness_of(run, Graph(run, 0), {0, 100'000}).threads;
  EXPECT_EQ(us(times[1], IdleCause::task_here), 30);
  EXPECT_EQ(us(times[1], IdleCause::window), 10) << "before that it waited for the task anyway";
  EXPECT_EQ(us(times[1], IdleCause::generation), 50);
  EXPECT_EQ(us(times[1], IdleCause::runtime), 5);
}

TEST(Idleness, of_a_task_that_nothing_says_when_it_was_generated_is_the_runtime_s) {
  RunBuilder build(1, 1);
  build.generated(0, 0, 40);
  build.task(0, 0, "a", 50, 60, {changes(0, 0)});
  build.task(0, 0, "b", 90, 100, {changes(1, 0)});
  const RunTrace run = build.run();
  const std::vector<ThreadTime> times = idleness_of(run, Graph(run, 0), {0, 100'000}).threads;
  EXPECT_EQ(us(times[0], IdleCause::generation), 40);
  EXPECT_EQ(us(times[0], IdleCause::runtime), 40);
}

TEST(Idleness, names_the_tasks_that_were_waited_for) {
  RunBuilder build(2, 2);
  build.nodes()[0].matrices = {{0, "a", 2, 3}};
  build.task(0, 0, "potrf", 0, 60, {changes(3, 0)});
  build.task(1, 0, "first", 0, 20, {changes(0, 0)});
  build.task(1, 0, "second", 70, 90, {changes(0, 1), reads(3, 1)});
  build.task(1, 1, "third", 65, 90, {changes(1, 0), reads(3, 1)});
  build.task(1, 1, "fourth", 90, 95, {changes(1, 1), reads(0, 2)});
  const RunTrace run = build.run();
  const Analysis analysis = analyze(run, 0);
  ASSERT_EQ(analysis.waited_for.size(), 1U);
  EXPECT_EQ(run.label_of(run.at(analysis.waited_for[0].task)), "potrf (1, 1)");
  EXPECT_EQ(analysis.waited_for[0].ns, 100'000) << "by both workers of node 1";
  ASSERT_EQ(analysis.threads.size(), 4U);
  ASSERT_EQ(analysis.threads[2].waited_for.size(), 1U);
  EXPECT_EQ(analysis.threads[2].waited_for[0].ns, 40'000);
  EXPECT_TRUE(analysis.threads[0].waited_for.empty());
}

TEST(Idleness, of_streams_adds_up_like_that_of_threads) {
  RunBuilder build(1, 1);
  build.nodes()[0].threads[0].name = "device 0";
  build.task(0, 0, "a", 0, 50, {changes(0, 0)});
  build.task(0, 0, "b", 20, 90, {changes(1, 0)});
  build.task(0, 0, "c", 60, 80, {changes(2, 0), reads(0, 1)});
  const RunTrace run = build.run();
  const Idleness idleness = idleness_of(run, Graph(run, 0), {0, 100'000});
  ASSERT_EQ(idleness.streams.size(), 2U);
  EXPECT_EQ(idleness.streams[0].tasks, 2);
  EXPECT_EQ(idleness.streams[0].busy_ns, 70'000);
  EXPECT_EQ(us(idleness.streams[0], IdleCause::runtime), 10);
  EXPECT_EQ(us(idleness.streams[0], IdleCause::end), 20);
  EXPECT_EQ(idleness.streams[1].busy_ns, 70'000);
  EXPECT_EQ(us(idleness.streams[1], IdleCause::runtime), 20);
  EXPECT_EQ(us(idleness.streams[1], IdleCause::end), 10);
}

TEST(Idleness, of_streams_is_that_of_those_that_were_recorded) {
  RunBuilder build(1, 1);
  build.nodes()[0].threads[0].name = "device 0";
  build.task(0, 0, "a", 0, 50, {changes(0, 0)}).by_stream(0, 0, 3);
  build.task(0, 0, "b", 20, 90, {changes(1, 0)}).by_stream(0, 0, 1);
  build.task(0, 0, "c", 60, 80, {changes(2, 0), reads(0, 1)}).by_stream(0, 0, 2);
  const RunTrace run = build.run();
  const Idleness idleness = idleness_of(run, Graph(run, 0), {0, 100'000});
  ASSERT_EQ(idleness.streams.size(), 3U);
  for (const auto& [stream, busy_ns] : {std::pair{0, 70'000}, {1, 20'000}, {2, 50'000}}) {
    const ThreadTime& time = idleness.streams[static_cast<std::size_t>(stream)];
    EXPECT_EQ(time.stream, stream);
    EXPECT_EQ(time.tasks, 1);
    EXPECT_EQ(time.busy_ns, busy_ns);
    EXPECT_EQ(time.busy_ns + time.idle(), 100'000);
  }
}

TEST(Idleness, of_a_thread_whose_records_found_no_room_is_unknown_after_the_last_one) {
  RunBuilder build(1, 2);
  build.nodes()[0].threads[0].dropped = 1;
  build.task(0, 0, "a", 0, 30, {changes(0, 0)}).task(0, 1, "b", 0, 40, {changes(1, 0)});
  const RunTrace run = build.run();
  const Idleness idleness = idleness_of(run, Graph(run, 0), {0, 100'000});
  EXPECT_EQ(us(idleness.threads[0], IdleCause::unknown), 70);
  EXPECT_EQ(us(idleness.threads[0], IdleCause::end), 0);
  EXPECT_EQ(us(idleness.threads[1], IdleCause::unknown), 0);
  EXPECT_EQ(us(idleness.threads[1], IdleCause::end), 60);
}

TEST(ServiceTimes, are_what_was_recorded_and_the_rest_is_unknown) {
  RunBuilder build(1, 1);
  build.task(0, 0, "a", 0, 100, {changes(0, 0)});
  build.waits(0, trace::WaitCause::message, -10, 30).waits(0, trace::WaitCause::copy, 35, 50);
  build.generated(0, 0, 20);
  build.generation_waits(0, trace::WaitCause::window_full, 40, 60);
  build.generation_waits(0, trace::WaitCause::no_task, 70, 130);
  const std::vector<ServiceTime> times = service_times(build.run(), {0, 100'000});
  ASSERT_EQ(times.size(), 2U) << "the worker has tasks";
  const auto waited = [&](std::size_t i, trace::WaitCause cause) {
    return times[i].waiting_ns.at(static_cast<std::size_t>(cause)) / 1000;
  };
  EXPECT_EQ(waited(0, trace::WaitCause::window_full), 20);
  EXPECT_EQ(waited(0, trace::WaitCause::no_task), 30);
  EXPECT_EQ(times[0].busy_ns, 30'000);
  EXPECT_EQ(times[0].unknown_ns, 20'000) << "before its first record";
  EXPECT_EQ(waited(1, trace::WaitCause::message), 30);
  EXPECT_EQ(waited(1, trace::WaitCause::copy), 15);
  EXPECT_EQ(times[1].busy_ns, 5'000);
  EXPECT_EQ(times[1].unknown_ns, 50'000) << "behind its last record";
}

TEST(ServiceTimes, of_a_thread_without_waits_are_unknown) {
  RunBuilder build(1, 1);
  build.task(0, 0, "a", 0, 100, {changes(0, 0)});
  build.copy(0, 0, 1, host_place, 10, 20);
  const std::vector<ServiceTime> times = service_times(build.run(), {0, 100'000});
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times[0].unknown_ns, 100'000);
  EXPECT_EQ(times[0].busy_ns, 0);
}

TEST(Idleness, counts_tasks_that_overlap_once) {
  RunBuilder build(1, 1);
  build.nodes()[0].threads[0].name = "device 0";
  build.task(0, 0, "a", 0, 50, {changes(0, 0)});
  build.task(0, 0, "b", 20, 90, {changes(1, 0)});
  build.task(0, 0, "c", 30, 40, {changes(2, 0)});
  const RunTrace run = build.run();
  const std::vector<ThreadTime> times = idleness_of(run, Graph(run, 0), {0, 100'000}).threads;
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
    const Bounds& bounds = analysis.bounds;
    EXPECT_LE(bounds.seconds(), analysis.seconds() * (1 + 1e-12));
    EXPECT_GE(bounds.mixed_s, std::max({bounds.area_s, bounds.placed_s, bounds.critical_path_s}));
    double chain_s = 0;
    for (const PathPart& part : analysis.chain) chain_s += part.seconds;
    EXPECT_NEAR(chain_s, analysis.seconds(), 1e-9) << "the chain leaves no time out";
  }
}

}  // namespace heddle::replay
