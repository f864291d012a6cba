#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <mutex>
#include <vector>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/cholesky/inverses.hpp"
#include "algorithms/reductions/measures.hpp"
#include "algorithms/reductions/verification.hpp"
#include "algorithms/solve/solve.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

struct Results {
  std::vector<double> factor;  ///< lower triangle, by columns; zero above
  std::vector<double> solution;
  double log_determinant = 0;
  double norm = 0;
  bool is_untouched = true;  ///< what stood above the diagonal
};

bool has_bits_of(double a, double b) {
  return std::isnan(b) ? std::isnan(a) : a == b;
}

/// Factorizes and solves with `above` in the part of diagonal tiles that is above the diagonal.
Results run(const TileLayout& cut, double above) {
  Node node(
      Config::from_text("runtime: {cpu_workers: 2, devices: {backend: none}}\n", "storage test"));
  const std::int64_t n = 45;
  MatrixSpec spec(cut, {}, Storage::lower);
  spec.layout.rows = spec.layout.columns = n;
  Matrix<double> a = node.matrix<double>(spec);
  a.fill([&](GlobalRow row, GlobalColumn column, TileView block) {
    for (std::int64_t j = 0; j < block.columns; ++j) {
      for (std::int64_t i = 0; i < block.rows; ++i) {
        const std::int64_t below = row.value() + i - column.value() - j;
        const double value = below == 0 ? 2.0 : 1.0 / static_cast<double>(3 + below * below);
        block(i, j) = below < 0 ? above : value;
      }
    }
  });
  Results results;
  results.norm = static_cast<double>(symmetric_one_norm(a));
  Matrix<double> x = right_hand_sides(a, 2);
  x.fill([](std::int64_t i, std::int64_t j) { return static_cast<double>(1 + i * (j + 1)); });
  node.submit(cholesky(a));
  node.submit(solve_cholesky(a, x)).wait();
  results.log_determinant = log_determinant_of_factor(a);
  results.factor.assign(static_cast<std::size_t>(n * n), 0.0);
  results.solution.assign(static_cast<std::size_t>(n * 2), 0.0);
  std::mutex mutex;
  a.for_each_tile([&](TileRow i, TileColumn c, TileView tile) {
    const std::lock_guard lock(mutex);
    for (std::int64_t q = 0; q < tile.columns; ++q) {
      for (std::int64_t p = 0; p < tile.rows; ++p) {
        const std::int64_t row = a.layout().row_begin(i) + p;
        const std::int64_t column = a.layout().column_begin(c) + q;
        if (row >= column) {
          results.factor[static_cast<std::size_t>(row + column * n)] = tile(p, q);
        } else if (!has_bits_of(tile(p, q), above)) {
          results.is_untouched = false;
        }
      }
    }
  });
  x.for_each_tile([&](TileRow i, TileColumn c, TileView tile) {
    const std::lock_guard lock(mutex);
    for (std::int64_t q = 0; q < tile.columns; ++q) {
      for (std::int64_t p = 0; p < tile.rows; ++p) {
        const std::int64_t row = x.layout().row_begin(i) + p;
        results.solution[static_cast<std::size_t>(row + (x.layout().column_begin(c) + q) * n)] =
            tile(p, q);
      }
    }
  });
  return results;
}

}  // namespace

TEST(LowerStorage, above_the_diagonal_is_neither_read_nor_written) {
  for (const TileLayout& cut :
       {TileLayout{.tile = 10}, TileLayout{.tile = 12, .strip = 6, .small = 3},
        TileLayout{.tile = 45}, TileLayout{.tile = 16, .fine = 4}}) {
    SCOPED_TRACE(testing::Message() << "tile " << cut.tile << ", strip " << cut.strip);
    const Results zero = run(cut, 0);
    const Results nan = run(cut, std::numeric_limits<double>::quiet_NaN());
    EXPECT_TRUE(zero.is_untouched);
    EXPECT_TRUE(nan.is_untouched);
    EXPECT_EQ(nan.factor, zero.factor);
    EXPECT_EQ(nan.solution, zero.solution);
    EXPECT_EQ(nan.log_determinant, zero.log_determinant);
    EXPECT_EQ(nan.norm, zero.norm);
    EXPECT_TRUE(std::isfinite(zero.log_determinant));
  }
}

// Tiles' sums meet in the order of the tiles, not in the order in which workers came to them.
TEST(Norms, have_the_same_bits_each_time) {
  Node node(
      Config::from_text("runtime: {cpu_workers: 3, devices: {backend: none}}\n", "norms test"));
  Matrix<double> a = node.matrix<double>(MatrixSpec(200, 200, Storage::lower));
  a.fill([](std::int64_t i, std::int64_t j) {
    return 1.0 / static_cast<double>(1 + (i * 7919 + j * 104729) % 1009);
  });
  const std::vector<Norm> weights(200, 1.0L / 3);
  const Norm symmetric = symmetric_one_norm(a);
  const std::vector<Norm> one = column_norms(a);
  const std::vector<Norm> two = column_two_norms(a, GlobalRow{3});
  const std::vector<Norm> weighted = weighted_norms(a, weights);
  for (int k = 0; k < 50; ++k) {
    ASSERT_EQ(symmetric_one_norm(a), symmetric) << k;
    ASSERT_EQ(column_norms(a), one) << k;
    ASSERT_EQ(column_two_norms(a, GlobalRow{3}), two) << k;
    ASSERT_EQ(weighted_norms(a, weights), weighted) << k;
  }
}

}  // namespace heddle
