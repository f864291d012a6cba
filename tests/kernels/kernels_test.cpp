#include "kernels/kernels.hpp"

#include <gtest/gtest.h>
#include <set>
#include <string_view>
#include <vector>

#include "kernels/kernel_case.hpp"

namespace heddle {
namespace {

#define HEDDLE_ADDRESS(name) &kernel::name,
const std::vector<const Kernel*> all_kernels{HEDDLE_KERNELS(HEDDLE_ADDRESS)};
#undef HEDDLE_ADDRESS

TEST(Kernels, have_definitions_for_all_backends_and_names_of_their_own) {
  std::set<std::string_view> names;
  for (const Kernel* kernel : all_kernels) {
    SCOPED_TRACE(kernel->name);
    EXPECT_TRUE(names.insert(kernel->name).second) << "two kernels have one name";
    EXPECT_NE(kernel->host, nullptr);
    EXPECT_NE(kernel->emulated, nullptr);
    EXPECT_NE(kernel->cuda, nullptr);
  }
}

TEST(Kernels, that_machines_are_measured_by_count_operations_and_can_be_divided) {
  for (const Kernel* kernel : factorization_kernels) {
    SCOPED_TRACE(kernel->name);
    EXPECT_GT(flops_of(*kernel, 64, 64), 0);
    EXPECT_NE(kernel->fine, nullptr);
  }
}

TEST(Kernels, count_no_operations_where_they_move_data) {
  for (const Kernel* kernel : {&kernel::copy, &kernel::copy_rows, &kernel::copy_triangle}) {
    EXPECT_EQ(flops_of(*kernel, 64, 64), 0) << kernel->name;
  }
}

TEST(Kernels, have_a_failing_element_only_where_they_have_pivots) {
  for (const Kernel* kernel : all_kernels) {
    EXPECT_EQ(kernel->failing_element != nullptr, kernel == &kernel::potrf) << kernel->name;
  }
  const KernelParameters piece(kernel::PieceParameters{5});
  const TileElement pivot = kernel::potrf.failing_element(piece, 3);
  EXPECT_EQ(pivot.row, 7);
  EXPECT_EQ(pivot.column, 2);
}

}  // namespace
}  // namespace heddle
