#include "kernels/cpu/micro/micro.hpp"

#include <cstddef>
#include <gtest/gtest.h>
#include <random>
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

TEST(MicroKernels, OfferTheWidestSetLast) {
  const auto tables = micro_kernels();
  EXPECT_EQ(best_micro_kernels(), tables.empty() ? nullptr : tables.back());
}

}  // namespace
}  // namespace heddle::test
