#include "node-runtime/protocol/block_pool.hpp"

#include <array>
#include <gtest/gtest.h>

#include "node-runtime/protocol/records.hpp"

namespace heddle::protocol {
namespace {

using Use = BlockRequest::Use;

/// Items 0 to 3 of a job, in program order, and a pool of four blocks of which one is the minimum.
class BlockPoolTest : public testing::Test {
 protected:
  BlockPoolTest() {
    for (std::size_t i = 0; i < items_.size(); ++i) items_[i].order = i;
  }

  /// Requests a block for an item while item `oldest` is the oldest one.
  bool request(BlockRequest& request, std::size_t item, std::uint64_t oldest) {
    request.first_user = &items_[item];
    request.user_order = item;
    const bool has_one = pool_.request(request, oldest);
    EXPECT_TRUE(pool_.is_valid());
    return has_one;
  }
  void give_back(BlockRequest& holder) {
    pool_.give_back(holder);
    EXPECT_TRUE(pool_.is_valid());
  }

  std::array<Task, 4> items_;
  BlockPool pool_{host_place, {.id = 7, .capacity = 4, .minimum = 1}};
  Scratch output_;
  Replica copy_;
  std::array<RemoteVersion, 4> arrivals_;
};

}  // namespace

TEST_F(BlockPoolTest, keeps_the_minimum_for_the_oldest_item) {
  EXPECT_TRUE(request(arrivals_[1], 1, 0));
  EXPECT_TRUE(request(arrivals_[2], 2, 0));
  EXPECT_TRUE(request(arrivals_[3], 3, 0));
  EXPECT_EQ(pool_.extra(), 3);
  EXPECT_FALSE(request(copy_, 3, 0));
  EXPECT_TRUE(request(arrivals_[0], 0, 0));
  EXPECT_EQ(pool_.free(), 0);
  EXPECT_EQ(pool_.extra(), 3);
  for (RemoteVersion& arrival : arrivals_) give_back(arrival);
  EXPECT_EQ(pool_.grant_next(0), &copy_);
  give_back(copy_);
  EXPECT_EQ(pool_.free(), 4);
  EXPECT_EQ(pool_.extra(), 0);
}

TEST_F(BlockPoolTest, grants_the_soonest_use_first_and_program_order_within_one) {
  BlockPool pool{host_place, {.id = 7, .capacity = 1, .minimum = 1}};
  const auto ask = [&](BlockRequest& request, std::size_t item) {
    request.first_user = &items_[item];
    request.user_order = item;
    return pool.request(request, 9);
  };
  ASSERT_TRUE(ask(arrivals_[0], 0));
  EXPECT_FALSE(ask(arrivals_[3], 3));
  EXPECT_FALSE(ask(arrivals_[1], 1));
  EXPECT_FALSE(ask(copy_, 3));
  EXPECT_FALSE(ask(output_, 3));
  EXPECT_EQ(pool.waiting(Use::grant), 2U);
  EXPECT_FALSE(pool.prioritize(arrivals_[3], 9));
  EXPECT_EQ(pool.waiting(Use::grant), 1U);
  EXPECT_EQ(pool.waiting(Use::fetch), 1U);
  EXPECT_TRUE(pool.has_early());
  BlockRequest* holder = &arrivals_[0];
  for (BlockRequest* const next :
       {static_cast<BlockRequest*>(&output_), static_cast<BlockRequest*>(&arrivals_[3]),
        static_cast<BlockRequest*>(&copy_), static_cast<BlockRequest*>(&arrivals_[1])}) {
    EXPECT_EQ(pool.grant_next(9), nullptr);
    pool.give_back(*holder);
    holder = pool.grant_next(9);
    EXPECT_EQ(holder, next);
    EXPECT_TRUE(pool.is_valid());
  }
  EXPECT_EQ(pool.waiting(), 0U);
  EXPECT_FALSE(pool.has_early());
}

TEST_F(BlockPoolTest, leaves_a_share_of_the_extra_blocks_to_each_sooner_use_of_the_job) {
  BlockPool pool{host_place, {.id = 7, .capacity = 8, .minimum = 0}};
  const auto ask = [&](BlockRequest& request) {
    request.first_user = &items_[1];
    request.user_order = 1;
    return pool.request(request, 0);
  };
  ASSERT_TRUE(ask(output_));  // uses `write` and
  ASSERT_TRUE(ask(copy_));    // `copy` have a quarter of 8 each
  EXPECT_TRUE(ask(arrivals_[0]));
  EXPECT_TRUE(ask(arrivals_[1]));
  EXPECT_FALSE(ask(arrivals_[2]));
  EXPECT_EQ(pool.extra(), 4);
  pool.no_longer_extra(copy_);
  EXPECT_EQ(pool.grant_next(0), &arrivals_[2]);
  EXPECT_TRUE(pool.is_valid());
}

}  // namespace heddle::protocol
