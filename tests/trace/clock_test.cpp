#include "node-runtime/trace/clock.hpp"

#include <gtest/gtest.h>
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

}  // namespace
}  // namespace heddle::trace
