#include "node-runtime/threads/tile_part.hpp"

#include <gtest/gtest.h>

namespace heddle {
namespace {

using Shape = TilePart::Shape;

/// The definition, element by element; `part` has a number of rows.
bool contains(const TilePart& part, std::int64_t i, std::int64_t j) {
  const std::int64_t row = i - part.first_row;
  if (row < 0 || row >= part.row_count) return false;
  return part.shape == Shape::full || (part.shape == Shape::upper ? row <= j : row > j);
}

}  // namespace

TEST(TileParts, are_the_whole_tile_by_default) {
  const TilePart part = TilePart{}.of_tile(7);
  EXPECT_EQ(part, (TilePart{Shape::full, 0, 7}));
  EXPECT_EQ(part.element_count(5), 35);
}

TEST(TileParts, have_the_rows_that_their_shape_says_in_each_column) {
  constexpr std::int64_t rows = 9;
  for (const Shape shape : {Shape::full, Shape::upper, Shape::lower}) {
    for (std::int64_t first = 0; first <= rows; ++first) {
      for (std::int64_t count = 0; first + count <= rows; ++count) {
        const TilePart part = TilePart{shape, first, count}.of_tile(rows);
        for (const std::int64_t columns : {0, 1, 2, 5, 9, 13}) {
          std::int64_t elements = 0;
          for (std::int64_t j = 0; j < columns; ++j) {
            for (std::int64_t i = 0; i < rows; ++i) {
              const std::int64_t row = i - first - part.begin_of(j);
              ASSERT_EQ(row >= 0 && row < part.count_of(j), contains(part, i, j)) << i << ", " << j;
              elements += contains(part, i, j) ? 1 : 0;
            }
          }
          ASSERT_EQ(part.element_count(columns), elements) << first << " " << count;
        }
      }
    }
  }
}

TEST(TilePartsDeathTest, must_lie_in_their_tile) {
  EXPECT_DEATH(static_cast<void>(TilePart{Shape::full, 3, 5}.of_tile(7)), "first row 3, 5 rows");
  EXPECT_DEATH(static_cast<void>(TilePart{Shape::upper, 8}.of_tile(7)), "first row 8");
  EXPECT_DEATH(static_cast<void>(TilePart{Shape::lower, -1, 2}.of_tile(7)), "first row -1");
}

}  // namespace heddle
