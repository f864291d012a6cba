#include "algorithms/reductions/sampled_checks.hpp"

#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <random>
#include <utility>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/io/distributed_read.hpp"
#include "algorithms/matrix/generators.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

/// Adds `error` to element (row, column) of `l`; returns what was there.
double plant(Matrix<double>& l, std::int64_t row, std::int64_t column, double error) {
  double before = 0;
  l.for_each_tile([&](TileRow i, TileColumn c, TileView tile) {
    const std::int64_t p = row - l.layout().row_begin(i);
    const std::int64_t q = column - l.layout().column_begin(c);
    if (p < 0 || p >= tile.rows || q < 0 || q >= tile.columns) return;
    before = tile(p, q);
    tile(p, q) += error;
  });
  return before;
}

class SampledCholesky : public testing::TestWithParam<std::int64_t> {
 protected:
  SampledCholesky()
      : node_(Config::from_text("runtime: {cpu_workers: 2, devices: {backend: none}}\n", "test")),
        source_(make_generator(spd())),
        l_(node_.matrix<double>(MatrixSpec(cut(), {}, Storage::lower))) {
    source_->prepare(wanted_of_symmetric(l_, *source_));
    read_symmetric(*source_, l_, Checked::yes, "the matrix");
    norm_ = static_cast<double>(symmetric_one_norm(l_));
    node_.submit(cholesky(l_)).wait();
  }
  [[nodiscard]] static GeneratorOptions spd() {
    GeneratorOptions options;
    options.n = GetParam();
    return options;
  }
  [[nodiscard]] static TileLayout cut() {
    TileLayout layout;
    layout.rows = layout.columns = GetParam();
    layout.tile = 32;
    layout.strip = 16;
    layout.small = 8;
    return layout;
  }

  Node node_;
  std::unique_ptr<MatrixSource> source_;
  Matrix<double> l_;
  double norm_ = 0;
};

TEST_P(SampledCholesky, LeavesRoundingOfAGoodFactor) {
  EXPECT_LT(sampled_cholesky_residual(l_, *source_), 1);
}

TEST_P(SampledCholesky, HasTheSameBitsEachTime) {
  const double first = sampled_cholesky_residual(l_, *source_);
  for (int k = 0; k < 5; ++k) EXPECT_EQ(sampled_cholesky_residual(l_, *source_), first);
}

TEST_P(SampledCholesky, FindsAnErrorInOneElement) {
  std::mt19937_64 random(45);
  for (int k = 0; k < 100; ++k) {
    auto row = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(GetParam()));
    auto column = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(GetParam()));
    if (row < column) std::swap(row, column);
    // Element (row, column) of L L^T changes by 1e-8 |A|, or twice that on the diagonal.
    const double diagonal = plant(l_, column, column, 0);
    const double before = plant(l_, row, column, 1e-8 * norm_ / diagonal);
    EXPECT_GT(sampled_cholesky_residual(l_, *source_), 10) << row << ", " << column;
    l_.for_each_tile([&](TileRow i, TileColumn c, TileView tile) {
      const std::int64_t p = row - l_.layout().row_begin(i);
      const std::int64_t q = column - l_.layout().column_begin(c);
      if (p >= 0 && p < tile.rows && q >= 0 && q < tile.columns) tile(p, q) = before;
    });
  }
  EXPECT_LT(sampled_cholesky_residual(l_, *source_), 1);
}

TEST_P(SampledCholesky, IsNoNumberIfTheFactorHasNone) {
  plant(l_, GetParam() - 1, 0, std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(sampled_cholesky_residual(l_, *source_)));
}

INSTANTIATE_TEST_SUITE_P(Sizes, SampledCholesky, testing::Values(1, 45, 300));

}  // namespace
}  // namespace heddle
