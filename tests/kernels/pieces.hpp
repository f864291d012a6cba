#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"
#include "tests/kernels/guarded_tile.hpp"

/// Shapes of pieces of diagonal tiles (kernels/kernels.hpp), and what tests on them share.
namespace heddle::test {

inline constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// One case: a tile of `rows`, a piece of `w` columns at `offset`, another extent `n`.
struct Shape {
  std::int64_t rows;
  std::int64_t w;
  std::int64_t offset;
  std::int64_t n;
};

inline std::string shape_name(const Shape& s) {
  return "rows " + std::to_string(s.rows) + " w " + std::to_string(s.w) + " offset " +
         std::to_string(s.offset) + " n " + std::to_string(s.n);
}

/// Corners, then random ones from a fixed seed.
inline std::vector<Shape> shapes() {
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

/// Calls `body` for every shape with a fresh generator, the failing shape in the messages.
inline void for_shapes(const std::function<void(const Shape&, std::mt19937_64&)>& body) {
  std::uint64_t seed = 1;
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape_name(shape));
    std::mt19937_64 random(seed++);
    body(shape, random);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

inline void expect_close(const GuardedTile& actual, const GuardedTile& expected, double tolerance) {
  for (std::int64_t j = 0; j < actual.columns(); ++j) {
    for (std::int64_t i = 0; i < actual.rows(); ++i) {
      ASSERT_NEAR(actual(i, j), expected(i, j), tolerance) << "at (" << i << ", " << j << ")";
    }
  }
}

/// A piece with a well-conditioned lower triangle at row `offset`, zeros above, random below.
inline void fill_lower_piece(GuardedTile& tile, std::int64_t offset, std::mt19937_64& random) {
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

/// A piece with a well-conditioned upper triangle at row `offset`, random above, NaN below, where
/// nobody may read.
inline void fill_upper_piece(GuardedTile& tile, std::int64_t offset, std::mt19937_64& random) {
  tile.fill_random(random);
  const double size = static_cast<double>(tile.columns()) + 1;
  for (std::int64_t j = 0; j < tile.columns(); ++j) {
    for (std::int64_t i = 0; i < tile.rows(); ++i) {
      double& value = tile(i, j);
      value = i == offset + j ? 2 + std::abs(value) : value / size;
      if (i > offset + j) value = std::numeric_limits<double>::quiet_NaN();
    }
  }
}

/// `inverses` holds the inverse blocks (kernels/kernels.hpp) of the piece `l`: each times its
/// block of L11 is the identity within `tolerance` times the block's width, and the rest is zero.
inline void expect_inverse_blocks(const GuardedTile& l, std::int64_t offset,
                                  const GuardedTile& inverses, double tolerance) {
  const std::int64_t w = l.columns();
  for (std::int64_t j = 0; j < w; ++j) {
    const std::int64_t begin = j / inverses.rows() * inverses.rows();
    const std::int64_t count = std::min(inverses.rows(), w - begin);
    std::vector<double> column(static_cast<std::size_t>(count));
    for (std::int64_t k = 0; k < inverses.rows(); ++k) {
      if (k < j - begin || k >= count) {
        ASSERT_EQ(inverses(k, j), 0) << "at (" << k << ", " << j << ")";
        continue;
      }
      for (std::int64_t i = k; i < count; ++i) {
        column[static_cast<std::size_t>(i)] += l(offset + begin + i, begin + k) * inverses(k, j);
      }
    }
    for (std::int64_t i = 0; i < count; ++i) {
      ASSERT_NEAR(column[static_cast<std::size_t>(i)], i == j - begin ? 1 : 0,
                  tolerance * static_cast<double>(count + 1))
          << "at (" << i << ", " << j << ") of L times its inverse";
    }
  }
}

/// What products add up (kernels/kernels.hpp).
inline double value_of(kernel::Term term, double a, double x) {
  if (term == kernel::Term::magnitude) return std::abs(a) * x;
  return term == kernel::Term::square ? a * x * (a * x) : a * x;
}

/// Calls `body` for adding and overwriting, with each of `terms`.
inline void for_products(std::int64_t offset, const std::vector<kernel::Term>& terms,
                         const std::function<void(const kernel::ProductParameters&)>& body) {
  for (const kernel::Term term : terms) {
    for (const std::int64_t accumulate : {0, 1}) {
      SCOPED_TRACE("term " + std::to_string(static_cast<int>(term)) + " accumulate " +
                   std::to_string(accumulate));
      body({offset, accumulate, term});
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

inline const std::vector<kernel::Term> terms{kernel::Term::product, kernel::Term::magnitude};
inline const std::vector<kernel::Term> all_terms{kernel::Term::product, kernel::Term::magnitude,
                                                 kernel::Term::square};

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

}  // namespace heddle::test
