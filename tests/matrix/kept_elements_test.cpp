#include "algorithms/matrix/kept_elements.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "tests/matrix/files.hpp"

namespace heddle {

namespace {

using Stored = KeptElements::Stored;

TEST(KeptElements, keeps_each_wanted_element_in_a_place_of_its_own) {
  const TileLayout layout{.rows = 21, .columns = 13, .tile = 4};
  const Distribution distribution{.grid_rows = 2, .grid_columns = 2};
  std::size_t total = 0;
  for (std::int32_t node = 0; node < 4; ++node) {
    const auto wanted = wanted_by_node(layout, distribution, NodeId{node}, WantedPart::all_tiles);
    KeptElements kept(21, 13, Stored::all, wanted);
    std::set<std::size_t> places;
    for (std::int64_t j = 0; j < 13; ++j) {
      for (std::int64_t i = 0; i < 21; ++i) {
        const auto place = kept.find(GlobalRow{i}, GlobalColumn{j});
        const bool is_mine =
            distribution.node(TileRow{static_cast<std::int32_t>(i / 4)},
                              WideColumn{static_cast<std::int32_t>(j / 4)}) == NodeId{node};
        ASSERT_EQ(place.has_value(), is_mine);
        if (place) {
          ASSERT_TRUE(places.insert(*place).second);
        }
      }
    }
    EXPECT_EQ(places.size(), kept.values().size());
    total += kept.values().size();
  }
  EXPECT_EQ(total, 21U * 13U);
}

TEST(KeptElements, keeps_one_element_of_each_symmetric_pair) {
  const TileLayout layout{.rows = 19, .columns = 19, .tile = 4};
  const Distribution distribution{.grid_rows = 2, .grid_columns = 3};
  for (std::int32_t node = 0; node < 6; ++node) {
    const auto wanted = wanted_by_node(layout, distribution, NodeId{node}, WantedPart::all_tiles);
    KeptElements kept(19, 19, Stored::lower_triangle, wanted);
    std::set<std::size_t> places;
    const auto mine = [&](std::int64_t i, std::int64_t j) {
      return distribution.node(TileRow{static_cast<std::int32_t>(i / 4)},
                               WideColumn{static_cast<std::int32_t>(j / 4)}) == NodeId{node};
    };
    for (std::int64_t j = 0; j < 19; ++j) {
      for (std::int64_t i = j; i < 19; ++i) {
        const auto place = kept.find(GlobalRow{i}, GlobalColumn{j});
        ASSERT_EQ(place, kept.find(GlobalRow{j}, GlobalColumn{i}));
        ASSERT_EQ(place.has_value(), mine(i, j) || mine(j, i)) << i << " " << j;
        if (!place) continue;
        ASSERT_TRUE(places.insert(*place).second);
        kept.values()[*place] = static_cast<double>(100 * i + j);
      }
    }
    ASSERT_EQ(places.size(), kept.values().size());
    testing::Block block(4, 4);
    const std::int64_t row = std::int64_t{4} * (node / 3);
    const std::int64_t column = std::int64_t{4} * (node % 3);
    kept.read(GlobalRow{row}, GlobalColumn{column}, block.view());
    for (std::int64_t j = 0; j < 4; ++j) {
      for (std::int64_t i = 0; i < 4; ++i) {
        const std::int64_t low = std::min(row + i, column + j);
        const std::int64_t high = std::max(row + i, column + j);
        ASSERT_EQ(block(i, j), static_cast<double>(100 * high + low));
      }
    }
    EXPECT_TRUE(block.has_all_sentinels());
  }
}

TEST(KeptElements, needs_no_memory_where_nothing_is_wanted) {
  KeptElements kept(1000000, 3, Stored::all, [](GlobalColumn, std::vector<RowRange>&) {});
  EXPECT_TRUE(kept.values().empty());
  EXPECT_FALSE(kept.find(GlobalRow{5}, GlobalColumn{1}).has_value());
}

TEST(KeptElementsDeathTest, reading_what_was_not_announced_is_a_defect) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  KeptElements kept(4, 4, Stored::all, [](GlobalColumn, std::vector<RowRange>& ranges) {
    ranges.push_back({GlobalRow{0}, GlobalRow{2}});
  });
  testing::Block block(3, 1);
  EXPECT_DEATH(kept.read(GlobalRow{0}, GlobalColumn{0}, block.view()), "was not announced");
}

}  // namespace

}  // namespace heddle
