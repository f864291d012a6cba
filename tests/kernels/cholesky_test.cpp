#include "kernels/cholesky.hpp"

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
#include "tests/kernels/guarded_tile.hpp"

// Built twice: with heddle's own tile kernels and with OpenBLAS alone (HEDDLE_TEST_TILE_KERNELS).

namespace heddle::test {
namespace {

class LoadBlas : public ::testing::Environment {
 public:
  void SetUp() override { load_blas({.core_type = "", .tile_kernels = HEDDLE_TEST_TILE_KERNELS}); }
};
const auto* const load_blas_first = ::testing::AddGlobalTestEnvironment(new LoadBlas);

constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// One case: a tile of `rows`, a piece of `w` columns at `offset`, another extent `n`.
struct Shape {
  std::int64_t rows;
  std::int64_t w;
  std::int64_t offset;
  std::int64_t n;
};

std::string shape_name(const Shape& s) {
  return "rows " + std::to_string(s.rows) + " w " + std::to_string(s.w) + " offset " +
         std::to_string(s.offset) + " n " + std::to_string(s.n);
}

/// Corners, then random ones from a fixed seed.
std::vector<Shape> shapes() {
  std::vector<Shape> result{
      {0, 0, 0, 0},      {1, 1, 0, 1},      {1, 0, 0, 1},       {1, 0, 1, 3},
      {5, 0, 2, 0},      {5, 5, 0, 1},      {8, 8, 0, 8},       {24, 24, 0, 24},
      {25, 8, 9, 31},    {32, 16, 16, 5},   {33, 32, 1, 48},    {64, 40, 24, 1},
      {96, 96, 0, 96},   {100, 33, 67, 17}, {130, 1, 129, 2},   {193, 193, 0, 7},
      {200, 64, 64, 96}, {257, 257, 0, 40}, {320, 300, 20, 33}, {509, 509, 0, 509}};
  std::mt19937_64 random(20240717);
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
  };
  for (int i = 0; i < 40; ++i) {
    const std::int64_t rows = 1 + below(140);
    const std::int64_t w = below(rows + 1);
    result.push_back({rows, w, below(rows - w + 1), below(90)});
  }
  return result;
}

using Test = ::testing::Test;

/// Calls `body` for every shape with a fresh generator, the failing shape in the messages.
void for_shapes(const std::function<void(const Shape&, std::mt19937_64&)>& body) {
  std::uint64_t seed = 1;
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape_name(shape));
    std::mt19937_64 random(seed++);
    body(shape, random);
    if (Test::HasFatalFailure()) return;
  }
}

void expect_close(const GuardedTile& actual, const GuardedTile& expected, double tolerance) {
  for (std::int64_t j = 0; j < actual.columns(); ++j) {
    for (std::int64_t i = 0; i < actual.rows(); ++i) {
      ASSERT_NEAR(actual(i, j), expected(i, j), tolerance) << "at (" << i << ", " << j << ")";
    }
  }
}

/// A piece with a well-conditioned lower triangle at row `offset`, zeros above, random below.
void fill_lower_piece(GuardedTile& tile, std::int64_t offset, std::mt19937_64& random) {
  tile.fill_random(random);
  const double size = static_cast<double>(tile.columns()) + 1;
  for (std::int64_t j = 0; j < tile.columns(); ++j) {
    for (std::int64_t i = 0; i < tile.rows(); ++i) {
      if (i < offset + j) {
        tile(i, j) = 0;
      } else if (i == offset + j) {
        tile(i, j) = 2 + std::abs(tile(i, j));
      } else {
        tile(i, j) /= size;
      }
    }
  }
}

/// Runs twice on equal inputs (and different leading dimensions); the results must agree in bits.
/// Returns the result in `output`.
template <class Parameters>
void run_twice(const Kernel& kernel, const Parameters& parameters, GuardedTile& output,
               const std::vector<TileView>& inputs) {
  GuardedTile again(output.rows(), output.columns(), 8);
  again.copy_from(output);
  for (GuardedTile* tile : {&output, &again}) {
    std::vector<TileView> tiles{tile->view()};
    tiles.insert(tiles.end(), inputs.begin(), inputs.end());
    ASSERT_EQ(run(kernel, parameters, tiles), 0);
  }
  ASSERT_TRUE(output.same_bits(again)) << kernel.name << " is not deterministic";
}

TEST(CholeskyKernels, HaveTheSameFunctionOnTheHostAndOnEmulatedDevices) {
  for (const Kernel* k :
       {&kernel::potrf, &kernel::trsm, &kernel::gsmm, &kernel::syrk, &kernel::solve_lower,
        &kernel::solve_lower_transposed, &kernel::product, &kernel::product_transposed,
        &kernel::product_symmetric, &kernel::subtract, &kernel::copy}) {
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

TEST(SolveLower, UndoesTheProductWithThePiece) {
  for_shapes([](const Shape& s, std::mt19937_64& random) {
    const std::int64_t nrhs = std::min<std::int64_t>(s.n, 20);
    GuardedTile l(s.rows, s.w);
    fill_lower_piece(l, s.offset, random);
    GuardedTile expected(s.rows, nrhs);
    expected.fill_random(random);
    GuardedTile x(s.rows, nrhs);
    x.copy_from(expected);
    // x = expected with the piece's columns applied: forward substitution takes them out again.
    for (std::int64_t r = 0; r < nrhs; ++r) {
      for (std::int64_t i = 0; i < s.rows; ++i) {
        double sum = i >= s.offset && i < s.offset + s.w ? 0 : x(i, r);
        for (std::int64_t k = 0; k < s.w; ++k) sum += l(i, k) * expected(s.offset + k, r);
        x(i, r) = sum;
      }
    }
    run_twice(kernel::solve_lower, kernel::PieceParameters{s.offset}, x, {l.view()});
    expect_close(x, expected, 100 * epsilon * (static_cast<double>(s.rows) + 1));
  });
}

TEST(SolveLowerTransposed, UndoesTheProductWithTheTransposedPiece) {
  for_shapes([](const Shape& s, std::mt19937_64& random) {
    const std::int64_t nrhs = std::min<std::int64_t>(s.n, 20);
    GuardedTile l(s.rows, s.w);
    fill_lower_piece(l, s.offset, random);
    GuardedTile expected(s.rows, nrhs);
    expected.fill_random(random);
    GuardedTile x(s.rows, nrhs);
    x.copy_from(expected);
    for (std::int64_t r = 0; r < nrhs; ++r) {
      for (std::int64_t k = 0; k < s.w; ++k) {
        double sum = 0;
        for (std::int64_t i = s.offset + k; i < s.rows; ++i) sum += l(i, k) * expected(i, r);
        x(s.offset + k, r) = sum;
      }
    }
    run_twice(kernel::solve_lower_transposed, kernel::PieceParameters{s.offset}, x, {l.view()});
    expect_close(x, expected, 100 * epsilon * (static_cast<double>(s.rows) + 1));
  });
}

TEST(Product, MultipliesWithTheRowsOfThePiece) {
  for_shapes([](const Shape& s, std::mt19937_64& random) {
    const std::int64_t nrhs = std::min<std::int64_t>(s.n, 20);
    for (const std::int64_t accumulate : {0, 1}) {
      GuardedTile a(s.n, s.w);
      GuardedTile x(s.rows, nrhs);
      GuardedTile p(s.n, nrhs);
      for (GuardedTile* tile : {&a, &x, &p}) tile->fill_random(random);
      GuardedTile expected(s.n, nrhs);
      if (accumulate != 0) expected.copy_from(p);
      for (std::int64_t r = 0; r < nrhs; ++r) {
        for (std::int64_t k = 0; k < s.w; ++k) {
          for (std::int64_t i = 0; i < s.n; ++i) expected(i, r) += a(i, k) * x(s.offset + k, r);
        }
      }
      run_twice(kernel::product, kernel::ProductParameters{s.offset, accumulate}, p,
                {a.view(), x.view()});
      expect_close(p, expected, 10 * epsilon * (static_cast<double>(s.w) + 1));
    }
  });
}

TEST(Product, OverwritesWhatIsNotANumber) {
  std::mt19937_64 random(1);
  GuardedTile a(4, 3);
  GuardedTile x(3, 2);
  GuardedTile p(4, 2);
  a.fill_random(random);
  x.fill_random(random);
  p(2, 1) = std::numeric_limits<double>::quiet_NaN();
  run(kernel::product, kernel::ProductParameters{0, 0}, {p.view(), a.view(), x.view()});
  EXPECT_FALSE(std::isnan(p(2, 1)));
}

TEST(ProductTransposed, AddsToTheRowsOfThePieceOnly) {
  for_shapes([](const Shape& s, std::mt19937_64& random) {
    const std::int64_t nrhs = std::min<std::int64_t>(s.n, 20);
    for (const std::int64_t accumulate : {0, 1}) {
      GuardedTile a(s.n, s.w);
      GuardedTile x(s.n, nrhs);
      GuardedTile p(s.rows, nrhs);
      for (GuardedTile* tile : {&a, &x, &p}) tile->fill_random(random);
      GuardedTile expected(s.rows, nrhs);
      expected.copy_from(p);
      for (std::int64_t r = 0; r < nrhs; ++r) {
        for (std::int64_t k = 0; k < s.w; ++k) {
          double sum = accumulate != 0 ? p(s.offset + k, r) : 0;
          for (std::int64_t i = 0; i < s.n; ++i) sum += a(i, k) * x(i, r);
          expected(s.offset + k, r) = sum;
        }
      }
      run_twice(kernel::product_transposed, kernel::ProductParameters{s.offset, accumulate}, p,
                {a.view(), x.view()});
      expect_close(p, expected, 10 * epsilon * (static_cast<double>(s.n) + 1));
    }
  });
}

TEST(ProductSymmetric, GivesTheFullProductOverThePiecesOfATile) {
  std::mt19937_64 random(8);
  for (const auto& [rows, widths] :
       std::vector<std::tuple<std::int64_t, std::vector<std::int64_t>>>{
           {1, {1}}, {7, {7}}, {20, {4, 4, 4, 8}}, {65, {16, 16, 33}}, {40, {0, 40}}}) {
    GuardedTile x(rows, 3);
    x.fill_random(random);
    GuardedTile p(rows, 3);
    p.fill_random(random);
    GuardedTile expected(rows, 3);
    std::int64_t offset = 0;
    for (const std::int64_t w : widths) {
      GuardedTile piece(rows, w);
      piece.fill_random(random);
      // What the kernel must not read would show.
      for (std::int64_t j = 0; j < w; ++j) {
        for (std::int64_t i = 0; i < offset + j; ++i) {
          piece(i, j) = std::numeric_limits<double>::quiet_NaN();
        }
      }
      for (std::int64_t j = 0; j < w; ++j) {
        for (std::int64_t i = offset + j; i < rows; ++i) {
          for (std::int64_t r = 0; r < 3; ++r) {
            expected(i, r) += piece(i, j) * x(offset + j, r);
            if (i != offset + j) expected(offset + j, r) += piece(i, j) * x(i, r);
          }
        }
      }
      const kernel::ProductParameters parameters{offset, offset == 0 && w > 0 ? 0 : 1};
      if (offset == 0 && w == 0) {
        run_twice(kernel::product_symmetric, kernel::ProductParameters{0, 0}, p,
                  {piece.view(), x.view()});
      } else {
        run_twice(kernel::product_symmetric, parameters, p, {piece.view(), x.view()});
      }
      offset += w;
    }
    expect_close(p, expected, 10 * epsilon * (static_cast<double>(rows) + 1));
  }
}

TEST(SubtractAndCopy, WorkElementByElement) {
  for_shapes([](const Shape& s, std::mt19937_64& random) {
    GuardedTile from(s.rows, s.w, 1);
    GuardedTile to(s.rows, s.w);
    from.fill_random(random);
    to.fill_random(random);
    GuardedTile expected(s.rows, s.w);
    for (std::int64_t j = 0; j < s.w; ++j) {
      for (std::int64_t i = 0; i < s.rows; ++i) expected(i, j) = to(i, j) - from(i, j);
    }
    ASSERT_EQ(run(kernel::subtract, 0, {to.view(), from.view()}), 0);
    ASSERT_TRUE(to.same_bits(expected));
    ASSERT_EQ(run(kernel::copy, 0, {to.view(), from.view()}), 0);
    ASSERT_TRUE(to.same_bits(from));
  });
}

TEST(CholeskyKernels, AbortOnShapesThatDoNotMatch) {
  GuardedTile a(4, 4);
  GuardedTile b(5, 4);
  EXPECT_DEATH(run(kernel::subtract, 0, {a.view(), b.view()}), "4 x 4 and 5 x 4");
  EXPECT_DEATH(run(kernel::potrf, kernel::PieceParameters{1}, {a.view()}), "piece of 4 columns");
  EXPECT_DEATH(run(kernel::trsm, kernel::PieceParameters{0}, {a.view()}), "1 tiles, 2 expected");
}

}  // namespace
}  // namespace heddle::test
