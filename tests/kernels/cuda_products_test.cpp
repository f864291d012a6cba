#include <algorithm>
#include <random>

#include "kernels/cuda/product_choice.hpp"
#include "kernels/kernels.hpp"
#include "tests/kernels/cuda_fixture.hpp"

/// Kernels of the library that products are told to run on. Without a GPU there is nothing to ask.
namespace heddle::test {
namespace {

using kernel::cuda::ProductChoice;
using kernel::cuda::ProductChoices;

constexpr std::int32_t size = 640;

class CudaProducts : public CudaKernels {
 protected:
  void SetUp() override {
    CudaKernels::SetUp();
    std::mt19937_64 random(7);
    for (GuardedTile* tile : {&c_, &a_, &b_}) tile->fill_random(random);
  }

  /// C - A B^T as the kernels chosen make it.
  void multiply(GuardedTile& result) {
    result.copy_from(c_);
    ASSERT_NO_FATAL_FAILURE(
        run_cuda_twice(kernel::gsmm.cuda, kernel::UpdateParameters{0}, {&result, &a_, &b_}, 1));
  }

  GuardedTile c_{size, size};
  GuardedTile a_{size, size};
  GuardedTile b_{size, size};
};

/// Of the GPU, in bytes.
std::size_t memory_left() {
  std::size_t left = 0;
  std::size_t all = 0;
  kernel::cuda::check(cudaMemGetInfo(&left, &all), "cudaMemGetInfo");
  return left;
}

}  // namespace

TEST_F(CudaProducts, AreOfferedOnceEach) {
  const ProductChoices offered = kernel::cuda::product_candidates(0, 2048, 16);
  ASSERT_FALSE(offered.empty());
  EXPECT_LE(offered.size(), 16U);
  for (const ProductChoice& kernel : offered) {
    EXPECT_FALSE(kernel.is_library());
    EXPECT_EQ(std::count(offered.begin(), offered.end(), kernel), 1);
  }
  EXPECT_TRUE(kernel::cuda::product_candidates(1000, 2048, 16).empty());
  EXPECT_TRUE(kernel::cuda::product_library().starts_with("cuBLAS "));
}

TEST_F(CudaProducts, FindTheirMemoryWhereTheContextIsPrepared) {
  GuardedTile result(size, size);
  ASSERT_NO_FATAL_FAILURE(multiply(result));  // what the library loads stays loaded
  choose_products(kernel::cuda::built_in_product_choices());
  const std::size_t bare = memory_left();
  context().prepare();
  const std::size_t prepared = memory_left();
  EXPECT_LE(prepared + kernel::cuda::blas_workspace_bytes, bare);
  ASSERT_NO_FATAL_FAILURE(multiply(result));
  // The driver may keep some of what tiles had.
  EXPECT_GE(memory_left() + kernel::cuda::blas_workspace_bytes / 2, prepared);
}

TEST_F(CudaProducts, GiveTheLibrarysResultOnEachKernel) {
  choose_products({{.size_min = 1}});
  GuardedTile expected(size, size);
  ASSERT_NO_FATAL_FAILURE(multiply(expected));
  for (const ProductChoice& kernel : kernel::cuda::product_candidates(0, size, 16)) {
    SCOPED_TRACE("tile " + std::to_string(kernel.tile) + " stages " +
                 std::to_string(kernel.stages));
    choose_products({{1, kernel.tile, kernel.stages}});
    GuardedTile result(size, size);
    ASSERT_NO_FATAL_FAILURE(multiply(result));
    expect_close(result, expected, 1e-12);
  }
}

TEST_F(CudaProducts, FallBackOnTheLibraryWhereAKernelIsNotOffered) {
  choose_products({{.size_min = 1}});
  GuardedTile expected(size, size);
  ASSERT_NO_FATAL_FAILURE(multiply(expected));
  choose_products({{1, 600, 600}});
  GuardedTile result(size, size);
  ASSERT_NO_FATAL_FAILURE(multiply(result));
  EXPECT_TRUE(result.same_bits(expected));
  // Too large a size for these products.
  choose_products({{size + 1, 600, 600}});
  ASSERT_NO_FATAL_FAILURE(multiply(result));
  EXPECT_TRUE(result.same_bits(expected));
}

}  // namespace heddle::test
