#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernels.hpp"
#include "tests/kernels/guarded_tile.hpp"
#include "tests/kernels/panel_shapes.hpp"
#include "tests/support/dense.hpp"
#include "tests/support/lapack.hpp"

// Built twice: with heddle's own tile kernels and with OpenBLAS alone, which cholesky_test.cpp in
// the same program loads.

namespace heddle::test {
namespace {

using kernel::PanelParameters;
using testing::Dense;
using testing::lapack_r;

constexpr double epsilon = std::numeric_limits<double>::epsilon();

std::vector<PanelShape> all_shapes() {
  std::vector<PanelShape> result{{1, 1, 1, 1, 0, 0},     {8, 8, 8, 8, 0, 0},
                                 {9, 9, 3, 4, 2, 1},     {16, 16, 16, 5, 0, 0},
                                 {64, 33, 20, 33, 7, 9}, {200, 96, 64, 32, 0, 0},
                                 {300, 1, 5, 1, 1, 0},   {513, 65, 40, 65, 3, 2},
                                 {96, 96, 96, 96, 0, 0}, {1000, 130, 31, 48, 24, 0}};
  std::mt19937_64 random(4711);
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
  };
  for (int i = 0; i < 30; ++i) {
    const std::int64_t w = 1 + below(90);
    result.push_back({w + below(150), w, 1 + below(60), 1 + below(w), below(20), below(20)});
  }
  return result;
}

double tolerance(const PanelShape& s) {
  return 60 * epsilon * static_cast<double>(s.rows + s.w + 8);
}

/// max |a - b| over rows [0, rows) of column ranges of equal width.
void expect_near(const std::function<double(std::int64_t, std::int64_t)>& actual,
                 const std::function<double(std::int64_t, std::int64_t)>& expected,
                 std::int64_t rows, std::int64_t columns, double within, const char* what) {
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) {
      ASSERT_NEAR(actual(i, j), expected(i, j), within) << what << " (" << i << ", " << j << ")";
    }
  }
}

TEST(QrKernels, Geqrt_AgreesWithLapackAndItsQIsUndone) {
  for_shapes(all_shapes(), [](const PanelShape& s, std::mt19937_64& random) {
    const PanelParameters p{s.first, s.row, s.inner};
    GuardedTile a(s.first + s.rows, s.w);
    GuardedTile r(s.row + s.w + 4, s.w);
    GuardedTile t(std::min(s.inner, s.w), s.w);
    a.fill_random(random);
    r.fill_random(random);
    t.fill_random(random);
    GuardedTile original(a.rows(), a.columns());
    original.copy_from(a);
    GuardedTile r_before(r.rows(), r.columns());
    r_before.copy_from(r);
    ASSERT_EQ(run(kernel::geqrt, p, {a.view(), r.view(), t.view()}), 0);

    Dense active(s.rows, s.w);
    for (std::int64_t j = 0; j < s.w; ++j) {
      for (std::int64_t i = 0; i < s.rows; ++i) active(i, j) = original(s.first + i, j);
    }
    const Dense expected = lapack_r(active);
    expect_near([&](auto i, auto j) { return r(s.row + i, j); }, expected, s.w, s.w, tolerance(s),
                "R");
    // Nothing outside is touched: rows of R's tile around R, rows of the tile before `first`.
    for (std::int64_t j = 0; j < s.w; ++j) {
      for (std::int64_t i = 0; i < r.rows(); ++i) {
        const bool outside = i < s.row || i >= s.row + s.w;
        ASSERT_TRUE(!outside || r(i, j) == r_before(i, j));
      }
      for (std::int64_t i = 0; i < s.first; ++i) ASSERT_EQ(a(i, j), original(i, j));
    }
    // Q R is A again.
    GuardedTile c(s.first + s.rows, s.w);
    ASSERT_EQ(run(kernel::unmqr_back, p, {c.view(), r.view(), a.view(), t.view()}), 0);
    expect_near([&](auto i, auto j) { return c(s.first + i, j); }, active, s.rows, s.w,
                tolerance(s), "QR");
    // The same bits wherever the tile lies.
    GuardedTile again(a.rows(), a.columns(), 9);
    again.copy_from(original);
    GuardedTile t_again(t.rows(), t.columns(), 1);
    GuardedTile r_again(r.rows(), r.columns(), 5);
    r_again.copy_from(r_before);
    ASSERT_EQ(run(kernel::geqrt, p, {again.view(), r_again.view(), t_again.view()}), 0);
    ASSERT_TRUE(again.same_bits(a) && t_again.same_bits(t) && r_again.same_bits(r));
  });
}

TEST(QrKernels, Unmqr_IsOrthogonalAndKeepsTheTopRowsInRsTile) {
  for_shapes(all_shapes(), [](const PanelShape& s, std::mt19937_64& random) {
    const PanelParameters p{s.first, s.row, s.inner};
    GuardedTile a(s.first + s.rows, s.w);
    GuardedTile r(s.row + s.w, s.w);
    GuardedTile t(std::min(s.inner, s.w), s.w);
    GuardedTile c(s.first + s.rows, s.n);
    GuardedTile top(s.row + s.w + 1, s.n);
    a.fill_random(random);
    c.fill_random(random);
    top.fill_random(random);
    GuardedTile before(c.rows(), c.columns());
    before.copy_from(c);
    ASSERT_EQ(run(kernel::geqrt, p, {a.view(), r.view(), t.view()}), 0);
    // What is above the reflectors is R's echo; nobody may read it.
    for (std::int64_t j = 0; j < s.w; ++j) {
      for (std::int64_t i = 0; i <= j; ++i) {
        a(s.first + i, j) = std::numeric_limits<double>::quiet_NaN();
      }
    }
    ASSERT_EQ(run(kernel::unmqr, p, {c.view(), top.view(), a.view(), t.view()}), 0);
    for (std::int64_t j = 0; j < s.n; ++j) {
      double length = 0;
      double length_before = 0;
      for (std::int64_t i = s.first; i < c.rows(); ++i) {
        length += c(i, j) * c(i, j);
        length_before += before(i, j) * before(i, j);
      }
      ASSERT_NEAR(length, length_before, tolerance(s) * (1 + length));
      for (std::int64_t i = 0; i < s.w; ++i) ASSERT_EQ(top(s.row + i, j), c(s.first + i, j));
      for (std::int64_t i = 0; i < s.first; ++i) ASSERT_EQ(c(i, j), before(i, j));
    }
    ASSERT_EQ(run(kernel::unmqr_back, p, {c.view(), top.view(), a.view(), t.view()}), 0);
    expect_near([&](auto i, auto j) { return c(i, j); },
                [&](auto i, auto j) { return before(i, j); }, c.rows(), s.n, tolerance(s), "QQ^T");
  });
}

TEST(QrKernels, Tsqrt_AgreesWithLapackOfTheTwoStacked) {
  for_shapes(with_short_tiles(all_shapes()), [](const PanelShape& s, std::mt19937_64& random) {
    const PanelParameters p{0, s.row, s.inner};
    GuardedTile a(s.rows, s.w);
    GuardedTile r(s.row + s.w + 2, s.w);
    GuardedTile t(std::min(s.inner, s.w), s.w);
    a.fill_random(random);
    r.fill_random(random);
    Dense stacked(s.w + s.rows, s.w);
    for (std::int64_t j = 0; j < s.w; ++j) {
      for (std::int64_t i = 0; i < s.w; ++i) {
        if (i > j) r(s.row + i, j) = 0;
        stacked(i, j) = r(s.row + i, j);
      }
      for (std::int64_t i = 0; i < s.rows; ++i) stacked(s.w + i, j) = a(i, j);
    }
    ASSERT_EQ(run(kernel::tsqrt, p, {a.view(), r.view(), t.view()}), 0);
    const Dense expected = lapack_r(stacked);
    expect_near([&](auto i, auto j) { return r(s.row + i, j); }, expected, s.w, s.w, tolerance(s),
                "R");
    // Q [R; 0] is what was stacked.
    GuardedTile c(s.rows, s.w);
    GuardedTile d(s.row + s.w + 2, s.w);
    d.copy_from(r);
    ASSERT_EQ(run(kernel::tsmqr_back, p, {c.view(), d.view(), a.view(), t.view()}), 0);
    expect_near([&](auto i, auto j) { return i < s.w ? d(s.row + i, j) : c(i - s.w, j); }, stacked,
                s.w + s.rows, s.w, tolerance(s), "QR");
    // Q^T Q of anything is that again.
    GuardedTile x(s.rows, s.n);
    GuardedTile y(s.row + s.w + 2, s.n);
    x.fill_random(random);
    y.fill_random(random);
    GuardedTile x_before(s.rows, s.n);
    GuardedTile y_before(y.rows(), s.n);
    x_before.copy_from(x);
    y_before.copy_from(y);
    ASSERT_EQ(run(kernel::tsmqr, p, {x.view(), y.view(), a.view(), t.view()}), 0);
    ASSERT_EQ(run(kernel::tsmqr_back, p, {x.view(), y.view(), a.view(), t.view()}), 0);
    expect_near([&](auto i, auto j) { return x(i, j); },
                [&](auto i, auto j) { return x_before(i, j); }, s.rows, s.n, tolerance(s), "x");
    expect_near([&](auto i, auto j) { return y(i, j); },
                [&](auto i, auto j) { return y_before(i, j); }, y.rows(), s.n, tolerance(s), "y");
  });
}

TEST(QrKernels, Tsqrt_TakesTheTriangleOfAnotherTileAndNothingElseOfIt) {
  for_shapes(with_short_tiles(all_shapes()), [](const PanelShape& s, std::mt19937_64& random) {
    const PanelParameters p{0, s.row, s.inner};
    GuardedTile a(s.rows, s.w);
    GuardedTile r(s.row + s.w + 1, s.w);
    GuardedTile t(std::min(s.inner, s.w), s.w);
    a.fill_random(random);
    r.fill_random(random);
    GuardedTile a_again(s.rows, s.w);
    a_again.copy_from(a);
    GuardedTile r_taken(r.rows(), s.w);
    r_taken.copy_from(r);
    GuardedTile r_again(r.rows(), s.w);
    r_again.fill_random(random);
    for (std::int64_t j = 0; j < s.w; ++j) {
      for (std::int64_t i = j + 1; i < s.w; ++i) {
        r(s.row + i, j) = 0;
        r_taken(s.row + i, j) = std::numeric_limits<double>::quiet_NaN();
      }
    }
    GuardedTile t_again(t.rows(), s.w);
    ASSERT_EQ(run(kernel::tsqrt, p, {a.view(), r.view(), t.view()}), 0);
    ASSERT_EQ(
        run(kernel::tsqrt, p, {a_again.view(), r_again.view(), t_again.view(), r_taken.view()}), 0);
    ASSERT_TRUE(a.same_bits(a_again) && t.same_bits(t_again));
    for (std::int64_t j = 0; j < s.w; ++j) {
      for (std::int64_t i = 0; i < s.w; ++i) ASSERT_EQ(r(s.row + i, j), r_again(s.row + i, j));
    }
  });
}

TEST(QrKernels, Ttqrt_AgreesWithLapackOfTwoTrianglesAndItsQIsUndone) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for_shapes(all_shapes(), [](const PanelShape& s, std::mt19937_64& random) {
    const PanelParameters p{0, s.row, s.inner};
    const std::int64_t w = s.w;
    GuardedTile upper(s.row + w + 2, w);
    GuardedTile lower(s.row + w + 1, w);
    GuardedTile v(w + 3, w);
    GuardedTile r(s.row + w, w);
    GuardedTile t(std::min(s.inner, w), w);
    Dense stacked(2 * w, w);
    for (GuardedTile* tile : {&upper, &lower, &v, &r, &t}) tile->fill_random(random);
    for (std::int64_t j = 0; j < w; ++j) {
      for (std::int64_t i = 0; i < w; ++i) {
        stacked(i, j) = i <= j ? upper(s.row + i, j) : 0;
        stacked(w + i, j) = i <= j ? lower(s.row + i, j) : 0;
        if (i > j) upper(s.row + i, j) = lower(s.row + i, j) = nan;  // does not travel
      }
    }
    ASSERT_EQ(run(kernel::ttqrt, p, {v.view(), r.view(), t.view(), upper.view(), lower.view()}), 0);
    const Dense expected = lapack_r(stacked);
    expect_near([&](auto i, auto j) { return r(s.row + i, j); }, expected, w, w, tolerance(s), "R");
    for (std::int64_t j = 0; j < w; ++j) {
      for (std::int64_t i = j + 1; i < w; ++i) {
        ASSERT_EQ(v(i, j), 0);
        v(i, j) = nan;  // nor does this
      }
    }
    // Q [R; 0] is what was stacked.
    GuardedTile d(s.row + w, w);
    GuardedTile c(s.row + w, w);
    GuardedTile nothing(w + 5, w);
    ASSERT_EQ(run(kernel::ttmqr_back, p,
                  {c.view(), d.view(), v.view(), t.view(), r.view(), nothing.view()}),
              0);
    expect_near([&](auto i, auto j) { return i < w ? d(s.row + i, j) : c(s.row + i - w, j); },
                stacked, 2 * w, w, tolerance(s), "QR");
    // Q Q^T of anything is that again.
    GuardedTile x(s.row + w, s.n);
    GuardedTile y(s.row + w, s.n);
    x.fill_random(random);
    y.fill_random(random);
    GuardedTile x_down(w + 7, s.n);
    GuardedTile y_down(s.row + w, s.n);
    GuardedTile x_up(s.row + w, s.n);
    GuardedTile y_up(s.row + w, s.n);
    ASSERT_EQ(run(kernel::ttmqr, p,
                  {x_down.view(), y_down.view(), v.view(), t.view(), y.view(), x.view()}),
              0);
    ASSERT_EQ(run(kernel::ttmqr_back, p,
                  {x_up.view(), y_up.view(), v.view(), t.view(), y_down.view(), x_down.view()}),
              0);
    for (const auto& [up, before] : {std::pair(&x_up, &x), std::pair(&y_up, &y)}) {
      expect_near([&, tile = up](auto i, auto j) { return (*tile)(s.row + i, j); },
                  [&, tile = before](auto i, auto j) { return (*tile)(s.row + i, j); }, w, s.n,
                  tolerance(s), "QQ^T");
    }
  });
}

TEST(QrKernels, TakeColumnsOfAnyScale) {
  const std::int64_t m = 70;
  const std::int64_t n = 24;
  const PanelParameters p{0, 0, n};
  for (const double scale : {1e-307, 1e-200, 1e-150, 1.0, 1e150, 1e200, 1e300}) {
    SCOPED_TRACE(scale);
    std::mt19937_64 random(3);
    GuardedTile a(m, n);
    GuardedTile b(30, n);
    a.fill_random(random);
    b.fill_random(random);
    Dense plain(m, n);
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < m; ++i) {
        plain(i, j) = a(i, j);
        a(i, j) *= scale;
      }
      for (std::int64_t i = 0; i < b.rows(); ++i) b(i, j) *= scale;
    }
    GuardedTile r(n, n);
    GuardedTile t(n, n);
    ASSERT_EQ(run(kernel::geqrt, p, {a.view(), r.view(), t.view()}), 0);
    const Dense expected = lapack_r(plain);
    expect_near([&](auto i, auto j) { return r(i, j) / scale; }, expected, n, n, 1e-12, "R");
    ASSERT_EQ(run(kernel::tsqrt, p, {b.view(), r.view(), t.view()}), 0);
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < n; ++i)
        ASSERT_TRUE(std::isfinite(r(i, j)) && std::isfinite(t(i, j)));
      for (std::int64_t i = 0; i < b.rows(); ++i) ASSERT_TRUE(std::isfinite(b(i, j)));
    }
  }
}

TEST(QrKernels, LeaveZerosAlone) {
  const PanelParameters p{0, 0, 8};
  GuardedTile a(40, 20);
  GuardedTile r(20, 20);
  GuardedTile t(8, 20);
  GuardedTile b(30, 20);
  t.view()(3, 3) = 5;
  ASSERT_EQ(run(kernel::geqrt, p, {a.view(), r.view(), t.view()}), 0);
  ASSERT_EQ(run(kernel::tsqrt, p, {b.view(), r.view(), t.view()}), 0);
  for (std::int64_t j = 0; j < 20; ++j) {
    for (std::int64_t i = 0; i < 20; ++i) ASSERT_EQ(r(i, j), 0);
    for (std::int64_t i = 0; i < 8; ++i) ASSERT_EQ(t(i, j), 0);
  }
  // A zero column among others.
  std::mt19937_64 random(9);
  a.fill_random(random);
  for (std::int64_t i = 0; i < 40; ++i) a(i, 7) = 0;
  ASSERT_EQ(run(kernel::geqrt, p, {a.view(), r.view(), t.view()}), 0);
  EXPECT_LT(std::abs(r(7, 7)), 1e-14);
}

TEST(QrKernels, PassOnWhatIsNoNumber) {
  const PanelParameters p{0, 0, 8};
  std::mt19937_64 random(9);
  GuardedTile a(40, 20);
  GuardedTile r(20, 20);
  GuardedTile t(8, 20);
  a.fill_random(random);
  a(11, 4) = std::numeric_limits<double>::quiet_NaN();
  ASSERT_EQ(run(kernel::geqrt, p, {a.view(), r.view(), t.view()}), 0);
  EXPECT_TRUE(std::isnan(r(4, 4)));
}

TEST(QrKernels, CopyRowsAndCopyTriangle_LeaveOtherRowsAlone) {
  std::mt19937_64 random(9);
  GuardedTile from(12, 5);
  GuardedTile before(12, 5);
  from.fill_random(random);
  before.fill_random(random);
  for (const bool triangle : {false, true}) {
    GuardedTile to(12, 5);
    to.copy_from(before);
    ASSERT_EQ(run(triangle ? kernel::copy_triangle : kernel::copy_rows, PanelParameters{0, 3, 5},
                  {to.view(), from.view()}),
              0);
    for (std::int64_t j = 0; j < 5; ++j) {
      for (std::int64_t i = 0; i < 12; ++i) {
        const bool inside = i >= 3 && i < 8;
        const double taken = triangle && i - 3 > j ? 0.0 : from(i, j);
        ASSERT_EQ(to(i, j), inside ? taken : before(i, j));
      }
    }
  }
}

TEST(QrKernels, HaveTheSameFunctionOnTheHostAndOnEmulatedDevices) {
  for (const Kernel* k : {&kernel::geqrt, &kernel::unmqr, &kernel::unmqr_back, &kernel::tsqrt,
                          &kernel::tsmqr, &kernel::tsmqr_back, &kernel::ttqrt, &kernel::ttmqr,
                          &kernel::ttmqr_back, &kernel::copy_rows, &kernel::copy_triangle}) {
    EXPECT_NE(k->host, nullptr) << k->name;
    EXPECT_EQ(k->host, k->emulated) << k->name;
  }
}

}  // namespace
}  // namespace heddle::test
