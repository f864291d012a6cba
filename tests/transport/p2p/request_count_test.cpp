#include "node-runtime/transport/p2p/request_count.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <set>
#include <thread>
#include <vector>

namespace heddle::p2p {

TEST(RequestCount, gives_no_number_twice_whoever_asks) {
  constexpr std::int64_t each = 20'000;
  RequestCount count(4 * each);
  std::vector<std::vector<std::int64_t>> numbers(4);
  const auto begin = [&](std::size_t who) {
    for (std::int64_t i = 0; i < each; ++i) {
      numbers[who].push_back(count.begin(who == 0).value_or(-1));
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t who = 1; who < numbers.size(); ++who) threads.emplace_back(begin, who);
  begin(0);
  for (std::thread& thread : threads) thread.join();
  std::set<std::int64_t> all;
  for (const auto& some : numbers) all.insert(some.begin(), some.end());
  EXPECT_EQ(all.size(), static_cast<std::size_t>(4 * each));
  EXPECT_GT(*all.begin(), 0) << "all have one, and 0 is nobody's";
  EXPECT_FALSE(count.is_zero());
  for (std::int64_t i = 0; i < 4 * each; ++i) count.end();
  EXPECT_TRUE(count.is_zero());
}

TEST(RequestCount, refuses_more_than_the_most_and_goes_on_when_some_are_over) {
  for (const bool at_once : {false, true}) {
    RequestCount count(3);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(count.begin(i % 2 == 0));
    EXPECT_FALSE(count.begin(at_once));
    EXPECT_FALSE(count.begin(!at_once));
    count.end();
    EXPECT_TRUE(count.begin(at_once));
    EXPECT_FALSE(count.begin(at_once));
    for (int i = 0; i < 3; ++i) count.end();
    EXPECT_TRUE(count.is_zero());
  }
}

TEST(RequestCount, forgets_what_did_not_begin_after_all) {
  RequestCount count(1);
  EXPECT_TRUE(count.begin(false));
  count.refuse();
  EXPECT_TRUE(count.is_zero());
  EXPECT_TRUE(count.begin(false));
}

}  // namespace heddle::p2p
