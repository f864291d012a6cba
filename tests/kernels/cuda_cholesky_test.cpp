#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/blas.hpp"
#include "kernels/cuda/factor.hpp"
#include "kernels/kernels.hpp"
#include "tests/kernels/cuda_fixture.hpp"
#include "tests/kernels/guarded_tile.hpp"
#include "tests/kernels/large_pieces.hpp"
#include "tests/kernels/pieces.hpp"

// The CUDA definitions of the kernels of Cholesky, against the host's.

namespace heddle::test {
namespace {

class LoadBlas : public ::testing::Environment {
 public:
  void SetUp() override { load_blas({.core_type = "", .tile_kernels = ""}); }
};
const auto* const load_blas_first = ::testing::AddGlobalTestEnvironment(new LoadBlas);

using kernel::cuda::FactorMethod;

/// The lower part of a piece of a positive definite matrix.
void fill_definite_piece(GuardedTile& tile, std::int64_t offset, std::mt19937_64& random) {
  fill_lower_piece(tile, offset, random);
  for (std::int64_t j = 0; j < tile.columns(); ++j) tile(offset + j, j) += 3;
}

class CudaPotrf : public CudaKernels, public ::testing::WithParamInterface<FactorMethod> {
 protected:
  [[nodiscard]] static Definition potrf() {
    return [](const CudaLaunch& launch) { kernel::cuda::potrf_by(GetParam(), launch); };
  }

  void expect_factor_like_host(const Shape& s, const std::vector<std::int64_t>& inners,
                               std::mt19937_64& random) {
    const kernel::PieceParameters parameters{s.offset};
    GuardedTile original(s.rows, s.w);
    fill_definite_piece(original, s.offset, random);
    GuardedTile plain(s.rows, s.w);
    plain.copy_from(original);
    ASSERT_NO_FATAL_FAILURE(
        expect_like_host(kernel::potrf, potrf(), parameters, {&plain}, 1, tolerance(s.w)));
    for (const std::int64_t inner : inners) {
      SCOPED_TRACE("inner " + std::to_string(inner));
      GuardedTile tile(s.rows, s.w);
      tile.copy_from(original);
      GuardedTile inverses(inner, s.w);
      inverses.fill_random(random);
      ASSERT_NO_FATAL_FAILURE(expect_like_host(kernel::potrf, potrf(), parameters,
                                               {&tile, &inverses}, 2, tolerance(s.w)));
      for (std::int64_t j = 0; j < s.w; ++j) {
        const std::int64_t begin = j / inner * inner;
        const std::int64_t count = std::min(inner, s.w - begin);
        for (std::int64_t i = 0; i < inner; ++i) {
          if (i >= j - begin && i < count) continue;
          ASSERT_EQ(inverses(i, j), 0) << "at (" << i << ", " << j << ") of the inverses";
        }
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Methods, CudaPotrf,
                         ::testing::Values(FactorMethod::own, FactorMethod::cusolver),
                         [](const auto& method) {
                           return method.param == FactorMethod::own ? "own" : "cusolver";
                         });

TEST_P(CudaPotrf, FactorsAndInvertsAsTheHostDoes) {
  for_shapes([&](const Shape& s, std::mt19937_64& random) {
    expect_factor_like_host(s, {1, 5, 64, 100, 128, s.w + 1}, random);
  });
}

TEST_P(CudaPotrf, FactorsAndInvertsLargePiecesAsTheHostDoes) {
  for_large_shapes([&](const Shape& s, std::mt19937_64& random) {
    expect_factor_like_host(s, {64, 192, 256, 512, 700, s.w}, random);
  });
}

/// One size for each way through the kernels: for tools that take hundreds of times the time.
TEST_P(CudaPotrf, FactorsAndInvertsOneOfEachSizeAsTheHostDoes) {
  std::mt19937_64 random(15);
  for (const std::int64_t w : {50, 130, 330}) {
    expect_factor_like_host({w + 3, w, 3, 0}, {100}, random);
  }
}

/// Wider than one launch of factor_square.
TEST_P(CudaPotrf, FactorsAndInvertsVeryLargePiecesAsTheHostDoes) {
  std::mt19937_64 random(12);
  expect_factor_like_host({2300, 2211, 50, 0}, {64, 512, 700}, random);
}

TEST_P(CudaPotrf, FactorsWhatIsVeryLargeOrSmall) {
  std::mt19937_64 random(13);
  const std::int64_t w = 200;
  GuardedTile original(w, w);
  fill_definite_piece(original, 0, random);
  GuardedTile expected(w, w);
  expected.copy_from(original);
  ASSERT_EQ(run(kernel::potrf, kernel::PieceParameters{0}, {expected.view()}), 0);
  for (const int exponent : {-240, 240}) {
    SCOPED_TRACE("times 4 to the power of " + std::to_string(exponent));
    GuardedTile tile(w, w);
    for (std::int64_t j = 0; j < w; ++j) {
      for (std::int64_t i = 0; i < w; ++i) tile(i, j) = std::ldexp(original(i, j), 2 * exponent);
    }
    ASSERT_NO_FATAL_FAILURE(run_cuda_twice(potrf(), kernel::PieceParameters{0}, {&tile}, 1));
    for (std::int64_t j = 0; j < w; ++j) {
      for (std::int64_t i = 0; i < w; ++i) tile(i, j) = std::ldexp(tile(i, j), -exponent);
    }
    // Above the diagonal both keep what the original has there, zeros.
    ASSERT_NO_FATAL_FAILURE(expect_close(tile, expected, tolerance(w)));
  }
}

/// Its CTAs wait for each other: they must not take each other's place.
TEST_P(CudaPotrf, FactorsOnManyStreamsAtOnce) {
  constexpr std::size_t stream_count = 8;
  constexpr int rounds = 6;
  std::mt19937_64 random(14);
  GuardedTile original(1024, 1024);
  fill_definite_piece(original, 0, random);
  GuardedTile expected(1024, 1024);
  expected.copy_from(original);
  ASSERT_NO_FATAL_FAILURE(run_cuda_twice(potrf(), kernel::PieceParameters{0}, {&expected}, 1));

  std::vector<std::unique_ptr<OtherStream>> streams;
  std::vector<std::unique_ptr<DeviceTile>> tiles;
  for (std::size_t s = 0; s < stream_count; ++s) streams.push_back(std::make_unique<OtherStream>());
  for (std::size_t t = 0; t < stream_count * rounds; ++t) {
    tiles.push_back(std::make_unique<DeviceTile>(original));
  }
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    streams[t % stream_count]->start(potrf(), kernel::PieceParameters{0}, {tiles[t]->view()});
  }
  for (const auto& stream : streams) EXPECT_EQ(stream->finish(), 0);
  for (const auto& tile : tiles) {
    GuardedTile result(1024, 1024);
    tile->fetch(result);
    ASSERT_TRUE(result.same_bits(expected));
  }
}

TEST_P(CudaPotrf, LeavesTheUpperPartAlone) {
  for_large_shapes([&](const Shape& s, std::mt19937_64& random) {
    GuardedTile tile(s.rows, s.w);
    fill_definite_piece(tile, s.offset, random);
    for (std::int64_t j = 0; j < s.w; ++j) {
      for (std::int64_t i = 0; i < s.offset + j; ++i) tile(i, j) = 1000 + static_cast<double>(i);
    }
    GuardedTile inverses(256, s.w);
    ASSERT_NO_FATAL_FAILURE(
        run_cuda_twice(potrf(), kernel::PieceParameters{s.offset}, {&tile, &inverses}, 2));
    for (std::int64_t j = 0; j < s.w; ++j) {
      for (std::int64_t i = 0; i < s.offset + j; ++i) {
        ASSERT_EQ(tile(i, j), 1000 + static_cast<double>(i)) << i << ", " << j;
      }
    }
  });
}

TEST_P(CudaPotrf, ReportsTheFirstPivotThatIsNotPositive) {
  std::mt19937_64 random(11);
  for (const std::int64_t w : {1, 2, 63, 64, 65, 130, 320, 777, 1100, 2100}) {
    for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{63}, std::int64_t{64}, w / 2,
                                   std::int64_t{2048}, w - 2, w - 1}) {
      if (bad < 0 || bad >= w) continue;
      for (const double pivot : {-3.0, 0.0, std::numeric_limits<double>::quiet_NaN()}) {
        GuardedTile tile(w + 9, w);
        fill_definite_piece(tile, 5, random);
        // A zero pivot must stay zero: nothing may be subtracted from it.
        for (std::int64_t k = 0; k < bad; ++k) tile(5 + bad, k) = 0;
        tile(5 + bad, bad) = pivot;
        // A later one is not the first.
        if (bad + 1 < w) tile(5 + w - 1, w - 1) = -1;
        const GuardedTile inverses(128, w);
        const DeviceTile device(tile);
        const DeviceTile device_inverses(inverses);
        const kernel::PieceParameters parameters{5};
        EXPECT_EQ(run_cuda(potrf(), parameters, {device.view()}), bad + 1)
            << "w " << w << " pivot " << pivot;
        const DeviceTile again(tile);
        EXPECT_EQ(run_cuda(potrf(), parameters, {again.view(), device_inverses.view()}), bad + 1)
            << "w " << w << " pivot " << pivot << " with inverse blocks";
      }
    }
  }
}

class CudaCholesky : public CudaKernels {
 protected:
  /// trsm without inverse blocks, and with those of several widths that the host's potrf gives.
  void expect_trsm_like_host(const Shape& s, const std::vector<std::int64_t>& inners,
                             std::mt19937_64& random) {
    const kernel::PieceParameters parameters{s.offset};
    GuardedTile l(s.rows, s.w);
    fill_definite_piece(l, s.offset, random);
    GuardedTile original(s.n, s.w);
    original.fill_random(random);
    GuardedTile definite(s.rows, s.w);
    definite.copy_from(l);
    ASSERT_EQ(run(kernel::potrf, parameters, {l.view()}), 0);
    GuardedTile x(s.n, s.w);
    x.copy_from(original);
    ASSERT_NO_FATAL_FAILURE(
        expect_like_host(kernel::trsm, kernel::trsm.cuda, parameters, {&x, &l}, 1, tolerance(s.w)));
    for (const std::int64_t inner : inners) {
      SCOPED_TRACE("inner " + std::to_string(inner));
      GuardedTile factor(s.rows, s.w);
      factor.copy_from(definite);
      GuardedTile inverses(inner, s.w);
      ASSERT_EQ(run(kernel::potrf, parameters, {factor.view(), inverses.view()}), 0);
      x.copy_from(original);
      ASSERT_NO_FATAL_FAILURE(expect_like_host(kernel::trsm, kernel::trsm.cuda, parameters,
                                               {&x, &l, &inverses}, 1, tolerance(s.w)));
    }
  }

  void expect_gsmm_like_host(const Shape& s, const std::vector<std::int64_t>& depths,
                             std::mt19937_64& random) {
    for (const std::int64_t depth : depths) {
      GuardedTile c(s.n, s.w);
      GuardedTile a(s.n, depth);
      GuardedTile b(s.rows, depth);
      for (GuardedTile* tile : {&c, &a, &b}) tile->fill_random(random);
      ASSERT_NO_FATAL_FAILURE(expect_like_host(kernel::gsmm, kernel::gsmm.cuda,
                                               kernel::UpdateParameters{s.offset}, {&c, &a, &b}, 1,
                                               tolerance(depth)));
    }
  }

  void expect_syrk_like_host(const Shape& s, const std::vector<std::int64_t>& depths,
                             std::mt19937_64& random) {
    for (const std::int64_t depth : depths) {
      SCOPED_TRACE("depth " + std::to_string(depth));
      GuardedTile c(s.rows, s.w);
      GuardedTile a(s.rows, depth);
      c.fill_random(random);
      a.fill_random(random);
      GuardedTile before(s.rows, s.w);
      before.copy_from(c);
      ASSERT_NO_FATAL_FAILURE(expect_like_host(kernel::syrk, kernel::syrk.cuda,
                                               kernel::PieceParameters{s.offset}, {&c, &a}, 1,
                                               tolerance(depth)));
      for (std::int64_t j = 0; j < s.w; ++j) {
        for (std::int64_t i = 0; i < s.offset + j; ++i) ASSERT_EQ(c(i, j), before(i, j));
      }
    }
  }
};

TEST_F(CudaCholesky, TrsmDividesAsTheHostDoes) {
  for_shapes([&](const Shape& s, std::mt19937_64& random) {
    expect_trsm_like_host(s, {1, 32, 64, 100, s.w + 1}, random);
  });
  if (HasFatalFailure()) return;
  for_large_shapes([&](const Shape& s, std::mt19937_64& random) {
    expect_trsm_like_host(s, {64, 256, 512, 700}, random);
  });
}

TEST_F(CudaCholesky, GsmmUpdatesAsTheHostDoes) {
  for_shapes([&](const Shape& s, std::mt19937_64& random) {
    expect_gsmm_like_host(s, {0, s.w, s.n + 3, 211}, random);
  });
  if (HasFatalFailure()) return;
  for_large_shapes([&](const Shape& s, std::mt19937_64& random) {
    expect_gsmm_like_host(s, {s.w, 1030}, random);
  });
}

TEST_F(CudaCholesky, SyrkUpdatesTheLowerPartAsTheHostDoes) {
  for_shapes([&](const Shape& s, std::mt19937_64& random) {
    expect_syrk_like_host(s, {0, 1, 17, s.n, 195}, random);
  });
  if (HasFatalFailure()) return;
  for_large_shapes([&](const Shape& s, std::mt19937_64& random) {
    expect_syrk_like_host(s, {s.n, 1024}, random);
  });
}

}  // namespace
}  // namespace heddle::test
