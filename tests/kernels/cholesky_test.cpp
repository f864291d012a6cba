#include <algorithm>
#include <cmath>
#include <cstddef>
#include <dlfcn.h>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/cpu/blas.hpp"
#include "kernels/kernels.hpp"
#include "tests/kernels/guarded_tile.hpp"
#include "tests/kernels/pieces.hpp"

// Built twice: with heddle's own tile kernels and with OpenBLAS alone (HEDDLE_TEST_TILE_KERNELS).

namespace heddle::test {
namespace {

class LoadBlas : public ::testing::Environment {
 public:
  void SetUp() override { load_blas({.core_type = "", .tile_kernels = HEDDLE_TEST_TILE_KERNELS}); }
};
const auto* const load_blas_first = ::testing::AddGlobalTestEnvironment(new LoadBlas);

TEST(CholeskyKernels, HaveTheSameFunctionOnTheHostAndOnEmulatedDevices) {
  for (const Kernel* k : {&kernel::potrf, &kernel::trsm, &kernel::gsmm, &kernel::syrk}) {
    EXPECT_NE(k->host, nullptr) << k->name;
    EXPECT_EQ(k->host, k->emulated) << k->name;
  }
}

TEST(Potrf, FactorsThePieceSoThatTheProductGivesTheMatrix) {
  for_shapes([](const Shape& s, std::mt19937_64& random) {
    GuardedTile factor(s.rows, s.w);
    fill_lower_piece(factor, s.offset, random);
    GuardedTile tile(s.rows, s.w);
    for (std::int64_t j = 0; j < s.w; ++j) {
      for (std::int64_t i = s.offset + j; i < s.rows; ++i) {
        for (std::int64_t k = 0; k <= j; ++k) tile(i, j) += factor(i, k) * factor(s.offset + j, k);
      }
    }
    run_twice(kernel::potrf, kernel::PieceParameters{s.offset}, tile, {});
    expect_close(tile, factor, 100 * epsilon * (static_cast<double>(s.w) + 1));
  });
}

TEST(Potrf, LeavesTheUpperPartAlone) {
  std::mt19937_64 random(3);
  GuardedTile tile(50, 20);
  fill_lower_piece(tile, 13, random);
  for (std::int64_t j = 0; j < 20; ++j) {
    for (std::int64_t i = 0; i < 13 + j; ++i) tile(i, j) = 1000 + static_cast<double>(i);
    tile(13 + j, j) = 30;
  }
  ASSERT_EQ(run(kernel::potrf, kernel::PieceParameters{13}, {tile.view()}), 0);
  for (std::int64_t j = 0; j < 20; ++j) {
    for (std::int64_t i = 0; i < 13 + j; ++i) {
      ASSERT_EQ(tile(i, j), 1000 + static_cast<double>(i)) << i << ", " << j;
    }
  }
}

TEST(Potrf, ReportsTheSameInfoAsLapackForMatricesThatAreNotPositiveDefinite) {
  ASSERT_FALSE(blas().core_name.empty());
  void* library = ::dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  const auto dpotrf =
      reinterpret_cast<void (*)(const char*, const int*, double*, const int*, int*)>(
          ::dlsym(library, "dpotrf_"));
  ASSERT_NE(dpotrf, nullptr);
  std::mt19937_64 random(11);
  for (const std::int64_t w : {1, 2, 7, 16, 17, 31, 64, 97, 150, 320}) {
    for (int repeat = 0; repeat < 8; ++repeat) {
      const auto bad = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(w));
      for (const double pivot : {-3.0, 0.0, std::numeric_limits<double>::quiet_NaN()}) {
        GuardedTile tile(w + 9, w);
        for (std::int64_t j = 0; j < w; ++j) {
          for (std::int64_t i = j; i < w; ++i) {
            tile(5 + i, j) = (i == j ? 2.0 : 0.5 / static_cast<double>(w + i - j));
          }
        }
        // A zero pivot must stay zero: nothing may be subtracted from it.
        for (std::int64_t k = 0; k < bad; ++k) tile(5 + bad, k) = 0;
        tile(5 + bad, bad) = pivot;
        GuardedTile reference(w, w);
        for (std::int64_t j = 0; j < w; ++j) {
          for (std::int64_t i = 0; i < w; ++i) reference(i, j) = tile(5 + i, j);
        }
        const int n = static_cast<int>(w);
        const int leading = static_cast<int>(reference.view().leading);
        int info = 0;
        dpotrf("L", &n, reference.view().data, &leading, &info);
        const std::int64_t mine = run(kernel::potrf, kernel::PieceParameters{5}, {tile.view()});
        EXPECT_EQ(mine, bad + 1) << "w " << w << " pivot " << pivot;
        // OpenBLAS, unlike reference LAPACK, lets a pivot that is not a number pass.
        if (!std::isnan(pivot)) {
          EXPECT_EQ(mine, info) << "w " << w << " pivot " << pivot;
        }
      }
    }
  }
}

TEST(Potrf, GivesTheInversesOfTheDiagonalBlocksWhenTheyAreAskedFor) {
  for_shapes([](const Shape& s, std::mt19937_64& random) {
    GuardedTile original(s.rows, s.w);
    fill_lower_piece(original, s.offset, random);
    for (std::int64_t j = 0; j < s.w; ++j) original(s.offset + j, j) += 3;
    GuardedTile without(s.rows, s.w);
    without.copy_from(original);
    ASSERT_EQ(run(kernel::potrf, kernel::PieceParameters{s.offset}, {without.view()}), 0);
    for (const std::int64_t inner : {std::int64_t{1}, std::int64_t{5}, std::int64_t{64}, s.w + 2}) {
      GuardedTile l(s.rows, s.w);
      l.copy_from(original);
      GuardedTile inverses(inner, s.w);
      inverses.fill_random(random);
      ASSERT_EQ(run(kernel::potrf, kernel::PieceParameters{s.offset}, {l.view(), inverses.view()}),
                0);
      ASSERT_TRUE(l.same_bits(without));
      expect_inverse_blocks(l, s.offset, inverses, 100 * epsilon);
    }
  });
}

TEST(Trsm, GivesTheSameBitsWithInverseBlocksAndWithout) {
  std::mt19937_64 random(9);
  GuardedTile l(90, 70);
  fill_lower_piece(l, 15, random);
  GuardedTile inverses(32, 70);
  inverses.fill_random(random);
  GuardedTile x(41, 70);
  x.fill_random(random);
  GuardedTile again(41, 70);
  again.copy_from(x);
  ASSERT_EQ(run(kernel::trsm, kernel::PieceParameters{15}, {x.view(), l.view()}), 0);
  ASSERT_EQ(
      run(kernel::trsm, kernel::PieceParameters{15}, {again.view(), l.view(), inverses.view()}), 0);
  EXPECT_TRUE(x.same_bits(again));
}

TEST(Trsm, DividesByTheTransposedTriangleOfThePiece) {
  for_shapes([](const Shape& s, std::mt19937_64& random) {
    GuardedTile l(s.rows, s.w);
    fill_lower_piece(l, s.offset, random);
    GuardedTile solution(s.n, s.w);
    solution.fill_random(random);
    GuardedTile x(s.n, s.w);
    for (std::int64_t j = 0; j < s.w; ++j) {
      for (std::int64_t k = 0; k <= j; ++k) {
        for (std::int64_t i = 0; i < s.n; ++i) x(i, j) += solution(i, k) * l(s.offset + j, k);
      }
    }
    run_twice(kernel::trsm, kernel::PieceParameters{s.offset}, x, {l.view()});
    expect_close(x, solution, 100 * epsilon * (static_cast<double>(s.w) + 1));
  });
}

TEST(Gsmm, SubtractsTheProductWithTheChosenRows) {
  for_shapes([](const Shape& s, std::mt19937_64& random) {
    // tile0 n x w, tile1 n x depth, tile2 rows x depth with w of its rows from `offset`.
    for (const std::int64_t depth : {std::int64_t{0}, s.w, s.n + 3, std::int64_t{211}}) {
      GuardedTile c(s.n, s.w);
      GuardedTile a(s.n, depth);
      GuardedTile b(s.rows, depth);
      for (GuardedTile* tile : {&c, &a, &b}) tile->fill_random(random);
      GuardedTile expected(s.n, s.w);
      expected.copy_from(c);
      for (std::int64_t j = 0; j < s.w; ++j) {
        for (std::int64_t k = 0; k < depth; ++k) {
          for (std::int64_t i = 0; i < s.n; ++i) expected(i, j) -= a(i, k) * b(s.offset + j, k);
        }
      }
      run_twice(kernel::gsmm, kernel::UpdateParameters{s.offset}, c, {a.view(), b.view()});
      expect_close(c, expected, 10 * epsilon * (static_cast<double>(depth) + 1));
    }
  });
}

TEST(Gsmm, GivesTheSameBitsForLeadingDimensionsThatCollideInTheCaches) {
  std::mt19937_64 random(5);
  GuardedTile a(512, 200, 0);
  GuardedTile b(512, 200, 0);
  GuardedTile a_apart(512, 200, 5);
  GuardedTile b_apart(512, 200, 5);
  a.fill_random(random);
  b.fill_random(random);
  a_apart.copy_from(a);
  b_apart.copy_from(b);
  GuardedTile c(512, 512);
  GuardedTile again(512, 512);
  run(kernel::gsmm, kernel::UpdateParameters{0}, {c.view(), a.view(), b.view()});
  run(kernel::gsmm, kernel::UpdateParameters{0}, {again.view(), a_apart.view(), b_apart.view()});
  EXPECT_TRUE(c.same_bits(again));
  GuardedTile lower(512, 512);
  GuardedTile lower_again(512, 512);
  run(kernel::syrk, kernel::PieceParameters{0}, {lower.view(), a.view()});
  run(kernel::syrk, kernel::PieceParameters{0}, {lower_again.view(), a_apart.view()});
  EXPECT_TRUE(lower.same_bits(lower_again));
}

TEST(Syrk, UpdatesTheLowerPartOfThePieceAndNothingAbove) {
  for_shapes([](const Shape& s, std::mt19937_64& random) {
    for (const std::int64_t depth : {std::int64_t{0}, s.n, std::int64_t{195}}) {
      GuardedTile c(s.rows, s.w);
      GuardedTile a(s.rows, depth);
      c.fill_random(random);
      a.fill_random(random);
      GuardedTile before(s.rows, s.w);
      before.copy_from(c);
      GuardedTile expected(s.rows, s.w);
      expected.copy_from(c);
      for (std::int64_t j = 0; j < s.w; ++j) {
        for (std::int64_t k = 0; k < depth; ++k) {
          for (std::int64_t i = s.offset + j; i < s.rows; ++i) {
            expected(i, j) -= a(i, k) * a(s.offset + j, k);
          }
        }
      }
      run_twice(kernel::syrk, kernel::PieceParameters{s.offset}, c, {a.view()});
      expect_close(c, expected, 10 * epsilon * (static_cast<double>(depth) + 1));
      for (std::int64_t j = 0; j < s.w; ++j) {
        for (std::int64_t i = 0; i < s.offset + j; ++i) ASSERT_EQ(c(i, j), before(i, j));
      }
    }
  });
}

TEST(CholeskyKernels, AbortOnShapesThatDoNotMatch) {
  GuardedTile a(4, 4);
  EXPECT_DEATH(run(kernel::potrf, kernel::PieceParameters{1}, {a.view()}), "piece of 4 columns");
  EXPECT_DEATH(run(kernel::trsm, kernel::PieceParameters{0}, {a.view()}), "1 tiles, 2 expected");
  GuardedTile none(0, 4);
  EXPECT_DEATH(run(kernel::potrf, kernel::PieceParameters{0}, {a.view(), none.view()}),
               "inverse blocks of 0 x 4");
}

}  // namespace
}  // namespace heddle::test
