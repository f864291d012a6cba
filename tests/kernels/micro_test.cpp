#include "kernels/cpu/micro/micro.hpp"

#include <cstddef>
#include <gtest/gtest.h>
#include <random>
#include <utility>
#include <vector>

#include "tests/kernels/guarded_tile.hpp"

namespace heddle::test {
namespace {

TEST(MicroKernels, GiveTheSameBitsForAllInstructionSets) {
  const auto tables = micro_kernels();
  if (tables.size() < 2) GTEST_SKIP() << "this processor has fewer than two instruction sets";
  std::mt19937_64 random(77);
  const auto size = [&](std::uint64_t end) { return static_cast<std::int64_t>(random() % end); };
  for (int repeat = 0; repeat < 60; ++repeat) {
    const std::int64_t m = size(150);
    const std::int64_t n = size(static_cast<std::uint64_t>(m) + 1);
    const std::int64_t k = size(400);
    SCOPED_TRACE(testing::Message() << m << " x " << n << ", depth " << k);
    GuardedTile a(m, k);
    GuardedTile b(n, k);
    GuardedTile l(n, n);
    GuardedTile start(m, n);
    for (GuardedTile* tile : {&a, &b, &l, &start}) tile->fill_random(random);
    for (std::int64_t j = 0; j < n; ++j) l(j, j) = 50;

    const auto compare = [&](auto operation) {
      GuardedTile first(m, n);
      first.copy_from(start);
      operation(*tables.front(), first.view());
      for (const MicroKernels* table : tables.subspan(1)) {
        GuardedTile other(m, n);
        other.copy_from(start);
        operation(*table, other.view());
        ASSERT_TRUE(first.same_bits(other)) << table->name;
      }
    };
    compare([&](const MicroKernels& table, const TileView& c) {
      table.update(m, n, k, a.view().data, a.view().leading, b.view().data, b.view().leading,
                   c.data, c.leading);
    });
    compare([&](const MicroKernels& table, const TileView& c) {
      table.update_lower(m, n, k, a.view().data, a.view().leading, c.data, c.leading);
    });
    GuardedTile tall(k, m);
    GuardedTile beside(k, n);
    tall.fill_random(random);
    beside.fill_random(random);
    compare([&](const MicroKernels& table, const TileView& c) {
      table.inner(m, n, k, 0.5, tall.view().data, tall.view().leading, beside.view().data,
                  beside.view().leading, c.data, c.leading);
    });
    GuardedTile x(m, 1);
    x.fill_random(random);
    compare([&](const MicroKernels& table, const TileView& c) {
      std::vector<double> sums(static_cast<std::size_t>(n));
      table.dots(m, n, x.view().data, c.data, c.leading, sums.data());
      table.subtract_multiples(m, n, x.view().data, sums.data(), c.data, c.leading);
    });
    compare([&](const MicroKernels& table, const TileView& c) {
      table.solve(m, n, l.view().data, l.view().leading, c.data, c.leading);
    });
  }
}

TEST(MicroKernels, InnerProductsAreThoseOfThePlainLoop) {
  std::mt19937_64 random(78);
  for (const MicroKernels* table : micro_kernels()) {
    for (const std::int64_t k : {0, 1, 7, 8, 9, 511, 512, 513, 1400}) {
      for (const auto& [m, n] : {std::pair{0, 3}, {1, 1}, {5, 13}, {16, 12}, {33, 7}}) {
        SCOPED_TRACE(testing::Message() << table->name << ": " << m << " x " << n << ", " << k);
        GuardedTile a(k, m);
        GuardedTile b(k, n);
        GuardedTile c(m, n);
        for (GuardedTile* tile : {&a, &b, &c}) tile->fill_random(random);
        GuardedTile before(m, n);
        before.copy_from(c);
        table->inner(m, n, k, -2, a.view().data, a.view().leading, b.view().data, b.view().leading,
                     c.view().data, c.view().leading);
        for (std::int64_t j = 0; j < n; ++j) {
          for (std::int64_t i = 0; i < m; ++i) {
            double sum = 0;
            for (std::int64_t p = 0; p < k; ++p) sum += a(p, i) * b(p, j);
            ASSERT_NEAR(c(i, j), before(i, j) - 2 * sum, 1e-12) << i << ", " << j;
          }
        }
      }
    }
  }
}

TEST(MicroKernels, OfferTheWidestSetLast) {
  const auto tables = micro_kernels();
  EXPECT_EQ(best_micro_kernels(), tables.empty() ? nullptr : tables.back());
}

}  // namespace
}  // namespace heddle::test
