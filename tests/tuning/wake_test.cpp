#include "apps/tuning/wake.hpp"

#include <gtest/gtest.h>

namespace heddle::tuning {
namespace {

TEST(Waking, takes_some_time_and_less_than_a_tenth_of_a_second) {
  const Waking waking = measure_waking();
  for (const double seconds : {waking.ring_s, waking.wake_s}) {
    EXPECT_GT(seconds, 0);
    EXPECT_LT(seconds, 0.1);
  }
}

}  // namespace
}  // namespace heddle::tuning
