#include "node-runtime/transport/reductions.hpp"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace heddle {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST(Reductions, give_the_same_in_either_order_and_keep_what_is_not_a_number) {
  for (const double a : {-infinity, -1.5, -0.0, 0.0, 2.0, infinity}) {
    EXPECT_TRUE(std::isnan(larger_of(a, none)));
    EXPECT_TRUE(std::isnan(larger_of(none, a)));
    EXPECT_TRUE(std::isnan(smaller_of(a, none)));
    EXPECT_TRUE(std::isnan(smaller_of(none, a)));
    for (const double b : {-infinity, -1.5, -0.0, 0.0, 2.0, infinity}) {
      EXPECT_EQ(larger_of(a, b), a < b ? b : a);
      EXPECT_EQ(smaller_of(a, b), a < b ? a : b);
      EXPECT_EQ(std::signbit(larger_of(a, b)), std::signbit(larger_of(b, a))) << a << ' ' << b;
      EXPECT_EQ(std::signbit(smaller_of(a, b)), std::signbit(smaller_of(b, a))) << a << ' ' << b;
    }
  }
}

TEST(Reductions, give_all_that_is_not_a_number_the_same_bits) {
  std::array<double, 3> values{-none, 1.0, none};
  unify_nans(values);
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(std::signbit(values[0]), std::signbit(values[2]));
  EXPECT_EQ(values[1], 1.0);
}

}  // namespace heddle
