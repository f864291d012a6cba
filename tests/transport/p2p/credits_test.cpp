#include "node-runtime/transport/p2p/credits.hpp"

#include <deque>
#include <gtest/gtest.h>
#include <random>

#include "tests/support/seeds.hpp"

namespace heddle::p2p {
namespace {

constexpr NodeId here{0};
constexpr NodeId there{1};

TEST(Credits, are_as_many_as_there_is_room) {
  Credits credits(2, 7);
  EXPECT_TRUE(credits.take(there, 3));
  EXPECT_TRUE(credits.take(there, 3));
  EXPECT_FALSE(credits.take(there, 2));
  EXPECT_TRUE(credits.take(there, 1));
  EXPECT_FALSE(credits.take(there, 1));
  EXPECT_TRUE(credits.take(here, 7)) << "each peer has its own";
  credits.came_back(there, 2);
  EXPECT_EQ(credits.available(there), 2);
}

TEST(Credits, are_owed_by_themselves_once_half_of_the_room_is_free_again) {
  Credits credits(2, 8);
  for (int i = 0; i < 4; ++i) credits.room_taken(there, 2);
  EXPECT_FALSE(credits.room_freed(there, 2));
  EXPECT_TRUE(credits.room_freed(there, 2));
  EXPECT_EQ(credits.take_owed(there), 4);
  EXPECT_EQ(credits.take_owed(there), 0);
  EXPECT_EQ(credits.held(there), 4);
}

TEST(Credits, that_nobody_has_are_a_defect) {
  Credits credits(2, 1);
  EXPECT_DEATH(credits.came_back(there, 1), "gives 1 credits back, 1 of 1 are here");
  EXPECT_DEATH(static_cast<void>(credits.room_freed(there, 1)), "holds 0, not 1");
  credits.room_taken(there, 1);
  EXPECT_DEATH(credits.room_taken(there, 1), "sends without credits");
}

/// Two nodes, one of which sends; messages and credits take their time.
TEST(Credits, never_get_lost_or_more_on_random_orders) {
  for (const std::uint64_t seed : simulation::seeds(100)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    const auto all = static_cast<std::int32_t>(1 + random() % 9);
    Credits sender(2, all);
    Credits receiver(2, all);
    std::deque<std::int32_t> messages_under_way;  // what they have taken
    std::deque<std::int32_t> messages_held;
    std::deque<std::int32_t> credits_under_way;
    for (int step = 0; step < 500; ++step) {
      switch (random() % 4) {
        case 0: {
          const auto count = static_cast<std::int32_t>(1 + random() % 4);
          if (sender.take(there, count)) messages_under_way.push_back(count);
          break;
        }
        case 1:
          if (messages_under_way.empty()) break;
          receiver.room_taken(here, messages_under_way.front());
          messages_held.push_back(messages_under_way.front());
          messages_under_way.pop_front();
          break;
        case 2:
          if (messages_held.empty()) break;
          if (receiver.room_freed(here, messages_held.front())) {
            credits_under_way.push_back(receiver.take_owed(here));
          }
          messages_held.pop_front();
          ASSERT_LE(credits_under_way.size(), 2U);
          break;
        default:
          if (credits_under_way.empty()) break;
          sender.came_back(there, credits_under_way.front());
          credits_under_way.pop_front();
      }
      std::int32_t known = sender.available(there) + receiver.held(here);
      for (const std::int32_t count : messages_under_way) known += count;
      for (const std::int32_t count : credits_under_way) known += count;
      ASSERT_LE(known, all);
      ASSERT_GT(known + (all + 1) / 2, all) << "the rest is owed, which is less than half";
    }
  }
}

}  // namespace
}  // namespace heddle::p2p
