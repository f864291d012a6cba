#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/blas.hpp"
#include "kernels/kernels.hpp"
#include "tests/kernels/cuda_fixture.hpp"
#include "tests/kernels/guarded_tile.hpp"
#include "tests/kernels/large_pieces.hpp"

// The CUDA definitions of the kernels of solves and products, against the host's.

namespace heddle::test {
namespace {

class LoadBlas : public ::testing::Environment {
 public:
  void SetUp() override { load_blas({.core_type = "", .tile_kernels = ""}); }
};
const auto* const load_blas_first = ::testing::AddGlobalTestEnvironment(new LoadBlas);

class CudaSolve : public CudaKernels {
 protected:
  /// On small and on large shapes.
  static void for_all_shapes(const std::function<void(const Shape&, std::mt19937_64&)>& body) {
    for_shapes(body);
    if (!HasFatalFailure()) for_large_shapes(body);
  }
  /// On all shapes, with numbers of right-hand sides that kernels of their own take at once, in
  /// several groups, and that cuBLAS takes.
  static void for_sides(
      const std::function<void(const Shape&, std::int64_t, std::mt19937_64&)>& body) {
    using Sides = std::vector<std::int64_t>;
    for_all_shapes([&](const Shape& s, std::mt19937_64& random) {
      for (const std::int64_t sides : s.rows < 512 ? Sides{0, 1, 2, 3, 8, 20, 33} : Sides{1, 33}) {
        SCOPED_TRACE("right-hand sides: " + std::to_string(sides));
        body(s, sides, random);
        if (HasFatalFailure()) return;
      }
    });
  }
};

TEST_F(CudaSolve, LowerPiecesSolveAsTheHostDoes) {
  for_sides([&](const Shape& s, std::int64_t sides, std::mt19937_64& random) {
    GuardedTile l(s.rows, s.w);
    fill_lower_piece(l, s.offset, random);
    for (const Kernel* k : {&kernel::solve_lower, &kernel::solve_lower_transposed}) {
      GuardedTile x(s.rows, sides);
      x.fill_random(random);
      ASSERT_NO_FATAL_FAILURE(expect_like_host(*k, k->cuda, kernel::PieceParameters{s.offset},
                                               {&x, &l}, 1, tolerance(s.rows)));
    }
  });
}

TEST_F(CudaSolve, UpperPiecesSolveAsTheHostDoes) {
  for_sides([&](const Shape& s, std::int64_t sides, std::mt19937_64& random) {
    GuardedTile u(s.rows, s.w);
    fill_upper_piece(u, s.offset, random);
    GuardedTile x(s.rows, sides);
    x.fill_random(random);
    ASSERT_NO_FATAL_FAILURE(expect_like_host(kernel::solve_upper, kernel::solve_upper.cuda,
                                             kernel::PieceParameters{s.offset}, {&x, &u}, 1,
                                             tolerance(s.rows)));
  });
}

TEST_F(CudaSolve, ManyStreamsSolveAtOnce) {
  constexpr std::int64_t n = 2000;
  constexpr std::int64_t sides = 3;
  std::mt19937_64 random(11);
  GuardedTile l(n, n);
  fill_lower_piece(l, 0, random);
  const DeviceTile triangle(l);
  GuardedTile b(n, sides);
  b.fill_random(random);
  GuardedTile expected(n, sides);
  expected.copy_from(b);
  ASSERT_NO_FATAL_FAILURE(
      run_cuda_twice(kernel::solve_lower.cuda, kernel::PieceParameters{0}, {&expected, &l}, 1));
  constexpr std::size_t streams = 24;  // more thread blocks than a GPU has multiprocessors
  std::vector<std::unique_ptr<DeviceTile>> solutions;
  for (std::size_t k = 0; k < streams; ++k) solutions.push_back(std::make_unique<DeviceTile>(b));
  std::vector<OtherStream> others(streams);
  for (std::size_t k = 0; k < streams; ++k) {
    others[k].start(kernel::solve_lower.cuda, kernel::PieceParameters{0},
                    {solutions[k]->view(), triangle.view()});
  }
  for (OtherStream& other : others) ASSERT_EQ(other.finish(), 0);
  for (const auto& solution : solutions) {
    GuardedTile result(n, sides);
    solution->fetch(result);
    ASSERT_TRUE(result.same_bits(expected));
  }
}

TEST_F(CudaSolve, ProductsAddOrOverwriteAsTheHostDoes) {
  for_sides([&](const Shape& s, std::int64_t sides, std::mt19937_64& random) {
    for_products(s.offset, all_terms, [&](const kernel::ProductParameters& parameters) {
      GuardedTile a(s.n, s.w);
      GuardedTile x(s.rows, sides);
      GuardedTile p(s.n, sides);
      for (GuardedTile* tile : {&a, &x, &p}) tile->fill_random(random);
      if (parameters.term != kernel::Term::square) {
        if (parameters.accumulate == 0 && s.n > 0 && sides > 0) {
          p(s.n - 1, 0) = std::numeric_limits<double>::quiet_NaN();  // to be overwritten
        }
        ASSERT_NO_FATAL_FAILURE(expect_like_host(kernel::product, kernel::product.cuda, parameters,
                                                 {&p, &a, &x}, 1, tolerance(s.w)));
      }
      ASSERT_NO_FATAL_FAILURE(expect_like_host(kernel::product_transposed,
                                               kernel::product_transposed.cuda, parameters,
                                               {&x, &a, &p}, 1, tolerance(s.n)));
    });
  });
}

TEST_F(CudaSolve, TallTilesMultiplyAsTheHostDoes) {
  std::mt19937_64 random(13);
  for (const std::int64_t rows : {4096, 4097, 9001}) {
    for (const std::int64_t sides : {1, 5, 33}) {
      SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(sides) + " sides");
      for_products(2, all_terms, [&](const kernel::ProductParameters& parameters) {
        GuardedTile a(rows, 37);
        GuardedTile x(rows, sides);
        GuardedTile p(40, sides);
        for (GuardedTile* tile : {&a, &x, &p}) tile->fill_random(random);
        ASSERT_NO_FATAL_FAILURE(expect_like_host(kernel::product_transposed,
                                                 kernel::product_transposed.cuda, parameters,
                                                 {&p, &a, &x}, 1, tolerance(rows)));
      });
    }
  }
}

TEST_F(CudaSolve, SymmetricProductsReadTheLowerPartAlone) {
  for_sides([&](const Shape& s, std::int64_t sides, std::mt19937_64& random) {
    for_products(s.offset, terms, [&](const kernel::ProductParameters& parameters) {
      GuardedTile a(s.rows, s.w);
      a.fill_random(random);
      for (std::int64_t j = 0; j < s.w; ++j) {
        for (std::int64_t i = 0; i < s.offset + j; ++i) {
          a(i, j) = std::numeric_limits<double>::quiet_NaN();
        }
      }
      GuardedTile x(s.rows, sides);
      GuardedTile p(s.rows, sides);
      x.fill_random(random);
      p.fill_random(random);
      ASSERT_NO_FATAL_FAILURE(expect_like_host(kernel::product_symmetric,
                                               kernel::product_symmetric.cuda, parameters,
                                               {&p, &a, &x}, 1, tolerance(s.rows)));
    });
  });
}

TEST_F(CudaSolve, SubtractAndCopyGiveTheHostsBits) {
  for_all_shapes([&](const Shape& s, std::mt19937_64& random) {
    GuardedTile from(s.rows, s.w);
    from.fill_random(random);
    for (const Kernel* k : {&kernel::subtract, &kernel::copy}) {
      GuardedTile to(s.rows, s.w);
      to.fill_random(random);
      ASSERT_NO_FATAL_FAILURE(expect_like_host(*k, k->cuda, 0, {&to, &from}, 1, 0));
    }
  });
}

}  // namespace
}  // namespace heddle::test
