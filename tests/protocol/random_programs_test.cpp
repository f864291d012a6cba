#include <gtest/gtest.h>

#include "tests/support/seeds.hpp"
#include "tests/support/simulated_cluster.hpp"

namespace heddle::simulation {
namespace {

struct Case {
  ClusterOptions cluster;
  std::vector<SimulatedMatrix> matrices;
  std::vector<Program> programs;
};

/// Everything about the case follows from the seed.
Case make_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::int32_t n) {
    return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n));
  };
  Case c;
  const std::int32_t rows = 1 + below(5);
  const std::int32_t columns = 1 + below(3);
  c.cluster.nodes = rows * columns;
  c.cluster.places = 1 + below(4);
  constexpr std::int32_t windows[] = {1, 2, 3, 7, 1000};
  c.cluster.window = windows[below(5)];
  constexpr std::int32_t extras[] = {0, 0, 1, 3, 50};
  c.cluster.extra_blocks = extras[below(5)];
  c.cluster.walk = static_cast<Walk>(below(3));
  c.cluster.seed = random();
  const std::int32_t matrix_count = 1 + below(3);
  for (std::int32_t m = 0; m < matrix_count; ++m) {
    SimulatedMatrix matrix;
    matrix.temporary = m > 0 && below(3) == 0;
    matrix.spare_count = below(3);
    const std::int32_t tiles = 2 + below(14);
    for (std::int32_t t = 0; t < tiles; ++t) {
      matrix.homes.push_back({NodeId{below(c.cluster.nodes)}, PlaceId{below(c.cluster.places)}});
    }
    c.matrices.push_back(std::move(matrix));
  }
  const std::int32_t programs = 1 + below(3);
  for (std::int32_t p = 0; p < programs; ++p) {
    RandomProgramOptions options;
    options.tasks = 5 + below(60);
    options.accesses_max = below(4) == 0 ? static_cast<std::int32_t>(protocol::accesses_max) : 4;
    options.minor_output = below(3) * 0.3;
    c.programs.push_back(random_program(options, c.matrices, random));
  }
  return c;
}

Outcome run_case(std::uint64_t seed, double cancel_probability) {
  Case c = make_case(seed);
  c.cluster.cancel_probability = cancel_probability;
  SimulatedCluster cluster(c.cluster, c.matrices);
  for (Program& program : c.programs) cluster.submit(std::move(program));
  return cluster.run();
}

}  // namespace

TEST(RandomPrograms, run_as_the_sequential_program_would_under_every_seed) {
  std::set<protocol::InstanceKind> kinds;
  std::int64_t renamings = 0;
  for (const std::uint64_t seed : seeds(8000)) {
    const Outcome outcome = run_case(seed, 0);
    ASSERT_TRUE(outcome.ok) << outcome.failure << '\n' << replay_hint(seed);
    kinds.insert(outcome.kinds_seen.begin(), outcome.kinds_seen.end());
    renamings += outcome.renamings;
  }
  if (!one_seed_only()) {
    EXPECT_EQ(kinds.size(), 8U);
    EXPECT_GT(renamings, 100);
  }
}

TEST(RandomPrograms, end_with_every_count_right_when_jobs_are_cancelled_anywhere) {
  for (const std::uint64_t seed : seeds(3000)) {
    const Outcome outcome = run_case(seed, 0.01);
    ASSERT_TRUE(outcome.ok) << outcome.failure << '\n' << replay_hint(seed);
  }
}

}  // namespace heddle::simulation
