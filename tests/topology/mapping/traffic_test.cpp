#include "node-runtime/topology/mapping/traffic.hpp"

#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/topology/mapping/traffic_pattern.hpp"

namespace heddle::test {
namespace {

/// Bytes that each slot sends, row by row.
std::vector<std::vector<double>> matrix_of(const Traffic& traffic) {
  std::vector<std::vector<double>> rows;
  for (std::int32_t i = 0; i < traffic.slots(); ++i) {
    rows.emplace_back();
    for (std::int32_t j = 0; j < traffic.slots(); ++j) {
      rows.back().push_back(traffic.flow(SlotId{i}, SlotId{j}).bytes);
    }
  }
  return rows;
}

using Rows = std::vector<std::vector<double>>;

TEST(Traffic, adds_up_what_slots_send) {
  Traffic traffic(3);
  EXPECT_TRUE(traffic.is_valid());
  EXPECT_TRUE(traffic.is_empty());
  traffic.add(SlotId{0}, SlotId{2}, {100, 1});
  traffic.add(SlotId{0}, SlotId{2}, {20, 2});
  EXPECT_EQ(traffic.flow(SlotId{0}, SlotId{2}), (Flow{120, 3}));
  EXPECT_EQ(traffic.flow(SlotId{2}, SlotId{0}), Flow{});
  EXPECT_FALSE(traffic.is_empty());
  EXPECT_TRUE(traffic.has_counts());
  traffic.slot(SlotId{1}).to_network = {5, 0};
  EXPECT_FALSE(traffic.has_counts());
  EXPECT_TRUE(traffic.is_valid());
}

TEST(Traffic, refuses_what_no_traffic_is) {
  EXPECT_THROW(Traffic(0), Error);
  EXPECT_THROW(Traffic(std::vector<SlotTraffic>(2)), Error);  // device 0 of node 0 twice
  EXPECT_THROW(Traffic({SlotTraffic{0, 0, {-1, 0}, {}, {}, {}}}), Error);
  Traffic traffic(2);
  EXPECT_THROW(traffic.add(SlotId{0}, SlotId{0}, {1, 1}), Error);
  EXPECT_THROW(traffic.add(SlotId{0}, SlotId{2}, {1, 1}), Error);
  EXPECT_THROW(traffic.add(SlotId{0}, SlotId{1}, {-1, 1}), Error);
  EXPECT_THROW(traffic.add(SlotId{0}, SlotId{1}, {1, std::numeric_limits<double>::infinity()}),
               Error);
  traffic.slot(SlotId{0}).to_host.bytes = -1;
  EXPECT_FALSE(traffic.is_valid());
}

TEST(TrafficPattern, has_the_neighbours_of_a_2d_stencil) {
  EXPECT_EQ(matrix_of(traffic_of_pattern("2d 2x3 weight 3")), (Rows{{0, 1, 0, 3, 0, 0},
                                                                    {1, 0, 1, 0, 3, 0},
                                                                    {0, 1, 0, 0, 0, 3},
                                                                    {3, 0, 0, 0, 1, 0},
                                                                    {0, 3, 0, 1, 0, 1},
                                                                    {0, 0, 3, 0, 1, 0}}));
}

TEST(TrafficPattern, wraps_and_has_the_pair_of_a_dimension_of_two_twice) {
  EXPECT_EQ(matrix_of(traffic_of_pattern("2d 2x3 wrap")), (Rows{{0, 1, 1, 2, 0, 0},
                                                                {1, 0, 1, 0, 2, 0},
                                                                {1, 1, 0, 0, 0, 2},
                                                                {2, 0, 0, 0, 1, 1},
                                                                {0, 2, 0, 1, 0, 1},
                                                                {0, 0, 2, 1, 1, 0}}));
}

TEST(TrafficPattern, counts_the_last_dimension_first) {
  const Traffic traffic = traffic_of_pattern("3d 2x2x4 weight 3");
  EXPECT_EQ(traffic.name(), "3d 2x2x4 weight 3");
  ASSERT_EQ(traffic.slots(), 16);
  EXPECT_EQ(traffic.flow(SlotId{5}, SlotId{13}).bytes, 3);
  EXPECT_EQ(traffic.flow(SlotId{5}, SlotId{1}).bytes, 1);
  EXPECT_EQ(traffic.flow(SlotId{5}, SlotId{6}).bytes, 1);
  EXPECT_EQ(traffic.flow(SlotId{5}, SlotId{7}).bytes, 0);
  EXPECT_FALSE(traffic.has_counts());
}

TEST(TrafficPattern, rings_and_groups) {
  EXPECT_EQ(matrix_of(traffic_of_pattern("ring 4")),
            (Rows{{0, 1, 0, 1}, {1, 0, 1, 0}, {0, 1, 0, 1}, {1, 0, 1, 0}}));
  const Traffic groups = traffic_of_pattern("alltoall 4x2x2");
  for (std::int32_t i = 0; i < 16; ++i) {
    for (std::int32_t j = 0; j < 16; ++j) {
      EXPECT_EQ(groups.flow(SlotId{i}, SlotId{j}).bytes, i != j && i % 4 == j % 4 ? 1 : 0);
    }
  }
}

TEST(TrafficPattern, counts_messages_of_a_size) {
  const Traffic traffic = traffic_of_pattern(" 2d  2x2 weight 3 bytes 64KiB ");
  EXPECT_EQ(traffic.flow(SlotId{0}, SlotId{2}), (Flow{3 * 65536, 1}));
  EXPECT_EQ(traffic.flow(SlotId{0}, SlotId{1}), (Flow{65536, 1}));
  EXPECT_TRUE(traffic.has_counts());
  EXPECT_TRUE(traffic_of_pattern("ring 1").is_empty());
}

TEST(TrafficPattern, says_which_word_is_wrong) {
  struct Case {
    const char* pattern;
    const char* expected;
  };
  for (const Case& one : std::vector<Case>{
           {"", "expected 2d, 3d, ring or alltoall at its end"},
           {"4d 2x2x2x2", "expected 2d, 3d, ring or alltoall; found '4d'"},
           {"2d", "expected sizes such as 4x4 at its end"},
           {"2d 4", "expected sizes such as 4x4; found '4'"},
           {"2d 4x4x4", "found '4x4x4'"},
           {"2d 4x", "found '4x'"},
           {"2d 4*4", "found '4*4'"},
           {"2d 0x4", "found '0x4'"},
           {"2d -1x4", "found '-1x4'"},
           {"2d 99999999999x4", "found '99999999999x4'"},
           {"2d 1000x1000", "more than 1024 ranks"},
           {"ring", "expected a number of ranks such as 8 at its end"},
           {"ring 8 wrap", "expected 'bytes SIZE' or nothing; found 'wrap'"},
           {"2d 4x4 wrap heavy",
            "expected 'wrap', 'weight W', 'bytes SIZE' or nothing; found 'heavy'"},
           {"2d 4x4 weight", "expected a number, such as 3 at its end"},
           {"2d 4x4 weight 0", "'weight' must be a number, such as 3, and positive; found '0'"},
           {"2d 4x4 weight inf", "found 'inf'"},
           {"2d 4x4 bytes much", "'bytes' must be a size"}}) {
    try {
      static_cast<void>(traffic_of_pattern(one.pattern));
      ADD_FAILURE() << "taken: " << one.pattern;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      const std::string text = error.what();
      EXPECT_NE(text.find(one.expected), std::string::npos) << text;
      EXPECT_NE(text.find(one.pattern), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace heddle::test
