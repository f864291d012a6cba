#include "apps/tuning/wake.hpp"

#include <gtest/gtest.h>

namespace heddle::tuning {
namespace {

TEST(Wake, takes_some_time_and_less_than_a_tenth_of_a_second) {
  const double seconds = wake_seconds();
  EXPECT_GT(seconds, 0);
  EXPECT_LT(seconds, 0.1);
}

}  // namespace
}  // namespace heddle::tuning
