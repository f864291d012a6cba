#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

#include "kernels/kernels.hpp"
#include "tests/kernels/cuda_qr_fixture.hpp"
#include "tests/kernels/panel_shapes.hpp"

namespace heddle::test {
namespace {

using kernel::PanelParameters;

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// One CTA, and shapes in which every loop has an end that is not a multiple of anything.
const std::vector<PanelShape> small_shapes{
    {1, 1, 1, 1, 0, 0},       {8, 8, 8, 8, 0, 0},       {9, 9, 3, 4, 2, 1},
    {16, 16, 16, 5, 0, 0},    {17, 17, 2, 17, 1, 1},    {32, 32, 8, 32, 0, 0},
    {33, 33, 7, 33, 5, 0},    {64, 33, 20, 33, 7, 9},   {96, 96, 12, 96, 0, 0},
    {200, 96, 64, 32, 0, 0},  {300, 1, 5, 1, 1, 0},     {150, 47, 10, 1, 0, 3},
    {400, 70, 33, 64, 11, 2}, {513, 65, 40, 65, 3, 2},  {480, 31, 9, 100, 0, 0},
    {511, 130, 5, 130, 1, 0}, {260, 257, 6, 257, 3, 1}, {300, 200, 10, 140, 0, 5}};

/// Many CTAs, each layout of panels, and the recursion past 128 columns.
const std::vector<PanelShape> large_shapes{
    {513, 32, 10, 32, 0, 0},    {1000, 130, 31, 48, 24, 0},     {1025, 17, 5, 17, 0, 2},
    {512, 512, 100, 256, 0, 0}, {3000, 512, 257, 512, 100, 64}, {5000, 300, 128, 128, 8, 0},
    {4097, 100, 30, 7, 1, 1},   {2048, 400, 64, 384, 0, 0},     {40000, 40, 17, 40, 3, 0},
    {70001, 35, 8, 32, 0, 1},   {140000, 20, 3, 20, 0, 0}};

double tolerance(const PanelShape& s) {
  return 100 * epsilon * static_cast<double>(s.rows + s.w + 8);
}

/// The GPU's tile is the host's within `within` times the host's largest element or 1: also where
/// neither may have written.
void expect_agreement(const TwinTile& tile, double within, const char* what) {
  const std::vector<double> all = tile.download();
  double largest = 1;
  for (std::int64_t j = 0; j < tile.columns(); ++j) {
    for (std::int64_t i = 0; i < tile.rows(); ++i) {
      largest = std::max(largest, std::abs(tile(i, j)));
    }
  }
  const auto at = [&](std::int64_t i, std::int64_t j) { return all[tile.place(i, j)]; };
  for (std::int64_t j = 0; j < tile.columns(); ++j) {
    for (std::int64_t i = 0; i < tile.rows(); ++i) {
      if (std::isnan(tile(i, j)) && std::isnan(at(i, j))) continue;
      ASSERT_NEAR(at(i, j), tile(i, j), within * largest) << what << " (" << i << ", " << j << ")";
    }
  }
}

/// max |a - b| over equal shapes.
double distance(const TwinTile& a, const TwinTile& b) {
  double result = 0;
  for (std::int64_t j = 0; j < a.columns(); ++j) {
    for (std::int64_t i = 0; i < a.rows(); ++i) {
      const double d = std::abs(a(i, j) - b(i, j));
      if (!(d <= result)) result = d;
    }
  }
  return result;
}

/// A matrix of three independent columns and their multiples, with rounding-like noise or without.
void fill_nearly_dependent(TwinTile& a, std::mt19937_64& random) {
  a.fill_random(random);
  std::uniform_real_distribution<double> noise(-1e-13, 1e-13);
  for (std::int64_t j = 3; j < a.columns(); ++j) {
    for (std::int64_t i = 0; i < a.rows(); ++i) {
      a(i, j) = a(i, j % 3) * (j % 2 == 0 ? 1 : -2) + (j % 5 == 0 ? 0 : noise(random));
    }
  }
}

class CudaQr : public CudaQrTest {
 protected:
  void geqrt_and_unmqr(const PanelShape& s, std::mt19937_64& random);
  void tsqrt_and_tsmqr(const PanelShape& s, std::mt19937_64& random);
  void ttqrt_and_ttmqr(const PanelShape& s, std::mt19937_64& random);
  void geqrt_is_backward_stable(TwinTile& a, std::int64_t inner, double within);
  void tsqrt_is_backward_stable(TwinTile& r, TwinTile& a, std::int64_t inner, double within);
};

void CudaQr::geqrt_and_unmqr(const PanelShape& s, std::mt19937_64& random) {
  const PanelParameters p{s.first, s.row, s.inner};
  TwinTile a(s.first + s.rows, s.w);
  TwinTile r(s.row + s.w + 4, s.w, 1);
  TwinTile t(std::min(s.inner, s.w), s.w);
  TwinTile c(s.first + s.rows, s.n, 0);
  TwinTile top(s.row + s.w + 1, s.n);
  for (TwinTile* tile : {&a, &r, &t, &c, &top}) {
    tile->fill_random(random);
    tile->upload();
  }
  TwinTile a_again(a.rows(), s.w);
  TwinTile r_again(r.rows(), s.w, 1);
  TwinTile t_again(t.rows(), s.w);
  a_again.copy_from(a);
  r_again.copy_from(r);
  for (TwinTile* tile : {&a_again, &r_again}) tile->upload();

  run_cuda(kernel::geqrt, p, {&a, &r, &t});
  run_cuda(kernel::geqrt, p, {&a_again, &r_again, &t_again});
  EXPECT_TRUE(a.same_bits_on_device(a_again) && r.same_bits_on_device(r_again) &&
              t.same_bits_on_device(t_again));
  run_host(kernel::geqrt, p, {&a, &r, &t});
  expect_agreement(a, tolerance(s), "V");
  expect_agreement(r, tolerance(s), "R");
  expect_agreement(t, tolerance(s), "T");

  // What is above the reflectors nobody reads.
  a.fetch();
  t.fetch();
  for (std::int64_t j = 0; j < s.w; ++j) {
    for (std::int64_t i = 0; i <= j; ++i) a(s.first + i, j) = nan;
  }
  a.upload();
  TwinTile c_before(c.rows(), s.n, 0);
  c_before.copy_from(c);
  run_cuda(kernel::unmqr, p, {&c, &top, &a, &t});
  run_host(kernel::unmqr, p, {&c, &top, &a, &t});
  expect_agreement(c, tolerance(s), "Q^T C");
  expect_agreement(top, tolerance(s), "Q^T C's top");
  run_cuda(kernel::unmqr_back, p, {&c, &top, &a, &t});
  run_host(kernel::unmqr_back, p, {&c, &top, &a, &t});
  expect_agreement(c, tolerance(s), "Q C");
  c.fetch();
  EXPECT_LE(distance(c, c_before), tolerance(s));
}

void CudaQr::tsqrt_and_tsmqr(const PanelShape& s, std::mt19937_64& random) {
  const PanelParameters p{0, s.row, s.inner};
  TwinTile a(s.rows, s.w);
  TwinTile r(s.row + s.w + 2, s.w, 1);
  TwinTile r_taken(s.row + s.w, s.w);
  TwinTile t(std::min(s.inner, s.w), s.w);
  TwinTile t_again(t.rows(), s.w);
  for (TwinTile* tile : {&a, &r, &t}) tile->fill_random(random);
  r_taken.fill_random(random);
  for (std::int64_t j = 0; j < s.w; ++j) {
    for (std::int64_t i = 0; i < s.w; ++i) {
      r_taken(s.row + i, j) = i <= j ? r(s.row + i, j) : nan;
      if (i > j) r(s.row + i, j) = 0;
    }
  }
  TwinTile a_again(s.rows, s.w);
  TwinTile r_again(r.rows(), s.w, 1);
  a_again.copy_from(a);
  r_again.copy_from(r);
  for (std::int64_t j = 0; j < s.w; ++j) {  // an output alone
    for (std::int64_t i = 0; i < s.w; ++i) r_again(s.row + i, j) = nan;
  }
  for (TwinTile* tile : {&a, &r, &r_taken, &t, &a_again, &r_again}) tile->upload();
  run_cuda(kernel::tsqrt, p, {&a, &r, &t});
  run_cuda(kernel::tsqrt, p, {&a_again, &r_again, &t_again, &r_taken});
  EXPECT_TRUE(a.same_bits_on_device(a_again) && t.same_bits_on_device(t_again));
  EXPECT_TRUE(r.same_bits_on_device(r_again));
  run_host(kernel::tsqrt, p, {&a, &r, &t});
  expect_agreement(a, tolerance(s), "V");
  expect_agreement(r, tolerance(s), "R");
  expect_agreement(t, tolerance(s), "T");

  a.fetch();
  t.fetch();
  TwinTile c(s.rows, s.n);
  TwinTile d(s.row + s.w + 2, s.n, 0);
  TwinTile d_taken(s.row + s.w + 2, s.n, 0);
  TwinTile c_again(s.rows, s.n);
  for (TwinTile* tile : {&c, &d}) tile->fill_random(random);
  d_taken.copy_from(d);
  c_again.copy_from(c);
  TwinTile c_before(s.rows, s.n);
  TwinTile d_before(d.rows(), s.n, 0);
  c_before.copy_from(c);
  d_before.copy_from(d);
  TwinTile d_again(d.rows(), s.n, 0);
  d_again.copy_from(d);
  for (std::int64_t j = 0; j < s.n; ++j) {
    for (std::int64_t i = 0; i < s.w; ++i) d_again(s.row + i, j) = nan;
  }
  for (TwinTile* tile : {&c, &d, &d_taken, &c_again, &d_again}) tile->upload();
  run_cuda(kernel::tsmqr, p, {&c, &d, &a, &t});
  run_cuda(kernel::tsmqr, p, {&c_again, &d_again, &a, &t, &d_taken});
  EXPECT_TRUE(c.same_bits_on_device(c_again) && d.same_bits_on_device(d_again));
  run_host(kernel::tsmqr, p, {&c, &d, &a, &t});
  expect_agreement(c, tolerance(s), "Q^T [D; C]: C");
  expect_agreement(d, tolerance(s), "Q^T [D; C]: D");
  run_cuda(kernel::tsmqr_back, p, {&c, &d, &a, &t});
  c.fetch();
  d.fetch();
  EXPECT_LE(distance(c, c_before), tolerance(s));
  EXPECT_LE(distance(d, d_before), tolerance(s));
}

void CudaQr::ttqrt_and_ttmqr(const PanelShape& s, std::mt19937_64& random) {
  const PanelParameters p{0, s.row, s.inner};
  const std::int64_t w = s.w;
  TwinTile upper(s.row + w + 2, w);
  TwinTile lower(s.row + w + 1, w);
  TwinTile v(w + 3, w);
  TwinTile r(s.row + w, w);
  TwinTile t(std::min(s.inner, w), w);
  for (TwinTile* tile : {&upper, &lower, &v, &r, &t}) tile->fill_random(random);
  for (std::int64_t j = 0; j < w; ++j) {
    // As R of a tall matrix has it: the squares of random triangles have next to no rank.
    upper(s.row + j, j) += upper(s.row + j, j) < 0 ? -5 : 5;
    for (std::int64_t i = j + 1; i < w; ++i) upper(s.row + i, j) = lower(s.row + i, j) = nan;
  }
  for (TwinTile* tile : {&upper, &lower, &v, &r, &t}) tile->upload();
  run_cuda(kernel::ttqrt, p, {&v, &r, &t, &upper, &lower});
  run_host(kernel::ttqrt, p, {&v, &r, &t, &upper, &lower});
  expect_agreement(v, tolerance(s), "V");
  expect_agreement(r, tolerance(s), "R");
  expect_agreement(t, tolerance(s), "T");
  v.fetch();
  t.fetch();
  for (std::int64_t j = 0; j < w; ++j) {
    for (std::int64_t i = j + 1; i < w; ++i) {
      ASSERT_EQ(v(i, j), 0);
      v(i, j) = nan;  // nobody reads it
    }
  }
  v.upload();

  TwinTile x(s.row + w, s.n);
  TwinTile y(s.row + w, s.n);
  TwinTile x_down(w + 7, s.n);
  TwinTile y_down(s.row + w, s.n);
  TwinTile x_up(s.row + w, s.n);
  TwinTile y_up(s.row + w, s.n);
  for (TwinTile* tile : {&x, &y, &x_down, &y_down, &x_up, &y_up}) {
    tile->fill_random(random);
    tile->upload();
  }
  run_cuda(kernel::ttmqr, p, {&x_down, &y_down, &v, &t, &y, &x});
  run_host(kernel::ttmqr, p, {&x_down, &y_down, &v, &t, &y, &x});
  expect_agreement(x_down, tolerance(s), "Q^T [D; C]: C");
  expect_agreement(y_down, tolerance(s), "Q^T [D; C]: D");
  run_cuda(kernel::ttmqr_back, p, {&x_up, &y_up, &v, &t, &y_down, &x_down});
  run_host(kernel::ttmqr_back, p, {&x_up, &y_up, &v, &t, &y_down, &x_down});
  expect_agreement(x_up, tolerance(s), "Q [D; C]: C");
  expect_agreement(y_up, tolerance(s), "Q [D; C]: D");
}

/// Column by column Q [R; 0] is what was factored, and Q Q^T is the identity. For matrices whose
/// reflectors rounding decides.
void CudaQr::geqrt_is_backward_stable(TwinTile& a, std::int64_t inner, double within) {
  const std::int64_t m = a.rows();
  const std::int64_t w = a.columns();
  const PanelParameters p{0, 0, inner};
  TwinTile before(m, w);
  before.copy_from(a);
  TwinTile r(w, w);
  TwinTile t(std::min(inner, w), w);
  a.upload();
  run_cuda(kernel::geqrt, p, {&a, &r, &t});
  TwinTile c(m, w);
  run_cuda(kernel::unmqr_back, p, {&c, &r, &a, &t});
  c.fetch();
  for (std::int64_t j = 0; j < w; ++j) {
    double largest = 0;
    for (std::int64_t i = 0; i < m; ++i) largest = std::max(largest, std::abs(before(i, j)));
    for (std::int64_t i = 0; i < m; ++i) {
      ASSERT_NEAR(c(i, j), before(i, j), within * largest) << "QR (" << i << ", " << j << ")";
    }
  }
  TwinTile unit(m, w);
  TwinTile unit_before(m, w);
  TwinTile unit_top(w, w);
  for (std::int64_t j = 0; j < w; ++j) unit(j, j) = 1;
  unit_before.copy_from(unit);
  unit.upload();
  run_cuda(kernel::unmqr, p, {&unit, &unit_top, &a, &t});
  run_cuda(kernel::unmqr_back, p, {&unit, &unit_top, &a, &t});
  unit.fetch();
  EXPECT_LE(distance(unit, unit_before), within);
}

/// As geqrt_is_backward_stable(), of R and a tile under it.
void CudaQr::tsqrt_is_backward_stable(TwinTile& r, TwinTile& a, std::int64_t inner, double within) {
  const std::int64_t m = a.rows();
  const std::int64_t w = a.columns();
  const PanelParameters p{0, 0, inner};
  TwinTile a_before(m, w);
  TwinTile r_before(w, w);
  a_before.copy_from(a);
  r_before.copy_from(r);
  TwinTile t(std::min(inner, w), w);
  a.upload();
  r.upload();
  run_cuda(kernel::tsqrt, p, {&a, &r, &t});
  TwinTile c(m, w);
  r.fetch();
  run_cuda(kernel::tsmqr_back, p, {&c, &r, &a, &t});
  c.fetch();
  r.fetch();
  for (std::int64_t j = 0; j < w; ++j) {
    double largest = 0;
    for (std::int64_t i = 0; i < m; ++i) largest = std::max(largest, std::abs(a_before(i, j)));
    for (std::int64_t i = 0; i < w; ++i) largest = std::max(largest, std::abs(r_before(i, j)));
    for (std::int64_t i = 0; i < m; ++i) {
      ASSERT_NEAR(c(i, j), a_before(i, j), within * largest) << "A (" << i << ", " << j << ")";
    }
    for (std::int64_t i = 0; i < w; ++i) {
      ASSERT_NEAR(r(i, j), r_before(i, j), within * largest) << "R (" << i << ", " << j << ")";
    }
  }
}

TEST_F(CudaQr, GeqrtAndUnmqr_AgreeWithTheHostInSmallTiles) {
  for_shapes(small_shapes, [&](const auto& s, auto& random) { geqrt_and_unmqr(s, random); });
}

TEST_F(CudaQr, GeqrtAndUnmqr_AgreeWithTheHostInTallTiles) {
  for_shapes(large_shapes, [&](const auto& s, auto& random) { geqrt_and_unmqr(s, random); });
}

TEST_F(CudaQr, TsqrtAndTsmqr_AgreeWithTheHostInSmallTiles) {
  for_shapes(with_short_tiles(small_shapes),
             [&](const auto& s, auto& random) { tsqrt_and_tsmqr(s, random); });
}

TEST_F(CudaQr, TsqrtAndTsmqr_AgreeWithTheHostInTallTiles) {
  for_shapes(with_short_tiles(large_shapes),
             [&](const auto& s, auto& random) { tsqrt_and_tsmqr(s, random); });
}

TEST_F(CudaQr, TtqrtAndTtmqr_AgreeWithTheHostInSmallTiles) {
  for_shapes(small_shapes, [&](const auto& s, auto& random) { ttqrt_and_ttmqr(s, random); });
}

TEST_F(CudaQr, TtqrtAndTtmqr_AgreeWithTheHostInLargeTiles) {
  for_shapes({{0, 300, 40, 128, 0, 3}, {0, 520, 60, 520, 0, 0}, {0, 600, 33, 256, 0, 1}},
             [&](const auto& s, auto& random) { ttqrt_and_ttmqr(s, random); });
}

TEST_F(CudaQr, TakeEmptyTiles) {
  const PanelParameters p{2, 1, 8};
  TwinTile nothing(2, 0);
  TwinTile none(5, 0);
  TwinTile t(8, 0);
  run_cuda(kernel::geqrt, p, {&nothing, &none, &t});
  run_cuda(kernel::tsqrt, p, {&nothing, &none, &t});
  run_cuda(kernel::ttqrt, p, {&nothing, &none, &t, &none, &none});
  TwinTile c(2, 5);
  TwinTile d(5, 5);
  run_cuda(kernel::unmqr, p, {&c, &d, &nothing, &t});
  run_cuda(kernel::tsmqr, p, {&c, &d, &nothing, &t});

  // No rows under R, and nothing to apply reflectors to.
  std::mt19937_64 random(4);
  const PanelParameters q{0, 0, 8};
  TwinTile no_rows(0, 20);
  TwinTile r(20, 20);
  TwinTile t_of_none(8, 20);
  r.fill_random(random);
  t_of_none.fill_random(random);
  for (TwinTile* tile : {&r, &t_of_none}) tile->upload();
  run_cuda(kernel::tsqrt, q, {&no_rows, &r, &t_of_none});
  run_host(kernel::tsqrt, q, {&no_rows, &r, &t_of_none});
  expect_agreement(r, 0, "R");
  expect_agreement(t_of_none, 0, "T");
  TwinTile v(30, 20);
  TwinTile no_columns(30, 0);
  TwinTile no_columns_above(20, 0);
  run_cuda(kernel::unmqr_back, q, {&no_columns, &no_columns_above, &v, &t_of_none});
  run_cuda(kernel::tsmqr_back, q, {&no_columns, &no_columns_above, &v, &t_of_none});
}

TEST_F(CudaQr, TakeColumnsOfAnyScale) {
  for (const double scale : {1e-307, 1e-200, 1e-150, 1.0, 1e150, 1e200, 1e300}) {
    SCOPED_TRACE(scale);
    std::mt19937_64 random(3);
    const PanelParameters p{0, 0, 24};
    TwinTile a(700, 24);
    TwinTile r(24, 24);
    TwinTile t(24, 24);
    a.fill_random(random);
    TwinTile plain(700, 24);
    TwinTile r_plain(24, 24);
    plain.copy_from(a);
    for (std::int64_t j = 0; j < 24; ++j) {
      for (std::int64_t i = 0; i < 700; ++i) a(i, j) *= scale;
    }
    a.upload();
    plain.upload();
    run_cuda(kernel::geqrt, p, {&a, &r, &t});
    run_cuda(kernel::geqrt, p, {&plain, &r_plain, &t});
    r.fetch();
    r_plain.fetch();
    for (std::int64_t j = 0; j < 24; ++j) {
      for (std::int64_t i = 0; i < 24; ++i) ASSERT_NEAR(r(i, j) / scale, r_plain(i, j), 1e-11);
    }
  }
}

TEST_F(CudaQr, TakeGradedColumnsInOneMatrix) {
  std::mt19937_64 random(5);
  TwinTile a(900, 61);
  TwinTile below(600, 61);
  TwinTile r(61, 61);
  for (TwinTile* tile : {&a, &below, &r}) {
    tile->fill_random(random);
    for (std::int64_t j = 0; j < 61; ++j) {
      for (std::int64_t i = 0; i < tile->rows(); ++i) {
        (*tile)(i, j) =
            tile == &r && i > j ? 0 : (*tile)(i, j) * std::pow(10.0, (j * 37) % 601 - 300);
      }
    }
  }
  geqrt_is_backward_stable(a, 61, 1e-12);
  tsqrt_is_backward_stable(r, below, 61, 1e-12);
}

TEST_F(CudaQr, TakeGradedRows_WhoseSquaresUnderflow) {
  std::mt19937_64 random(6);
  const PanelParameters p{0, 0, 20};
  TwinTile a(650, 20);
  TwinTile r(20, 20);
  TwinTile t(20, 20);
  a.fill_random(random);
  for (std::int64_t j = 0; j < 20; ++j) {
    for (std::int64_t i = 1; i < 650; ++i) a(i, j) *= i < 10 ? 1e-170 : 1e-290;
  }
  TwinTile kept(650, 20);
  kept.copy_from(a);
  geqrt_is_backward_stable(kept, 20, 1e-12);
  a.upload();
  run_cuda(kernel::geqrt, p, {&a, &r, &t});
  run_host(kernel::geqrt, p, {&a, &r, &t});
  // As on the host a tiny part below the diagonal is reflected, not dropped: signs tell.
  TwinTile on_gpu(20, 20);
  on_gpu.copy_from(r);
  r.fetch();
  for (std::int64_t j = 0; j < 9; ++j) {
    EXPECT_NEAR(r(j, j), on_gpu(j, j), 1e-11 * std::abs(on_gpu(j, j))) << j;
  }
}

TEST_F(CudaQr, TakeNearlyDependentColumns) {
  std::mt19937_64 random(7);
  for (const std::int64_t inner : {16, 64, 200}) {
    SCOPED_TRACE(inner);
    TwinTile a(1500, 200);
    TwinTile below(1100, 200);
    TwinTile r(200, 200);
    for (TwinTile* tile : {&a, &below, &r}) fill_nearly_dependent(*tile, random);
    for (std::int64_t j = 0; j < 200; ++j) {
      for (std::int64_t i = j + 1; i < 200; ++i) r(i, j) = 0;
    }
    geqrt_is_backward_stable(a, inner, 1e-12);
    tsqrt_is_backward_stable(r, below, inner, 1e-12);
  }
}

TEST_F(CudaQr, LeaveZerosAlone) {
  const PanelParameters p{0, 0, 8};
  for (const std::int64_t m : {40, 1300}) {
    TwinTile a(m, 20);
    TwinTile r(20, 20);
    TwinTile t(8, 20);
    TwinTile below(m, 20);
    t(3, 3) = 5;
    t.upload();
    run_cuda(kernel::geqrt, p, {&a, &r, &t});
    run_cuda(kernel::tsqrt, p, {&below, &r, &t});
    t(3, 3) = 0;
    for (const TwinTile* tile : {&a, &r, &t, &below}) expect_agreement(*tile, 0, "zeros");
    // A zero column among others: no reflector, and R agrees with the host's.
    std::mt19937_64 random(9);
    a.fill_random(random);
    for (std::int64_t i = 0; i < m; ++i) a(i, 7) = a(i, 0) = 0;
    a.upload();
    run_cuda(kernel::geqrt, p, {&a, &r, &t});
    run_host(kernel::geqrt, p, {&a, &r, &t});
    expect_agreement(r, 1e-12, "R");
    t.fetch();
    EXPECT_EQ(t(0, 0), 0);
    geqrt_is_backward_stable(a, 8, 1e-12);
  }
}

TEST_F(CudaQr, PassOnWhatIsNoNumber) {
  const PanelParameters p{0, 0, 8};
  std::mt19937_64 random(9);
  TwinTile a(40, 20);
  TwinTile r(20, 20);
  TwinTile t(8, 20);
  a.fill_random(random);
  a(11, 4) = nan;
  a.upload();
  run_cuda(kernel::geqrt, p, {&a, &r, &t});
  r.fetch();
  EXPECT_TRUE(std::isnan(r(4, 4)));
  for (std::int64_t j = 0; j < 4; ++j) EXPECT_TRUE(std::isfinite(r(j, j)));
}

TEST_F(CudaQr, CopyRowsAndCopyTriangle_LeaveOtherRowsAlone) {
  std::mt19937_64 random(9);
  for (const Kernel* k : {&kernel::copy_rows, &kernel::copy_triangle}) {
    for (const std::int64_t count : {0, 5, 300}) {
      TwinTile from(count + 7, count, 5);
      TwinTile to(count + 9, count);
      from.fill_random(random);
      to.fill_random(random);
      if (k == &kernel::copy_triangle) {
        for (std::int64_t j = 0; j < count; ++j) {
          for (std::int64_t i = j + 1; i < count; ++i) from(3 + i, j) = nan;
        }
      }
      from.upload();
      to.upload();
      run_cuda(*k, PanelParameters{0, 3, count}, {&to, &from});
      run_host(*k, PanelParameters{0, 3, count}, {&to, &from});
      expect_agreement(to, 0, "copy");
    }
  }
}

TEST_F(CudaQr, KernelsOfOneContext_LeaveItsExchangeMemoryAsTheNextOneNeedsIt) {
  // Scratch memory is the same for all kernels: what one leaves there must not pass for messages.
  std::mt19937_64 random(11);
  for (const std::int64_t m : {2000, 700, 5000, 520}) {
    geqrt_and_unmqr({m, 64, 80, 64, 0, 0}, random);
    tsqrt_and_tsmqr({m, 40, 30, 16, 0, 0}, random);
  }
}

}  // namespace
}  // namespace heddle::test
