#include "node-runtime/transport/p2p/credits.hpp"

#include <deque>
#include <gtest/gtest.h>
#include <random>

#include "tests/support/seeds.hpp"

namespace heddle::p2p {
namespace {

constexpr NodeId here{0};
constexpr NodeId there{1};

TEST(Credits, are_as_many_as_slots) {
  Credits credits(2, 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(credits.take(there));
  EXPECT_FALSE(credits.take(there));
  EXPECT_TRUE(credits.take(here)) << "each peer has its own";
  credits.came_back(there, 2);
  EXPECT_EQ(credits.available(there), 2);
}

TEST(Credits, are_owed_by_themselves_once_half_of_the_slots_are_free_again) {
  Credits credits(2, 4);
  for (int i = 0; i < 4; ++i) credits.slot_taken(there);
  EXPECT_FALSE(credits.slot_freed(there));
  EXPECT_TRUE(credits.slot_freed(there));
  EXPECT_EQ(credits.take_owed(there), 2);
  EXPECT_EQ(credits.take_owed(there), 0);
  EXPECT_EQ(credits.held(there), 2);
}

TEST(Credits, that_nobody_has_are_a_defect) {
  Credits credits(2, 1);
  EXPECT_DEATH(credits.came_back(there, 1), "gives 1 credits back, 1 of 1 are here");
  EXPECT_DEATH(static_cast<void>(credits.slot_freed(there)), "holds no slot");
  credits.slot_taken(there);
  EXPECT_DEATH(credits.slot_taken(there), "sends without a credit");
}

/// Two nodes, one of which sends; messages and credits take their time.
TEST(Credits, never_get_lost_or_more_on_random_orders) {
  for (const std::uint64_t seed : simulation::seeds(100)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    const auto all = static_cast<std::int32_t>(1 + random() % 9);
    Credits sender(2, all);
    Credits receiver(2, all);
    int messages_under_way = 0;
    std::deque<std::int32_t> credits_under_way;
    for (int step = 0; step < 500; ++step) {
      switch (random() % 4) {
        case 0:
          if (sender.take(there)) ++messages_under_way;
          break;
        case 1:
          if (messages_under_way == 0) break;
          --messages_under_way;
          receiver.slot_taken(here);
          break;
        case 2:
          if (receiver.held(here) == 0) break;
          if (receiver.slot_freed(here)) credits_under_way.push_back(receiver.take_owed(here));
          ASSERT_LE(credits_under_way.size(), 2U);
          break;
        default:
          if (credits_under_way.empty()) break;
          sender.came_back(there, credits_under_way.front());
          credits_under_way.pop_front();
      }
      std::int32_t known = sender.available(there) + messages_under_way + receiver.held(here);
      for (const std::int32_t count : credits_under_way) known += count;
      ASSERT_LE(known, all);
      ASSERT_GT(known + (all + 1) / 2, all) << "the rest is owed, which is less than half";
    }
  }
}

}  // namespace
}  // namespace heddle::p2p
