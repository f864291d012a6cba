#include "replay/simulation/noise.hpp"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <set>

#include "replay/simulation/simulator.hpp"
#include "tests/replay/random_simulation.hpp"

namespace heddle::replay {
namespace {

ScriptedJob job_of(int tasks) {
  simulation::ProgramWriter writer;
  for (int i = 0; i < tasks; ++i) writer.task({writer.read_write(writer.tile(0, 0))});
  return {writer.program(), writer.matrices(), {{"work", 1, 1, 1e-6, 4e-7, 1}}, 8000};
}

TEST(NoisyJob, draws_with_the_mean_of_one_and_the_variation_that_was_wanted) {
  ScriptedJob job = job_of(1);
  for (const double variation : {0.05, 0.3, 1.0}) {
    const std::vector<Spread> spreads{{variation, {}}};
    const NoisyJob noisy(job, spreads, 7);
    constexpr int count = 200'000;
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < count; ++i) {
      const double share = noisy.share(TaskKindId{0}, NodeId{i % 3}, i);
      ASSERT_GT(share, 0);
      sum += share;
      squares += share * share;
    }
    const double mean = sum / count;
    EXPECT_NEAR(mean, 1, 0.01 * (1 + variation));
    EXPECT_NEAR(std::sqrt(squares / count - mean * mean), variation, 0.05 * variation);
  }
}

TEST(NoisyJob, draws_from_what_was_recorded) {
  ScriptedJob job = job_of(1);
  const std::vector<Spread> spreads{{0, {0.5F, 1.5F}}};
  const NoisyJob noisy(job, spreads, 7);
  int low = 0;
  for (int i = 0; i < 1000; ++i) {
    const double share = noisy.share(TaskKindId{0}, NodeId{0}, i);
    ASSERT_TRUE(share == 0.5 || share == 1.5) << share;
    low += share == 0.5 ? 1 : 0;
  }
  EXPECT_NEAR(low, 500, 80);
}

TEST(NoisyJob, changes_what_tasks_take) {
  ScriptedJob job = job_of(100);
  SimulatedMachine machine = free_machine();
  machine.cpu_workers = 1;
  const std::vector<Spread> spreads{{0, {0.5F}}};
  NoisyJob noisy(job, spreads, 1);
  EXPECT_NEAR(simulate(machine, noisy, {}).seconds, 50e-6, 1e-12);
  const std::vector<Spread> none{{0, {}}};
  NoisyJob quiet(job, none, 1);
  EXPECT_NEAR(simulate(machine, quiet, {}).seconds, 100e-6, 1e-12);
}

TEST(DealtPaces, are_those_of_the_run_each_as_often_in_an_order_of_the_seed) {
  const std::vector<double> of_run{0.8, 4.0 / 3};  // mean rate 1
  const std::vector<double> paces = dealt_paces(of_run, 12, 1);
  ASSERT_EQ(paces.size(), 12U);
  EXPECT_EQ(std::ranges::count_if(paces, [](double pace) { return std::abs(pace - 0.8) < 1e-9; }),
            6);
  EXPECT_EQ(std::ranges::count_if(paces, [](double pace) { return pace > 1.3; }), 6);
  EXPECT_EQ(paces, dealt_paces(of_run, 12, 1));
  EXPECT_NE(paces, dealt_paces(of_run, 12, 2));
}

TEST(DealtPaces, leave_a_worker_as_fast_as_one_of_the_run_was) {
  const std::vector<double> of_run{0.7, 0.9, 1.6};
  for (const std::int32_t workers : {1, 2, 3, 4, 7, 100}) {
    EXPECT_NEAR(mean_rate(dealt_paces(of_run, workers, 5)), mean_rate(of_run), 1e-12) << workers;
  }
}

TEST(DealtPaces, of_another_rate_differ_as_before) {
  const std::vector<double> paces{0.7, 0.9, 1.6};
  const std::vector<double> faster = paces_of_rate(paces, 2);
  EXPECT_NEAR(mean_rate(faster), 2, 1e-12);
  ASSERT_EQ(faster.size(), paces.size());
  for (std::size_t i = 1; i < paces.size(); ++i) {
    EXPECT_NEAR(faster[i] / faster[0], paces[i] / paces[0], 1e-12);
  }
}

TEST(DealtPaces, draw_who_is_left_over) {
  const std::vector<double> of_run{1, 2, 4};
  std::set<double> ratios;  // of the two workers
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const std::vector<double> paces = dealt_paces(of_run, 2, seed);
    ratios.insert(paces[0] / paces[1]);
  }
  EXPECT_EQ(ratios, (std::set<double>{0.25, 0.5, 2, 4}));
}

}  // namespace
}  // namespace heddle::replay
