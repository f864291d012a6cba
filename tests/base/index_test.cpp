#include "base/index.hpp"

#include <gtest/gtest.h>
#include <type_traits>

#include "base/error.hpp"

namespace heddle {

static_assert(!std::is_convertible_v<NodeId, PlaceId>);
static_assert(!std::is_convertible_v<int, NodeId>);
static_assert(!std::is_constructible_v<TileRow, TileColumn>);

TEST(Index, steps_and_measures_distance) {
  TileRow row{3};
  ++row;
  EXPECT_EQ(row, TileRow{4});
  EXPECT_EQ(row - TileRow{1}, 3);
  EXPECT_EQ((row + 2).value(), 6);
  EXPECT_LT(row, TileRow{5});
}

TEST(Index, locations_order_by_node_then_place) {
  EXPECT_LT((Location{NodeId{0}, PlaceId{3}}), (Location{NodeId{1}, PlaceId{0}}));
  EXPECT_LT((Location{NodeId{1}, PlaceId{0}}), (Location{NodeId{1}, PlaceId{1}}));
}

TEST(Error, codes_have_the_documented_exit_statuses) {
  EXPECT_EQ(exit_status(ErrorCode::internal), 1);
  EXPECT_EQ(exit_status(ErrorCode::usage), 2);
  EXPECT_EQ(exit_status(ErrorCode::numerical), 3);
  EXPECT_EQ(exit_status(ErrorCode::communication), 4);
  EXPECT_EQ(exit_status(ErrorCode::interrupted), 130);
}

}  // namespace heddle
