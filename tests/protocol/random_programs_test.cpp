#include <gtest/gtest.h>

#include "tests/support/random_case.hpp"
#include "tests/support/seeds.hpp"

namespace heddle::simulation {

TEST(RandomPrograms, run_as_the_sequential_program_would_under_every_seed) {
  std::set<protocol::InstanceKind> kinds;
  std::int64_t renamings = 0;
  std::int64_t divided = 0;
  std::int64_t lent = 0;
  std::int64_t fetches = 0;
  std::int64_t write_backs = 0;
  std::int64_t lending = 0;  // seeds
  const auto all = seeds(8000);
  for (const std::uint64_t seed : all) {
    const Outcome outcome = RandomCase(seed).run();
    ASSERT_TRUE(outcome.ok) << outcome.failure << '\n' << replay_hint(seed);
    kinds.insert(outcome.kinds_seen.begin(), outcome.kinds_seen.end());
    renamings += outcome.renamings;
    divided += outcome.divided;
    lent += outcome.lent;
    fetches += outcome.fetches;
    write_backs += outcome.write_backs;
    lending += outcome.lent > 0 ? 1 : 0;
    ASSERT_TRUE(outcome.lent == 0 || placement_of(seed) == Placement::dynamic) << replay_hint(seed);
  }
  if (!one_seed_only()) {
    EXPECT_EQ(kinds.size(), 8U);
    EXPECT_GT(renamings, 100);
    EXPECT_GT(divided, 1000);
    // Where tasks may be lent and there are devices: three of eight.
    EXPECT_GT(lending, std::ssize(all) / 8);
    EXPECT_GT(lent, std::ssize(all));
    EXPECT_GT(fetches, std::ssize(all));
    EXPECT_GT(write_backs, std::ssize(all));
  }
}

TEST(RandomPrograms, advance_with_pools_of_the_planned_minimum_and_a_window_of_one) {
  for (const std::uint64_t seed : seeds(2000)) {
    RandomCase random(seed);
    random.cluster.extra_blocks = 0;
    random.cluster.window = 1;
    const Outcome outcome = random.run();
    ASSERT_TRUE(outcome.ok) << outcome.failure << '\n' << replay_hint(seed);
  }
}

TEST(RandomPrograms, end_with_every_count_right_when_jobs_are_cancelled_anywhere) {
  for (const std::uint64_t seed : seeds(3000)) {
    RandomCase random(seed);
    random.cluster.cancel_probability = 0.01;
    const Outcome outcome = random.run();
    ASSERT_TRUE(outcome.ok) << outcome.failure << '\n' << replay_hint(seed);
  }
}

}  // namespace heddle::simulation
