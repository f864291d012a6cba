#include "replay/simulation/noise.hpp"

#include <cmath>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace heddle::replay
