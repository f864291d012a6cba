#include "kernels/kernel_case.hpp"

#include <array>
#include <gtest/gtest.h>
#include <span>

#include "kernels/case_key.hpp"
#include "kernels/kernels.hpp"

namespace heddle {
namespace {

double flops(const Kernel& kernel, std::span<const OperandShape> shapes,
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

TEST(CaseKey, tells_cases_apart_by_kernel_parameters_and_shapes_and_owns_them) {
  std::array<OperandShape, 3> shapes{{{30, 30}, {30, 20}, {30, 20}}};
  const KernelParameters first(kernel::PieceParameters{0});
  const KernelParameters second(kernel::PieceParameters{10});
  const CaseKey key = CaseKey::of({&kernel::gsmm, first, shapes});

  const std::array<TileView, 3> tiles{
      {{nullptr, 30, 30, 64}, {nullptr, 30, 20, 64}, {nullptr, 30, 20, 32}}};
  const CaseKey same = CaseKey::of(kernel::gsmm, {tiles, first});
  EXPECT_EQ(key, same);
  EXPECT_EQ(CaseKey::Hash{}(key), CaseKey::Hash{}(same));

  EXPECT_NE(key, CaseKey::of({&kernel::gsmm, second, shapes}));
  EXPECT_NE(key, CaseKey::of({&kernel::tsmqr, first, shapes}));
  EXPECT_NE(key, CaseKey::of({&kernel::gsmm, first, std::span(shapes).first(2)}));
  shapes[2] = {20, 30};
  EXPECT_NE(key, CaseKey::of({&kernel::gsmm, first, shapes}));

  const KernelCase what = key.what();
  EXPECT_EQ(what.kernel, &kernel::gsmm);
  EXPECT_EQ(what.parameters, first);
  ASSERT_EQ(what.operands.size(), 3U);
  EXPECT_EQ(what.operands[2], (OperandShape{30, 20}));
}

}  // namespace
}  // namespace heddle
