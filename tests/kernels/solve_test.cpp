#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "kernels/kernels.hpp"
#include "tests/kernels/guarded_tile.hpp"
#include "tests/kernels/pieces.hpp"

// Built twice, see cholesky_test.cpp, which in the same program loads OpenBLAS.

namespace heddle::test {
namespace {

TEST(SolveKernels, HaveTheSameFunctionOnTheHostAndOnEmulatedDevices) {
  for (const Kernel* k : {&kernel::solve_lower, &kernel::solve_lower_transposed,
                          &kernel::solve_upper, &kernel::product, &kernel::product_transposed,
                          &kernel::product_symmetric, &kernel::subtract, &kernel::copy}) {
    EXPECT_NE(k->host, nullptr) << k->name;
    EXPECT_EQ(k->host, k->emulated) << k->name;
  }
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

TEST(SolveUpper, UndoesTheProductWithThePiece) {
  for_shapes([](const Shape& s, std::mt19937_64& random) {
    const std::int64_t nrhs = std::min<std::int64_t>(s.n, 20);
    GuardedTile u(s.rows, s.w);
    fill_upper_piece(u, s.offset, random);
    GuardedTile expected(s.rows, nrhs);
    expected.fill_random(random);
    GuardedTile x(s.rows, nrhs);
    x.copy_from(expected);
    // x = expected with the piece's columns applied: backward substitution takes them out again.
    for (std::int64_t r = 0; r < nrhs; ++r) {
      for (std::int64_t i = 0; i < s.offset + s.w; ++i) {
        const std::int64_t diagonal = i - s.offset;
        double sum = diagonal >= 0 ? 0 : x(i, r);
        for (std::int64_t k = std::max<std::int64_t>(0, diagonal); k < s.w; ++k) {
          sum += u(i, k) * expected(s.offset + k, r);
        }
        x(i, r) = sum;
      }
    }
    run_twice(kernel::solve_upper, kernel::PieceParameters{s.offset}, x, {u.view()});
    expect_close(x, expected, 100 * epsilon * (static_cast<double>(s.rows) + 1));
  });
}

TEST(Product, MultipliesWithTheRowsOfThePiece) {
  for_shapes([](const Shape& s, std::mt19937_64& random) {
    const std::int64_t nrhs = std::min<std::int64_t>(s.n, 20);
    for_products(s.offset, terms, [&](const kernel::ProductParameters& parameters) {
      GuardedTile a(s.n, s.w);
      GuardedTile x(s.rows, nrhs);
      GuardedTile p(s.n, nrhs);
      for (GuardedTile* tile : {&a, &x, &p}) tile->fill_random(random);
      GuardedTile expected(s.n, nrhs);
      if (parameters.accumulate != 0) expected.copy_from(p);
      for (std::int64_t r = 0; r < nrhs; ++r) {
        for (std::int64_t k = 0; k < s.w; ++k) {
          for (std::int64_t i = 0; i < s.n; ++i) {
            expected(i, r) += value_of(parameters.term, a(i, k), x(s.offset + k, r));
          }
        }
      }
      run_twice(kernel::product, parameters, p, {a.view(), x.view()});
      expect_close(p, expected, 10 * epsilon * (static_cast<double>(s.w) + 1));
    });
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
    for_products(s.offset, all_terms, [&](const kernel::ProductParameters& parameters) {
      GuardedTile a(s.n, s.w);
      GuardedTile x(s.n, nrhs);
      GuardedTile p(s.rows, nrhs);
      for (GuardedTile* tile : {&a, &x, &p}) tile->fill_random(random);
      GuardedTile expected(s.rows, nrhs);
      expected.copy_from(p);
      for (std::int64_t r = 0; r < nrhs; ++r) {
        for (std::int64_t k = 0; k < s.w; ++k) {
          double sum = parameters.accumulate != 0 ? p(s.offset + k, r) : 0;
          for (std::int64_t i = 0; i < s.n; ++i) sum += value_of(parameters.term, a(i, k), x(i, r));
          expected(s.offset + k, r) = sum;
        }
      }
      run_twice(kernel::product_transposed, parameters, p, {a.view(), x.view()});
      expect_close(p, expected, 10 * epsilon * (static_cast<double>(s.n) + 1));
    });
  });
}

class ProductSymmetric : public ::testing::TestWithParam<kernel::Term> {};
INSTANTIATE_TEST_SUITE_P(Terms, ProductSymmetric, ::testing::ValuesIn(terms));

TEST_P(ProductSymmetric, GivesTheFullProductOverThePiecesOfATile) {
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
            expected(i, r) += value_of(GetParam(), piece(i, j), x(offset + j, r));
            if (i != offset + j) {
              expected(offset + j, r) += value_of(GetParam(), piece(i, j), x(i, r));
            }
          }
        }
      }
      const kernel::ProductParameters parameters{offset, offset == 0 ? 0 : 1, GetParam()};
      run_twice(kernel::product_symmetric, parameters, p, {piece.view(), x.view()});
      offset += w;
    }
    expect_close(p, expected, 10 * epsilon * (static_cast<double>(rows) + 1));
  }
}

TEST(ProductsOfMagnitudesAndSquares, AreNotANumberWhereAnElementIsNone) {
  constexpr std::int64_t n = 20;
  GuardedTile a(n, n);
  GuardedTile ones(n, 1);
  for (std::int64_t i = 0; i < n; ++i) ones(i, 0) = 1;
  a(11, 5) = std::numeric_limits<double>::quiet_NaN();
  const auto rows_without_number = [&](const Kernel& k, kernel::Term term) {
    GuardedTile p(n, 1);
    run(k, kernel::ProductParameters{0, 0, term}, {p.view(), a.view(), ones.view()});
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < n; ++i) {
      if (std::isnan(p(i, 0))) rows.push_back(i);
    }
    return rows;
  };
  using Rows = std::vector<std::int64_t>;
  EXPECT_EQ(rows_without_number(kernel::product, kernel::Term::magnitude), Rows{11});
  EXPECT_EQ(rows_without_number(kernel::product_transposed, kernel::Term::magnitude), Rows{5});
  EXPECT_EQ(rows_without_number(kernel::product_transposed, kernel::Term::square), Rows{5});
  EXPECT_EQ(rows_without_number(kernel::product_symmetric, kernel::Term::magnitude), (Rows{5, 11}));
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

TEST(SolveKernels, AbortOnShapesThatDoNotMatch) {
  GuardedTile a(4, 4);
  GuardedTile b(5, 4);
  EXPECT_DEATH(run(kernel::subtract, 0, {a.view(), b.view()}), "4 x 4 and 5 x 4");
  EXPECT_DEATH(run(kernel::solve_upper, kernel::PieceParameters{1}, {a.view(), a.view()}),
               "rows \\[1, 5\\) of 4");
}

}  // namespace
}  // namespace heddle::test
