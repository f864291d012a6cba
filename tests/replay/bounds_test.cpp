#include "replay/bounds.hpp"

#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <limits>
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

/// By trying: at most one kernel is cut, the others are with one kind as a whole.
double area_by_trying(const std::vector<KernelWork>& kernels, double workers, double devices) {
  double best = std::numeric_limits<double>::infinity();
  const auto consider = [&](double workers_s, double devices_s) {
    best = std::min(best, std::max(workers_s / workers, devices_s / devices));
  };
  for (std::size_t set = 0; set < std::size_t{1} << kernels.size(); ++set) {
    double workers_s = 0;
    double devices_s = 0;
    bool may_be = true;
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const auto& time = (set >> k & 1U) != 0 ? kernels[k].device_s : kernels[k].worker_s;
      may_be = may_be && time.has_value();
      ((set >> k & 1U) != 0 ? devices_s : workers_s) += kernels[k].tasks * time.value_or(0);
    }
    if (!may_be) continue;
    consider(workers_s, devices_s);
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const KernelWork& cut = kernels[k];
      if (!cut.worker_s || !cut.device_s || (set >> k & 1U) != 0) continue;
      // The part with which both end together, if there is one.
      const double part = (workers_s * devices - devices_s * workers) /
                          (*cut.worker_s * devices + *cut.device_s * workers);
      if (part < 0 || part > cut.tasks) continue;
      consider(workers_s - part * *cut.worker_s, devices_s + part * *cut.device_s);
    }
  }
  return best;
}

/// Of a run of one node with workers alone: the best of all pairs of thresholds.
double mixed_by_trying(const RunTrace& run, std::int64_t workers) {
  const Graph graph(run, 0);
  const auto heads = graph.heads();
  const auto tails = graph.tails();
  double best = 0;
  for (const std::int64_t head : heads) {
    for (const std::int64_t tail : tails) {
      std::int64_t sum = 0;
      bool is_any = false;
      for (std::size_t i = 0; i < heads.size(); ++i) {
        if (heads[i] < head || tails[i] < tail) continue;
        is_any = true;
        sum += run.at(graph.tasks()[i]).time.ns();
      }
      if (!is_any) continue;
      best = std::max(best, static_cast<double>(head + tail) +
                                static_cast<double>(sum) / static_cast<double>(workers));
    }
  }
  return best * 1e-9;
}

}  // namespace

TEST(AreaBound, of_one_kind_is_the_time_over_its_threads) {
  const std::vector<KernelWork> kernels{{4, 1.0, {}}, {2, 3.0, {}}};
  EXPECT_DOUBLE_EQ(area_bound(kernels, 5, 0), 2);
  const std::vector<KernelWork> on_devices{{4, {}, 1.0}};
  EXPECT_DOUBLE_EQ(area_bound(on_devices, 7, 2), 2);
}

TEST(AreaBound, gives_devices_what_they_are_best_at) {
  // 10 of the first take devices 1 s; then 6 of the second, so that both kinds have 4 s.
  const std::vector<KernelWork> kernels{{10, 1.0, 0.5}, {10, 1.0, 0.1}};
  EXPECT_DOUBLE_EQ(area_bound(kernels, 1, 1), 4);
}

TEST(AreaBound, leaves_kernels_where_they_have_to_be) {
  const std::vector<KernelWork> kernels{{3, {}, 2.0}, {4, 1.0, 0.5}};
  EXPECT_DOUBLE_EQ(area_bound(kernels, 1, 1), 6) << "the device is busy with its own";
  const std::vector<KernelWork> free{{3, 1.0, 0.0}, {5, 0.0, 1.0}};
  EXPECT_DOUBLE_EQ(area_bound(free, 2, 2), 0);
}

TEST(AreaBound, is_the_least_of_all_assignments_under_every_seed) {
  for (const std::uint64_t seed : simulation::seeds(500)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> time(0.01, 1);
    std::vector<KernelWork> kernels(1 + random() % 6);
    for (KernelWork& kernel : kernels) {
      kernel.tasks = static_cast<double>(1 + random() % 20);
      const auto where = random() % 4;
      if (where != 0) kernel.worker_s = time(random);
      if (where != 1) kernel.device_s = time(random);
    }
    const auto workers = static_cast<std::int64_t>(1 + random() % 8);
    const auto devices = static_cast<std::int64_t>(1 + random() % 4);
    const double expected =
        area_by_trying(kernels, static_cast<double>(workers), static_cast<double>(devices));
    ASSERT_NEAR(area_bound(kernels, workers, devices), expected, 1e-9 * expected);
  }
}

TEST(Bounds, tasks_side_by_side_share_a_device) {
  RunBuilder build(1, 2);
  build.nodes()[0].threads[1].name = "device 0";
  build.task(0, 0, "host", 0, 30, {changes(0, 0)});
  build.task(0, 1, "a", 0, 100, {changes(1, 0)});
  build.task(0, 1, "b", 50, 100, {changes(2, 0)});
  build.task(0, 1, "c", 120, 140, {changes(3, 0)});
  const Bounds bounds = analyze(build.run(), 0).bounds;
  EXPECT_NEAR(bounds.area_s, 120e-6, 1e-12);
  EXPECT_NEAR(bounds.placed_s, 120e-6, 1e-12);
  EXPECT_NEAR(bounds.critical_path_s, 100e-6, 1e-12);
}

TEST(Bounds, kernels_of_both_kinds_of_thread_may_go_to_either) {
  RunBuilder build(1, 2);
  build.nodes()[0].threads[1].name = "device 0";
  for (std::int32_t i = 0; i < 9; ++i) {
    const std::int64_t start = std::int64_t{100} * i;
    build.task(0, 0, "k", start, start + 100, {changes(i, 0)});
  }
  build.task(0, 1, "k", 0, 50, {changes(20, 0)});
  const Bounds bounds = analyze(build.run(), 0).bounds;
  // 10 tasks of 100 us on the worker or 50 us on the device: a third stays.
  EXPECT_NEAR(bounds.area_s, 10.0 / 3 * 100e-6, 1e-12);
  EXPECT_NEAR(bounds.placed_s, 900e-6, 1e-12);
  EXPECT_NEAR(bounds.mixed_s, 900e-6, 1e-12);
}

TEST(Bounds, an_uneven_placement_is_a_bound_of_its_own) {
  RunBuilder build(2, 1);
  build.task(0, 0, "k", 0, 80, {changes(0, 0)});
  build.task(1, 0, "k", 0, 20, {changes(1, 0)});
  const Bounds bounds = analyze(build.run(), 0).bounds;
  EXPECT_NEAR(bounds.area_s, 50e-6, 1e-12);
  EXPECT_NEAR(bounds.placed_s, 80e-6, 1e-12);
}

TEST(Bounds, work_between_two_chains_has_only_what_lies_between) {
  RunBuilder build(1, 2);
  build.task(0, 0, "first", 0, 50, {changes(0, 0)});
  for (std::int32_t i = 0; i < 4; ++i) {
    const std::int64_t start = i < 2 ? 50 : 70;
    build.task(0, static_cast<std::size_t>(i % 2), "wide", start, start + 20,
               {changes(1 + i, 0), reads(0, 1)});
  }
  build.task(0, 0, "last", 95, 125,
             {changes(9, 0), reads(1, 1), reads(2, 1), reads(3, 1), reads(4, 1)});
  const Bounds bounds = analyze(build.run(), 0).bounds;
  EXPECT_NEAR(bounds.area_s, 80e-6, 1e-12);
  EXPECT_NEAR(bounds.critical_path_s, 100e-6, 1e-12);
  EXPECT_NEAR(bounds.mixed_s, 120e-6, 1e-12);
}

TEST(Bounds, the_mixed_one_is_the_best_of_all_thresholds_under_every_seed) {
  for (const std::uint64_t seed : simulation::seeds(60)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t bound) {
      return static_cast<std::int32_t>(random() % bound);
    };
    const auto workers = static_cast<std::int32_t>(1 + below(3));
    RunBuilder build(1, workers);
    std::vector<std::int32_t> versions(10, 0);
    std::vector<std::int64_t> there(10, 0);
    std::vector<std::int64_t> free_at(static_cast<std::size_t>(workers), 0);
    for (std::int32_t tasks = 1 + below(40); tasks > 0; --tasks) {
      const auto main = static_cast<std::size_t>(below(10));
      const auto other = (main + 1 + static_cast<std::size_t>(below(9))) % 10;
      const auto who = static_cast<std::size_t>(below(static_cast<std::uint64_t>(workers)));
      const std::int64_t start = std::max({free_at[who], there[main], there[other]});
      const std::int64_t end = start + 1 + below(50);
      build.task(0, who, "k", start, end,
                 {changes(static_cast<std::int32_t>(main), versions[main]),
                  reads(static_cast<std::int32_t>(other), versions[other])});
      ++versions[main];
      there[main] = free_at[who] = end;
    }
    const RunTrace run = build.run();
    const Bounds bounds = analyze(run, 0).bounds;
    const double expected = std::max(mixed_by_trying(run, workers), bounds.critical_path_s);
    ASSERT_NEAR(bounds.mixed_s, expected, 1e-12);
    ASSERT_LE(bounds.mixed_s, analyze(run, 0).seconds() + 1e-12);
  }
}

/// More tails than thresholds are tried: still a bound, and at least the others.
TEST(Bounds, of_many_tasks_are_bounds_too) {
  RunBuilder build(1, 2);
  std::int64_t now = 0;
  for (std::int32_t i = 0; i < 6000; ++i) {
    const std::int64_t end = now + 3 + i % 5;
    build.task(0, 0, "chain", now, end, {changes(0, i)});
    build.task(0, 1, "side", now, now + 2, {changes(1 + i, 0), reads(0, i)});
    now = end;
  }
  const Analysis analysis = analyze(build.run(), 0);
  EXPECT_NEAR(analysis.bounds.mixed_s, analysis.seconds(), 1e-9) << "the chain is all of the run";
  EXPECT_LT(analysis.bounds.area_s, analysis.seconds());
}

}  // namespace heddle::replay
