#include "node-runtime/scheduling/placement_policy.hpp"

#include <gtest/gtest.h>
#include <limits>

namespace heddle {

TEST(StaticPlacement, lends_nothing_whatever_it_costs) {
  const StaticPlacement policy;
  EXPECT_FALSE(policy.may_lend(1000, 1));
  EXPECT_FALSE(policy.lends(1000, 1));
  EXPECT_FALSE(policy.lends(std::numeric_limits<double>::infinity(), 1));
}

TEST(DynamicPlacement, lends_what_the_host_would_finish_first) {
  const DynamicPlacement policy;
  EXPECT_TRUE(policy.lends(2, 1));
  EXPECT_FALSE(policy.lends(1, 2));
  EXPECT_FALSE(policy.lends(1, 1)) << "the device has the tiles";
  EXPECT_TRUE(policy.lends(std::numeric_limits<double>::infinity(), 1e9));
}

TEST(DynamicPlacement, may_lend_where_workers_are_worth_a_16th_of_the_devices) {
  const DynamicPlacement policy;
  EXPECT_TRUE(policy.may_lend(1, 0.5));
  EXPECT_TRUE(policy.may_lend(1, 16));
  EXPECT_FALSE(policy.may_lend(1, 16.1));
}

}  // namespace heddle
