#include "node-runtime/trace/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

namespace heddle::trace {
namespace {

TEST(Clock, NeverGoesBack) {
  std::int64_t before = now_ns();
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t now = now_ns();
    ASSERT_GE(now, before);
    before = now;
  }
}

TEST(Clock, WithoutOffsetsTimesStayAsTheyAre) {
  EXPECT_EQ(to_node0_ns({}, 123), 123);
}

TEST(Clock, OneOffsetIsAddedToAllTimes) {
  const std::vector<ClockOffset> offsets{{100, -30}};
  EXPECT_EQ(to_node0_ns(offsets, 50), 20);
  EXPECT_EQ(to_node0_ns(offsets, 100), 70);
  EXPECT_EQ(to_node0_ns(offsets, 5000), 4970);
}

TEST(Clock, OffsetsAreInterpolatedBetweenAndKeptBeyondTheirTimes) {
  const std::vector<ClockOffset> offsets{{100, 10}, {200, 30}, {300, 0}};
  EXPECT_EQ(to_node0_ns(offsets, 0), 10);
  EXPECT_EQ(to_node0_ns(offsets, 150), 170);
  EXPECT_EQ(to_node0_ns(offsets, 200), 230);
  EXPECT_EQ(to_node0_ns(offsets, 250), 265);
  EXPECT_EQ(to_node0_ns(offsets, 400), 400);
}

TEST(Clock, BoundsHoldTheOffsetAndComeAsCloseAsTheShortestMeeting) {
  std::mt19937_64 random(5);
  for (const std::int64_t offset :
       {std::int64_t{0}, std::int64_t{-7'000'000}, std::int64_t{1} << 50}) {
    ClockBounds bounds;
    std::int64_t now = 1'000'000;  // of node 0
    std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
    for (int meeting = 0; meeting < 20; ++meeting) {
      const auto wait = [&] { return static_cast<std::int64_t>(random() % 50'000); };
      const std::int64_t first_came = now + wait();
      const std::int64_t came = now + wait();
      const std::int64_t together = std::max(first_came, came);
      const std::int64_t first_left = together + wait();
      const std::int64_t left = together + wait();
      bounds.add(first_came, first_left, came - offset, left - offset);
      shortest = std::min(shortest, (first_left - came) + (left - first_came));
      now = std::max(first_left, left);
    }
    EXPECT_LE(std::abs(bounds.offset_ns() - offset), shortest / 2 + 1) << offset;
  }
}

}  // namespace
}  // namespace heddle::trace
