#include "node-runtime/transport/datatype/plan_cache.hpp"

#include <array>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace heddle::test {
namespace {

Datatype columns(std::int64_t count) {
  return Datatype::vector(count, 3, 7, Scalar::float64);
}

Datatype scattered(std::int64_t count) {
  std::vector<std::int64_t> displacements;
  for (std::int64_t i = 0; i < count; ++i) displacements.push_back((i + 1) * (i + 1));
  return Datatype::indexed_block(1, displacements, Scalar::float64);
}

}  // namespace

TEST(PlanCache, finds_a_type_again_and_shares_plans_of_equal_types) {
  PlanCache cache;
  const Datatype type = columns(5);
  const std::vector<Datatype> copies(2, type);
  const auto plan = cache.commit(type);
  EXPECT_EQ(cache.commit(copies.back()), plan);
  EXPECT_EQ(cache.commit(columns(5)), plan);
  const std::array<Datatype::IndexedBlock, 5> blocks{{{0, 3}, {7, 3}, {14, 3}, {21, 3}, {28, 3}}};
  EXPECT_EQ(cache.commit(Datatype::indexed(blocks, Scalar::float64)), plan);
  EXPECT_NE(cache.commit(columns(6)), plan);
  EXPECT_EQ(cache.statistics().found, 1);
  EXPECT_EQ(cache.statistics().shared, 2);
  EXPECT_EQ(cache.statistics().made, 2);
}

TEST(PlanCache, does_not_share_plans_of_elements_that_lie_further_apart) {
  PlanCache cache;
  const auto plan = cache.commit(Scalar::float64);
  EXPECT_NE(cache.commit(Datatype::resized(Scalar::float64, 0, 16)), plan);
  EXPECT_EQ(cache.commit(Scalar::int64), plan);  // the same bytes
}

TEST(PlanCache, forgets_what_was_not_committed_for_longest) {
  PlanCache cache({.entries_max = 2});
  const Datatype first = columns(2);
  const Datatype second = columns(3);
  const Datatype third = columns(4);
  static_cast<void>(cache.commit(first));
  static_cast<void>(cache.commit(second));
  static_cast<void>(cache.commit(first));
  static_cast<void>(cache.commit(third));
  EXPECT_EQ(cache.size(), 2U);
  static_cast<void>(cache.commit(first));
  EXPECT_EQ(cache.statistics().found, 2);
  static_cast<void>(cache.commit(second));
  EXPECT_EQ(cache.statistics().made, 4);
}

TEST(PlanCache, shares_a_plan_that_is_forgotten_but_in_use) {
  PlanCache cache({.entries_max = 1});
  const auto plan = cache.commit(columns(2));
  static_cast<void>(cache.commit(columns(3)));
  EXPECT_EQ(cache.commit(columns(2)), plan);
}

TEST(PlanCache, keeps_no_more_bytes_than_it_may) {
  constexpr std::size_t room = 100 * sizeof(WorkUnit) + 2 * sizeof(PackPlan);
  PlanCache cache({.bytes_max = room});
  static_cast<void>(cache.commit(scattered(50)));
  static_cast<void>(cache.commit(scattered(49)));
  EXPECT_EQ(cache.size(), 2U);
  static_cast<void>(cache.commit(scattered(40)));
  EXPECT_EQ(cache.size(), 2U);
  EXPECT_EQ(cache.commit(scattered(200))->units.size(), 200U);
  EXPECT_EQ(cache.size(), 2U);
  for (std::int64_t n = 3; n < 100; ++n) static_cast<void>(cache.commit(scattered(n)));
  EXPECT_TRUE(cache.is_valid());
}

TEST(PlanCache, gives_threads_that_commit_equal_types_one_plan) {
  PlanCache cache({.entries_max = 8});
  const auto held = cache.commit(scattered(20));
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, &held] {
      for (std::int64_t n = 3; n < 300; ++n) {
        ASSERT_EQ(cache.commit(scattered(3 + n % 20))->units.size(),
                  static_cast<std::size_t>(3 + n % 20));
        ASSERT_EQ(cache.commit(scattered(20)), held);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(cache.is_valid());
}

}  // namespace heddle::test
