#include <gtest/gtest.h>

#include "tests/support/random_case.hpp"
#include "tests/support/seeds.hpp"

namespace heddle::simulation {
namespace {

/// A random case whose readers are known, with the ways that the seed draws.
RandomCase known(std::uint64_t seed) {
  RandomCase drawn(seed);
  constexpr Ways ways[] = {Ways::home, Ways::random, Ways::chain, Ways::hosts};
  constexpr Walk walks[] = {Walk::full, Walk::pruned, Walk::announced, Walk::published};
  drawn.cluster.ways = ways[drawn.cluster.seed % 4];
  drawn.cluster.walk = walks[drawn.cluster.seed / 4 % 4];
  return drawn;
}

}  // namespace

TEST(ReaderWays, leave_what_the_sequential_program_does_under_every_seed) {
  std::int64_t passed_on = 0;
  std::int64_t early = 0;
  const auto all = seeds(6000);
  for (const std::uint64_t seed : all) {
    const RandomCase random = known(seed);
    const Outcome outcome = random.run();
    ASSERT_TRUE(outcome.ok) << outcome.failure << '\n' << replay_hint(seed);
    passed_on += outcome.passed_on;
    early += outcome.passed_on_early;
    ASSERT_TRUE(outcome.passed_on == 0 || random.cluster.ways != Ways::home) << replay_hint(seed);
  }
  if (!one_seed_only()) {
    EXPECT_GT(passed_on, std::ssize(all));
    EXPECT_GT(early, std::ssize(all) / 20);
  }
}

TEST(ReaderWays, advance_with_pools_of_the_planned_minimum_and_a_window_of_one) {
  for (const std::uint64_t seed : seeds(4000)) {
    RandomCase random = known(seed);
    random.cluster.extra_blocks = 0;
    random.cluster.window = 1;
    const Outcome outcome = random.run();
    ASSERT_TRUE(outcome.ok) << outcome.failure << '\n' << replay_hint(seed);
  }
}

TEST(ReaderWays, pass_on_empty_messages_of_jobs_that_are_cancelled_anywhere) {
  for (const std::uint64_t seed : seeds(4000)) {
    RandomCase random = known(seed);
    random.cluster.cancel_probability = 0.01;
    const Outcome outcome = random.run();
    ASSERT_TRUE(outcome.ok) << outcome.failure << '\n' << replay_hint(seed);
  }
}

/// What decision 044 asks of a tree: a parent's first read comes before those of its children.
TEST(ReaderWays, from_later_readers_block_some_programs) {
  if (one_seed_only()) GTEST_SKIP() << "counts over all seeds";
  std::int32_t blocked = 0;
  for (const std::uint64_t seed : seeds(1000)) {
    RandomCase random = known(seed);
    random.cluster.ways = Ways::backwards;
    random.cluster.extra_blocks = 0;
    random.cluster.window = 1;
    const Outcome outcome = random.run();
    if (outcome.ok) continue;
    ASSERT_EQ(outcome.check, Check::progress) << outcome.failure << '\n' << replay_hint(seed);
    ++blocked;
  }
  EXPECT_GT(blocked, 20);
}

}  // namespace heddle::simulation
