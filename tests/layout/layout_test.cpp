#include "layout/layout.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <vector>

#include "tests/support/files.hpp"

namespace heddle {

namespace {

TileLayout random_layout(std::mt19937& random) {
  const auto up_to = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random);
  };
  TileLayout layout;
  layout.rows = up_to(40);
  layout.columns = up_to(40);
  layout.small = 1 + up_to(5);
  layout.tile = 1 + up_to(15);
  layout.strip = layout.small * up_to(layout.tile / layout.small);
  return layout;
}

}  // namespace

TEST(TileLayout, covers_every_element_with_exactly_one_tile) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const TileLayout layout = random_layout(random);
    ASSERT_TRUE(layout.is_valid());
    std::vector<int> covered(static_cast<std::size_t>(layout.rows * layout.columns));
    for (std::int32_t i = 0; i < layout.tile_rows(); ++i) {
      for (std::int32_t c = 0; c < layout.tile_columns(); ++c) {
        const std::int64_t row = layout.row_begin(TileRow{i});
        const std::int64_t column = layout.column_begin(TileColumn{c});
        const std::int64_t row_count = layout.row_count(TileRow{i});
        const std::int64_t column_count = layout.column_count(TileColumn{c});
        ASSERT_GT(row_count, 0);
        ASSERT_GT(column_count, 0);
        ASSERT_LE(row + row_count, layout.rows);
        ASSERT_LE(column + column_count, layout.columns);
        for (std::int64_t y = column; y < column + column_count; ++y) {
          for (std::int64_t x = row; x < row + row_count; ++x) {
            ++covered[static_cast<std::size_t>(x + y * layout.rows)];
          }
        }
      }
    }
    for (const int count : covered) ASSERT_EQ(count, 1);
  }
}

TEST(TileLayout, wide_columns_hold_their_pieces_in_order) {
  for (unsigned seed = 500; seed < 1000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const TileLayout layout = random_layout(random);
    std::int32_t c = 0;
    for (WideColumn wide{0}; wide < layout.end_wide(); ++wide) {
      ASSERT_EQ(layout.wide_begin(wide), TileColumn{c});
      std::int64_t offset = 0;
      for (; c < layout.wide_begin(wide + 1).value(); ++c) {
        ASSERT_EQ(layout.wide_of(TileColumn{c}), wide);
        ASSERT_EQ(layout.offset_in_wide(TileColumn{c}), offset);
        ASSERT_EQ(layout.column_begin(TileColumn{c}), wide.value() * layout.tile + offset);
        ASSERT_EQ(layout.is_remainder(TileColumn{c}), offset >= layout.strip);
        offset += layout.column_count(TileColumn{c});
      }
      ASSERT_EQ(offset, std::min(layout.tile, layout.columns - wide.value() * layout.tile));
    }
    ASSERT_EQ(layout.wide_begin(layout.end_wide()), layout.end_column());
  }
}

TEST(TileLayout, cuts_the_strip_into_small_pieces_and_leaves_the_remainder) {
  const TileLayout layout{.rows = 10, .columns = 23, .tile = 10, .strip = 4, .small = 2};
  EXPECT_EQ(layout.pieces_per_wide(), 3);
  EXPECT_EQ(layout.wide_columns(), 3);
  // The last wide column has 3 columns: one full piece of the strip and half a piece.
  EXPECT_EQ(layout.tile_columns(), 8);
  EXPECT_FALSE(layout.is_remainder(TileColumn{1}));
  EXPECT_TRUE(layout.is_remainder(TileColumn{2}));
  EXPECT_EQ(layout.column_count(TileColumn{2}), 6);
  EXPECT_EQ(layout.column_begin(TileColumn{7}), 22);
  EXPECT_EQ(layout.column_count(TileColumn{7}), 1);
}

TEST(TileLayout, without_strip_has_square_tiles_that_are_all_remainders) {
  const TileLayout layout{.rows = 7, .columns = 7, .tile = 4};
  EXPECT_EQ(layout.tile_rows(), 2);
  EXPECT_EQ(layout.tile_columns(), 2);
  EXPECT_TRUE(layout.is_remainder(TileColumn{0}));
  EXPECT_EQ(layout.row_count(TileRow{1}), 3);
  EXPECT_EQ(layout.column_count(TileColumn{1}), 3);
}

TEST(TileLayout, a_strip_as_wide_as_the_tile_leaves_no_remainder) {
  const TileLayout layout{.rows = 8, .columns = 8, .tile = 4, .strip = 4, .small = 2};
  EXPECT_EQ(layout.tile_columns(), 4);
  for (std::int32_t c = 0; c < 4; ++c) EXPECT_FALSE(layout.is_remainder(TileColumn{c}));
}

TEST(TileLayout, of_an_empty_matrix_has_no_tiles) {
  const TileLayout layout{.rows = 0, .columns = 0, .tile = 4, .strip = 2, .small = 2};
  EXPECT_EQ(layout.tile_rows(), 0);
  EXPECT_EQ(layout.tile_columns(), 0);
}

TEST(TileLayout, with_more_tiles_than_can_be_numbered_is_refused_with_the_key) {
  const TileLayout largest{.rows = 46'340, .columns = 46'340, .tile = 1};
  check_tile_count(largest);
  for (const std::int64_t rows : {46'342, 1'000'000'000}) {
    const TileLayout more{.rows = rows, .columns = rows, .tile = 1};
    testing::expect_error(ErrorCode::usage,
                          {fmt::format("{} tiles", rows * rows), "2147483647", "layout.tile"},
                          [&] { check_tile_count(more); });
  }
}

TEST(TileLayout, knows_impossible_cuts) {
  EXPECT_FALSE((TileLayout{.rows = 8, .columns = 8, .tile = 0}.is_valid()));
  EXPECT_FALSE((TileLayout{.rows = 8, .columns = 8, .tile = 4, .strip = 3, .small = 2}.is_valid()));
  EXPECT_FALSE((TileLayout{.rows = 8, .columns = 8, .tile = 4, .strip = 6, .small = 2}.is_valid()));
  EXPECT_FALSE((TileLayout{.rows = 8, .columns = 8, .tile = 4, .strip = 2, .small = 0}.is_valid()));
  EXPECT_FALSE((TileLayout{.rows = -1, .columns = 8, .tile = 4}.is_valid()));
}

// The example of 001 figure 4: 6 x 6 square tiles on a grid of 2 x 2 nodes with 3 GPUs each.
TEST(Distribution, gives_each_node_the_tiles_of_the_papers_figure) {
  const TileLayout layout{.rows = 60, .columns = 60, .tile = 10, .strip = 4, .small = 2};
  const Distribution distribution{.grid_rows = 2, .grid_columns = 2, .devices = 3};
  std::map<NodeId, int> square_tiles;
  for (TileRow i{0}; i < layout.end_row(); ++i) {
    for (WideColumn wide{0}; wide < layout.end_wide(); ++wide) {
      ++square_tiles[distribution.node(i, wide)];
      EXPECT_EQ(distribution.node(i, wide), NodeId{i.value() % 2 * 2 + wide.value() % 2});
      // A node's columns 0, 1, 2 go to its GPUs 1, 2, 3; the strips of each stay on the host.
      const TileColumn strip = layout.wide_begin(wide);
      const TileColumn remainder = strip + 2;
      ASSERT_TRUE(layout.is_remainder(remainder));
      EXPECT_EQ(distribution.home(layout, i, strip).place, host_place);
      EXPECT_EQ(distribution.home(layout, i, strip + 1).place, host_place);
      EXPECT_EQ(distribution.home(layout, i, remainder).place, PlaceId{1 + wide.value() / 2});
      EXPECT_EQ(distribution.home(layout, i, remainder).node, distribution.node(i, wide));
    }
  }
  EXPECT_EQ(square_tiles.size(), 4U);
  for (const auto& [node, count] : square_tiles) EXPECT_EQ(count, 9) << node.value();
}

TEST(Distribution, without_devices_keeps_all_on_the_hosts) {
  const TileLayout layout{.rows = 60, .columns = 60, .tile = 10, .strip = 4, .small = 2};
  const Distribution distribution{.grid_rows = 3, .grid_columns = 2};
  EXPECT_EQ(distribution.node_count(), 6);
  for (std::int32_t c = 0; c < layout.tile_columns(); ++c) {
    EXPECT_EQ(distribution.home(layout, TileRow{4}, TileColumn{c}).place, host_place);
  }
}

}  // namespace heddle
