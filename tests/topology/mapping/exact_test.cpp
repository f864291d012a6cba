#include <gtest/gtest.h>
#include <random>

#include "node-runtime/topology/mapping/cost_tree.hpp"
#include "node-runtime/topology/mapping/enumeration.hpp"
#include "node-runtime/topology/mapping/gilmore_lawler.hpp"
#include "node-runtime/topology/mapping/tree_subsets.hpp"
#include "tests/support/seeds.hpp"
#include "tests/topology/mapping/problems.hpp"

namespace heddle::test {
namespace {

struct Shape {
  std::int32_t used;
  std::int32_t gpus;
};

/// Slots and GPUs of all kinds: as many, fewer, more.
constexpr Shape shapes[] = {{1, 1}, {2, 2}, {3, 2}, {5, 2}, {3, 5}, {4, 3}, {5, 3},
                            {6, 6}, {4, 7}, {7, 7}, {7, 4}, {6, 4}, {2, 6}, {4, 1}};

MappingProblem random_problem(std::mt19937_64& random, const Shape& shape) {
  MappingProblem problem =
      empty_problem(shape.used, shape.gpus, 1 + static_cast<std::size_t>(below(random, 2)));
  add_random_flows(problem, random);
  if (below(random, 2) == 0) add_random_unary(problem, random);
  if (below(random, 2) == 0) add_nodes_of_two(problem);
  return problem;
}

TEST(Enumeration, finds_what_trying_all_placements_finds) {
  for (const std::uint64_t seed : simulation::seeds(140)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    MappingProblem problem = random_problem(random, shapes[seed % std::size(shapes)]);
    add_random_distances(problem, random, below(random, 2) == 0);
    ASSERT_TRUE(problem.is_valid());
    const Placement start = problem.in_order();
    const auto found = cheapest_by_enumeration(problem, start, 5'000'000);
    ASSERT_TRUE(found.has_value());
    EXPECT_TRUE(problem.allows(*found));
    EXPECT_NEAR(problem.cost(*found), least_cost_of_all(problem), 1e-9 * problem.cost(start));
  }
}

TEST(Enumeration, tries_equal_gpus_once) {
  std::mt19937_64 random(1);
  MappingProblem problem = empty_problem(7, 7, 1);
  add_random_flows(problem, random);
  // GPUs 0 to 3 and 4 to 6 are near each other.
  for (std::int32_t a = 0; a < 7; ++a) {
    for (std::int32_t b = 0; b < 7; ++b) {
      if (a != b) problem.terms[0].distance[problem.of_gpus(a, b)] = (a < 4) == (b < 4) ? 1 : 3;
    }
  }
  EXPECT_EQ(problem.equal_gpus(), (std::vector<std::int32_t>{0, 0, 0, 0, 4, 4, 4}));
  // 35 ways to deal out the slots; with bounds off there are at most 35 x 7 branches and their
  // stems.
  const auto found = cheapest_by_enumeration(problem, problem.in_order(), 300);
  ASSERT_TRUE(found.has_value());
  EXPECT_NEAR(problem.cost(*found), least_cost_of_all(problem), 1e-9);
}

TEST(Enumeration, gives_up_after_the_branches_that_it_may_look_at) {
  std::mt19937_64 random(3);
  MappingProblem problem = empty_problem(7, 7, 1);
  add_random_flows(problem, random);
  add_random_distances(problem, random, true);
  EXPECT_FALSE(cheapest_by_enumeration(problem, problem.in_order(), 3).has_value());
}

TEST(TreeSubsets, finds_what_trying_all_placements_finds_on_random_trees) {
  for (const std::uint64_t seed : simulation::seeds(140)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    MappingProblem problem = random_problem(random, shapes[seed % std::size(shapes)]);
    add_tree_distances(problem, random);
    ASSERT_TRUE(problem.is_valid());
    const auto tree = cost_tree(problem);
    ASSERT_TRUE(tree.has_value());
    EXPECT_EQ(tree->root().leaves, problem.gpus);
    const auto found = cheapest_on_tree(problem, *tree);
    ASSERT_TRUE(found.has_value());
    EXPECT_TRUE(problem.allows(*found));
    EXPECT_NEAR(problem.cost(*found), least_cost_of_all(problem),
                1e-9 * problem.cost(problem.in_order()));
  }
}

TEST(TreeSubsets, agrees_with_enumeration_on_larger_trees) {
  for (const std::uint64_t seed : simulation::seeds(20)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    MappingProblem problem = random_problem(random, {8, 8 + static_cast<std::int32_t>(seed % 3)});
    add_tree_distances(problem, random);
    const auto by_subsets = cheapest_on_tree(problem, *cost_tree(problem));
    const auto by_branches = cheapest_by_enumeration(problem, problem.in_order(), 5'000'000);
    ASSERT_TRUE(by_subsets.has_value() && by_branches.has_value());
    EXPECT_NEAR(problem.cost(*by_subsets), problem.cost(*by_branches),
                1e-9 * problem.cost(*by_branches));
  }
}

TEST(TreeSubsets, refuses_more_than_it_may_look_at) {
  std::mt19937_64 random(1);
  MappingProblem problem = empty_problem(12, 12, 1);
  add_random_flows(problem, random);
  add_tree_distances(problem, random);
  EXPECT_FALSE(cheapest_on_tree(problem, *cost_tree(problem), 100).has_value());
  MappingProblem large = empty_problem(21, 21, 1);
  add_tree_distances(large, random);
  EXPECT_FALSE(cheapest_on_tree(large, *cost_tree(large)).has_value());
}

TEST(CostTree, is_found_where_distances_are_a_tree_s_and_not_elsewhere) {
  MappingProblem problem = empty_problem(3, 3, 1);
  std::vector<double>& distance = problem.terms[0].distance;
  const auto set = [&](std::int32_t a, std::int32_t b, double there, double back) {
    distance[problem.of_gpus(a, b)] = there;
    distance[problem.of_gpus(b, a)] = back;
  };
  set(0, 1, 1, 1);
  set(0, 2, 2, 2);
  set(1, 2, 2, 2);
  const auto tree = cost_tree(problem);
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(tree->vertices.size(), 5);
  EXPECT_EQ(tree->root().distances, std::vector<double>{2});
  set(1, 2, 3, 3);
  EXPECT_FALSE(cost_tree(problem).has_value());
  set(1, 2, 2, 2.5);
  EXPECT_FALSE(cost_tree(problem).has_value());
}

TEST(CostTree, needs_one_tree_for_all_terms) {
  MappingProblem problem = empty_problem(4, 4, 2);
  const auto set = [&](std::size_t term, std::int32_t a, std::int32_t b, double distance) {
    problem.terms[term].distance[problem.of_gpus(a, b)] = distance;
    problem.terms[term].distance[problem.of_gpus(b, a)] = distance;
  };
  for (std::int32_t a = 0; a < 4; ++a) {
    for (std::int32_t b = 0; b < a; ++b) {
      set(0, a, b, a / 2 == b / 2 ? 1 : 4);
      set(1, a, b, 2);
    }
  }
  EXPECT_TRUE(cost_tree(problem).has_value());  // the second term has no split of its own
  set(1, 0, 2, 1);
  set(1, 1, 3, 1);
  EXPECT_FALSE(cost_tree(problem).has_value());
}

TEST(LinearAssignment, finds_the_least_sum) {
  EXPECT_EQ(linear_assignment(std::vector<double>{4, 1, 3, 2, 0, 5, 3, 2, 2}, 3, 3), 5);
  EXPECT_EQ(linear_assignment(std::vector<double>{5, 9, 1, 5, 1, 9}, 2, 3), 2);
  EXPECT_EQ(linear_assignment({}, 0, 4), 0);
}

TEST(GilmoreLawler, bounds_are_never_above_the_optimum) {
  for (const std::uint64_t seed : simulation::seeds(140)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    MappingProblem problem = random_problem(random, shapes[seed % std::size(shapes)]);
    add_random_distances(problem, random, below(random, 2) == 0);
    const double optimum = least_cost_of_all(problem);
    EXPECT_LE(gilmore_lawler_bound(problem), optimum + 1e-9);
    // The more is fixed, the nearer is the bound; at the end it is the cost.
    const Placement best = *cheapest_by_enumeration(problem, problem.in_order(), 5'000'000);
    Placement placed(best.size(), -1);
    for (std::int32_t i = 0; i < problem.used; ++i) {
      placed[static_cast<std::size_t>(i)] = best[static_cast<std::size_t>(i)];
      EXPECT_LE(gilmore_lawler_bound(problem, placed), optimum + 1e-9);
    }
    EXPECT_NEAR(gilmore_lawler_bound(problem, placed), optimum, 1e-9);
  }
}

TEST(GilmoreLawler, is_tight_where_all_gpus_are_alike) {
  std::mt19937_64 random(5);
  MappingProblem problem = empty_problem(5, 5, 1);
  add_random_flows(problem, random);
  add_random_unary(problem, random);
  for (std::int32_t a = 0; a < 5; ++a) {
    for (std::int32_t b = 0; b < 5; ++b) {
      if (a != b) problem.terms[0].distance[problem.of_gpus(a, b)] = 2;
    }
  }
  EXPECT_NEAR(gilmore_lawler_bound(problem), least_cost_of_all(problem), 1e-9);
}

}  // namespace
}  // namespace heddle::test
