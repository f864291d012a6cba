#include "node-runtime/residency/eviction_lists.hpp"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "tests/support/seeds.hpp"

namespace heddle {
namespace {

using Kind = EvictionLists::Kind;
using simulation::replay_hint;

constexpr std::array kinds{Kind::discarded, Kind::clean, Kind::dirty};

ResidentBlock block(std::size_t i) {
  return ResidentBlock{static_cast<std::int32_t>(i)};
}

/// A list, emptied.
std::vector<ResidentBlock> take_all(EvictionLists& lists, Kind kind) {
  std::vector<ResidentBlock> all;
  while (lists.first(kind) != no_block) {
    all.push_back(lists.first(kind));
    lists.remove(all.back());
    EXPECT_TRUE(lists.is_valid());
  }
  return all;
}

}  // namespace

TEST(EvictionLists, give_the_least_recently_used_block_first) {
  EvictionLists lists;
  lists.resize(5);
  for (const std::size_t use : {3U, 1U, 4U, 0U, 2U}) lists.move(block(use), Kind::clean, use);
  EXPECT_TRUE(lists.is_valid());
  EXPECT_EQ(take_all(lists, Kind::clean),
            (std::vector{block(0), block(1), block(2), block(3), block(4)}));
  EXPECT_EQ(lists.first(Kind::dirty), no_block);
}

TEST(EvictionLists, a_block_is_in_one_list_at_a_time) {
  EvictionLists lists;
  lists.resize(2);
  lists.move(block(0), Kind::dirty, 1);
  lists.move(block(0), Kind::clean, 1);
  EXPECT_EQ(lists.first(Kind::dirty), no_block);
  EXPECT_EQ(lists.first(Kind::clean), block(0));
  lists.remove(block(0));
  lists.remove(block(0));
  EXPECT_EQ(lists.kind(block(0)), Kind::off);
  EXPECT_EQ(lists.first(Kind::clean), no_block);
}

TEST(EvictionLists, keep_their_invariant_and_order_in_random_sequences) {
  for (const std::uint64_t seed : simulation::seeds(200)) {
    std::mt19937_64 random(seed);
    const std::size_t count = 1 + random() % 20;
    EvictionLists lists;
    lists.resize(count);
    std::vector<std::uint64_t> last_use(count);
    std::vector<Kind> kind(count, Kind::off);
    for (std::uint64_t step = 1; step <= 200; ++step) {
      const std::size_t i = random() % count;
      kind[i] = random() % 4 == 0 ? Kind::off : kinds[random() % kinds.size()];
      // Most blocks have been used just now, some long ago.
      last_use[i] = random() % 3 == 0 ? random() % step : step;
      lists.move(block(i), kind[i], last_use[i]);
      ASSERT_TRUE(lists.is_valid()) << replay_hint(seed);
      ASSERT_EQ(lists.kind(block(i)), kind[i]) << replay_hint(seed);
    }
    for (const Kind one : kinds) {
      const std::vector<ResidentBlock> listed = take_all(lists, one);
      EXPECT_EQ(std::ssize(listed), std::ranges::count(kind, one)) << replay_hint(seed);
      EXPECT_TRUE(std::ranges::is_sorted(listed, {}, [&](ResidentBlock b) {
        return last_use[static_cast<std::size_t>(b.value())];
      })) << replay_hint(seed);
    }
  }
}

}  // namespace heddle
