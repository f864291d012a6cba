#include "kernels/cpu/norms.hpp"

#include <cmath>
#include <cstddef>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

#include "tests/kernels/guarded_tile.hpp"

namespace heddle::test {
namespace {

TEST(Norms, AddAbsoluteColumnAndRowSums) {
  GuardedTile tile(2, 3);
  tile(0, 0) = 1;
  tile(1, 0) = -2;
  tile(0, 1) = -3;
  tile(1, 2) = 4;
  std::vector<double> columns{10, 10, 10};
  std::vector<double> rows{20, 20};

  host::add_column_sums(tile.view(), columns);
  host::add_row_sums(tile.view(), rows);

  EXPECT_EQ(columns, (std::vector<double>{13, 13, 14}));
  EXPECT_EQ(rows, (std::vector<double>{24, 26}));
}

TEST(Norms, SumPiecesOfADiagonalTileAsTheSymmetricMatrixTheyStore) {
  std::mt19937_64 random(4);
  constexpr std::int64_t rows = 9;
  std::vector<double> sums(rows, 0.0);
  std::vector<double> expected(rows, 0.0);
  std::int64_t offset = 0;
  for (const std::int64_t w : {2, 3, 4}) {
    GuardedTile piece(rows, w);
    piece.fill_random(random);
    for (std::int64_t j = 0; j < w; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) {
        if (i < offset + j) piece(i, j) = std::numeric_limits<double>::quiet_NaN();
        if (i < offset + j) continue;
        expected[static_cast<std::size_t>(i)] += std::abs(piece(i, j));
        if (i > offset + j) expected[static_cast<std::size_t>(offset + j)] += std::abs(piece(i, j));
      }
    }
    host::add_symmetric_sums(piece.view(), offset, sums);
    offset += w;
  }
  for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(sums[i], expected[i], 1e-14);
}

TEST(Norms, FindTheLargestMagnitudeAndWhatIsNotANumber) {
  GuardedTile tile(3, 2);
  tile(2, 1) = -8;
  tile(0, 0) = 7;
  EXPECT_EQ(host::max_abs(tile.view()), 8);
  tile(1, 0) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(host::max_abs(tile.view())));
}

TEST(Norms, TakeEmptyTiles) {
  GuardedTile no_rows(0, 3);
  GuardedTile no_columns(4, 0);
  std::vector<double> sums(4, 1.0);
  host::add_column_sums(no_rows.view(), sums);
  host::add_row_sums(no_columns.view(), sums);
  host::add_symmetric_sums(no_columns.view(), 4, sums);
  EXPECT_EQ(sums, std::vector<double>(4, 1.0));
  EXPECT_EQ(host::max_abs(no_rows.view()), 0);
}

}  // namespace
}  // namespace heddle::test
