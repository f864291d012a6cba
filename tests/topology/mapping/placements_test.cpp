#include <algorithm>
#include <gtest/gtest.h>
#include <random>

#include "node-runtime/topology/mapping/exchanges.hpp"
#include "node-runtime/topology/mapping/scotch_mapping.hpp"
#include "node-runtime/topology/mapping/traffic_pattern.hpp"
#include "tests/support/seeds.hpp"
#include "tests/topology/mapping/problems.hpp"

namespace heddle::test {
namespace {

MappingProblem random_problem_of_any_size(std::mt19937_64& random) {
  const std::int32_t gpus = 1 + below(random, 12);
  MappingProblem problem =
      empty_problem(1 + below(random, 20), gpus, 1 + static_cast<std::size_t>(below(random, 2)));
  add_random_flows(problem, random);
  add_random_distances(problem, random, below(random, 2) == 0);
  if (below(random, 2) == 0) add_random_unary(problem, random);
  if (below(random, 2) == 0) add_nodes_of_two(problem);
  return problem;
}

TEST(MappingProblem, makes_placements_that_are_allowed) {
  for (const std::uint64_t seed : simulation::seeds(300)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    const MappingProblem problem = random_problem_of_any_size(random);
    ASSERT_TRUE(problem.is_valid());
    EXPECT_TRUE(problem.allows(problem.in_order()));
    EXPECT_TRUE(problem.allows(problem.random(random)));
    std::vector<std::int32_t> wished(static_cast<std::size_t>(problem.slots));
    for (std::int32_t& gpu : wished) gpu = below(random, problem.gpus + 2) - 1;
    EXPECT_TRUE(problem.allows(problem.nearest_allowed(wished)));
  }
}

TEST(MappingProblem, order_takes_gpus_by_turns) {
  EXPECT_EQ(empty_problem(4, 6, 1).in_order(), (Placement{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(empty_problem(6, 4, 1).in_order(), (Placement{0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST(MappingProblem, refuses_two_of_a_group_on_one_gpu) {
  MappingProblem problem = empty_problem(4, 2, 1);
  add_nodes_of_two(problem);
  EXPECT_TRUE(problem.allows({0, 1, 0, 1}));
  EXPECT_FALSE(problem.allows({0, 0, 1, 1}));
  EXPECT_FALSE(problem.allows({0, 1, 0, 0}));
  // Three slots on two GPUs: the empty place counts as one.
  EXPECT_TRUE(empty_problem(3, 2, 1).allows({0, 1, 0, 1}));
}

TEST(Exchanges, never_cost_more_and_end_where_no_exchange_gains) {
  for (const std::uint64_t seed : simulation::seeds(120)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    const MappingProblem problem = random_problem_of_any_size(random);
    const Placement start = problem.random(random);
    SearchBudget budget{1'000'000};
    const Placement end = exchanged(problem, start, budget);
    EXPECT_TRUE(problem.allows(end));
    const double cost = problem.cost(end);
    EXPECT_LE(cost, problem.cost(start) * (1 + 1e-12));
    ASSERT_GT(budget.looks, 0);
    // The table of costs is as exact as the costs themselves.
    for (std::int32_t i = 0; i < problem.slots; ++i) {
      for (std::int32_t j = 0; j < i; ++j) {
        for (std::int32_t k = -1; k < j; ++k) {
          Placement other = end;
          std::swap(other[static_cast<std::size_t>(i)], other[static_cast<std::size_t>(j)]);
          if (k >= 0)
            std::swap(other[static_cast<std::size_t>(j)], other[static_cast<std::size_t>(k)]);
          if (problem.allows(other)) {
            EXPECT_GE(problem.cost(other), cost * (1 - 1e-8)) << i << " " << j << " " << k;
          }
        }
      }
    }
  }
}

TEST(Exchanges, stop_when_the_budget_is_spent) {
  std::mt19937_64 random(1);
  MappingProblem problem = empty_problem(12, 12, 1);
  add_random_flows(problem, random);
  add_random_distances(problem, random, true);
  SearchBudget budget{5};
  EXPECT_TRUE(problem.allows(exchanged(problem, problem.in_order(), budget)));
  EXPECT_LE(budget.looks, 0);
}

TEST(Scotch, gives_the_same_for_the_same_seed) {
  for (const std::uint64_t seed : simulation::seeds(20)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    MappingProblem problem = empty_problem(16, 16, 1);
    add_random_flows(problem, random);
    add_tree_distances(problem, random);
    const ScotchResult first = scotch_mapping(problem, seed);
    ASSERT_EQ(first.failure, "");
    ASSERT_EQ(first.gpu_of.size(), 16);
    static_cast<void>(scotch_mapping(problem, seed + 1));
    EXPECT_EQ(scotch_mapping(problem, seed).gpu_of, first.gpu_of);
    EXPECT_TRUE(problem.allows(problem.nearest_allowed(first.gpu_of)));
  }
}

/// A 3-D stencil of 64 slots in random order on a tree of 4 x 4 x 4 GPUs.
MappingProblem shuffled_stencil(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const Traffic traffic = traffic_of_pattern("3d 4x4x4 weight 3");
  MappingProblem problem = empty_problem(64, 64, 1);
  const Placement shuffled = problem.random(random);
  for (std::int32_t i = 0; i < 64; ++i) {
    for (std::int32_t j = 0; j < 64; ++j) {
      problem.terms[0].flow[problem.of_slots(shuffled[static_cast<std::size_t>(i)],
                                             shuffled[static_cast<std::size_t>(j)])] =
          traffic.flow(SlotId{i}, SlotId{j}).bytes;
      if (i == j) continue;
      problem.terms[0].distance[problem.of_gpus(i, j)] = i / 4 == j / 4     ? 1
                                                         : i / 16 == j / 16 ? 2
                                                                            : 4;
    }
  }
  return problem;
}

TEST(Scotch, beats_exchanges_alone_on_a_large_stencil) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const MappingProblem problem = shuffled_stencil(seed);
    const double scotch =
        problem.cost(problem.nearest_allowed(scotch_mapping(problem, seed).gpu_of));
    SearchBudget budget{1'600'000};
    std::mt19937_64 random(seed);
    double exchanges = problem.cost(exchanged(problem, problem.in_order(), budget));
    while (budget.looks > 0) {
      exchanges =
          std::min(exchanges, problem.cost(exchanged(problem, problem.random(random), budget)));
    }
    EXPECT_LT(scotch, 0.95 * exchanges) << "seed " << seed;
  }
}

TEST(Scotch, says_when_there_is_nothing_to_map) {
  EXPECT_NE(scotch_mapping(empty_problem(4, 4, 1), 1).failure, "");
  std::mt19937_64 random(1);
  MappingProblem one_gpu = empty_problem(4, 1, 1);
  add_random_flows(one_gpu, random);
  EXPECT_NE(scotch_mapping(one_gpu, 1).failure, "");
}

}  // namespace
}  // namespace heddle::test
