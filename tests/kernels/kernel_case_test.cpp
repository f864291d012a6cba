#include "kernels/kernel_case.hpp"

#include <array>
#include <gtest/gtest.h>

#include "kernels/cholesky.hpp"
#include "kernels/piece.hpp"
#include "kernels/qr.hpp"

namespace heddle {
namespace {

template <std::size_t count>
double flops(const Kernel& kernel, const std::array<OperandShape, count>& shapes,
             const KernelParameters& parameters = {}) {
  return flops_of({&kernel, parameters, shapes});
}

TEST(KernelCase, counts_the_operations_of_whole_tiles) {
  const std::array<OperandShape, 4> square{{{30, 30}, {30, 30}, {30, 30}, {30, 30}}};
  EXPECT_DOUBLE_EQ(flops(kernel::potrf, square), 9000);
  EXPECT_DOUBLE_EQ(flops(kernel::trsm, square), 27000);
  EXPECT_DOUBLE_EQ(flops(kernel::syrk, square), 27000);
  EXPECT_DOUBLE_EQ(flops(kernel::gsmm, square), 54000);
  EXPECT_DOUBLE_EQ(flops(kernel::geqrt, square), 36000);
  EXPECT_DOUBLE_EQ(flops(kernel::tsqrt, square), 54000);
  EXPECT_DOUBLE_EQ(flops(kernel::unmqr, square), 54000);
  EXPECT_DOUBLE_EQ(flops(kernel::tsmqr, square), 108000);
}

TEST(KernelCase, adds_up_to_the_count_of_a_factorization) {
  // A panel of w columns, 3 w rows below its diagonal block, by one piece.
  const double w = 10;
  const std::array<OperandShape, 2> panel{{{40, 10}, {40, 10}}};
  EXPECT_DOUBLE_EQ(flops(kernel::potrf, panel, KernelParameters(kernel::PieceParameters{0})),
                   w * w * w / 3 + 3 * w * w * w);
  // The second of four pieces: what lies above it is zero.
  EXPECT_DOUBLE_EQ(flops(kernel::potrf, panel, KernelParameters(kernel::PieceParameters{10})),
                   w * w * w / 3 + 2 * w * w * w);
}

}  // namespace
}  // namespace heddle
