#include "node-runtime/placement/placement_policy.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace heddle {
namespace {

constexpr PlaceId gpu{1};

struct Seconds {
  double load = 0;
  double transfer = 0;
  double kernel = 0;
};

/// What a device, the task's home, and the host need for it.
std::vector<PlaceOffer> offers(const Seconds& home, const Seconds& host) {
  return {{gpu, home.load, home.transfer, home.kernel},
          {host_place, host.load, host.transfer, host.kernel}};
}

}  // namespace

TEST(PlaceOffer, ends_when_the_place_and_the_tiles_are_ready_and_the_kernel_has_run) {
  EXPECT_DOUBLE_EQ((PlaceOffer{gpu, 0, 0, 3}.end_seconds()), 3);
  EXPECT_DOUBLE_EQ((PlaceOffer{gpu, 5, 0, 3}.end_seconds()), 8);
  EXPECT_DOUBLE_EQ((PlaceOffer{gpu, 0, 2, 3}.end_seconds()), 5);
}

TEST(PlaceOffer, has_tiles_come_while_the_place_is_at_other_tasks) {
  EXPECT_DOUBLE_EQ((PlaceOffer{gpu, 5, 2, 3}.end_seconds()), 8);
  EXPECT_DOUBLE_EQ((PlaceOffer{gpu, 5, 7, 3}.end_seconds()), 10);
}

TEST(StaticPlacement, takes_the_home_whatever_it_needs) {
  const StaticPlacement policy;
  EXPECT_EQ(policy.name(), "static");
  EXPECT_FALSE(policy.moves_tasks());
  EXPECT_EQ(policy.choose(offers({.kernel = 1}, {.kernel = 2})), 0U);
  EXPECT_EQ(policy.choose(offers({.load = 1e6, .kernel = 1}, {})), 0U);
}

TEST(DynamicPlacement, takes_the_place_that_ends_first) {
  const DynamicPlacement policy;
  EXPECT_EQ(policy.name(), "dynamic");
  EXPECT_TRUE(policy.moves_tasks());
  EXPECT_EQ(policy.choose(offers({.kernel = 1}, {.kernel = 2})), 0U);
  EXPECT_EQ(policy.choose(offers({.kernel = 2}, {.kernel = 1})), 1U);
}

TEST(DynamicPlacement, takes_any_of_several_places) {
  const DynamicPlacement policy;
  std::vector<PlaceOffer> several(4);
  for (PlaceOffer& offer : several) offer.kernel_seconds = 5;
  several[2].kernel_seconds = 4;
  EXPECT_EQ(policy.choose(several), 2U);
  EXPECT_EQ(policy.choose(std::vector<PlaceOffer>(1)), 0U);
}

TEST(DynamicPlacement, stays_at_home_where_another_place_is_no_better) {
  const DynamicPlacement policy;
  const Seconds same{.load = 2, .transfer = 1, .kernel = 3};
  EXPECT_EQ(policy.choose(offers(same, same)), 0U);
  EXPECT_EQ(policy.choose(offers({}, {})), 0U);
}

TEST(DynamicPlacement, leaves_a_place_that_has_much_to_do) {
  const DynamicPlacement policy;
  const Seconds host{.kernel = 10};
  EXPECT_EQ(policy.choose(offers({.load = 8, .kernel = 1}, host)), 0U);
  EXPECT_EQ(policy.choose(offers({.load = 10, .kernel = 1}, host)), 1U);
}

TEST(DynamicPlacement, counts_transfers_as_far_as_the_load_does_not_hide_them) {
  const DynamicPlacement policy;
  const Seconds home{.load = 6, .kernel = 1};
  EXPECT_EQ(policy.choose(offers(home, {.transfer = 4, .kernel = 2})), 1U);
  EXPECT_EQ(policy.choose(offers(home, {.transfer = 5, .kernel = 2})), 0U);
  const Seconds hidden{.load = 4, .transfer = 4, .kernel = 2};
  EXPECT_EQ(policy.choose(offers(home, hidden)), 1U);
}

TEST(DynamicPlacement, takes_no_place_of_a_kind_that_is_worth_little) {
  const DynamicPlacement policy;
  for (const double times : {15.0, 17.0}) {
    std::vector<PlaceOffer> all = offers({.load = 100, .kernel = 1}, {.kernel = 2});
    all[0].kind_seconds = 0.25;
    all[1].kind_seconds = 0.25 * times;
    EXPECT_EQ(policy.choose(all), times < 16 ? 1U : 0U);
  }
}

}  // namespace heddle
