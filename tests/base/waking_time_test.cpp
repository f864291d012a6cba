#include "base/waking_time.hpp"

#include <gtest/gtest.h>

namespace heddle {

TEST(WakingTime, counts_what_passes_between_looks) {
  WakingTime awake(5);
  EXPECT_EQ(awake.at(5), 0);
  EXPECT_EQ(awake.at(7), 2);
  EXPECT_EQ(awake.at(WakingTime::gap_ns_max), WakingTime::gap_ns_max - 5);
}

TEST(WakingTime, counts_a_gap_in_which_the_process_was_stopped_as_a_short_one) {
  WakingTime awake(0);
  EXPECT_EQ(awake.at(100 * WakingTime::gap_ns_max), WakingTime::gap_ns_max);
  EXPECT_EQ(awake.at(100 * WakingTime::gap_ns_max + 3), WakingTime::gap_ns_max + 3);
}

}  // namespace heddle
