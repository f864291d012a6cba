#include "node-runtime/machine/kernel_costs.hpp"

#include <gtest/gtest.h>
#include <vector>

#include "kernels/kernels.hpp"

namespace heddle::test {
namespace {

double seconds_of(const KernelCosts& costs, const Kernel& kernel, std::int64_t tile,
                  bool on_device = false) {
  const std::vector<OperandShape> shapes(3, {tile, tile});
  return costs.seconds({&kernel, {}, shapes}, on_device);
}

}  // namespace

TEST(KernelCosts, are_measured_ones_by_operations_from_the_nearest_size) {
  const KernelCosts costs(
      {{&kernel::gsmm, 100, 100, 0, 1000}, {&kernel::gsmm, 1000, 1000, 0, 100'000}}, {});
  EXPECT_DOUBLE_EQ(seconds_of(costs, kernel::gsmm, 100), 1e-3);
  EXPECT_DOUBLE_EQ(seconds_of(costs, kernel::gsmm, 1000), 0.1);
  EXPECT_DOUBLE_EQ(seconds_of(costs, kernel::gsmm, 200), 8e-3) << "at the rate of 100";
  EXPECT_DOUBLE_EQ(seconds_of(costs, kernel::gsmm, 500), 0.1 / 8) << "at the rate of 1000";
}

TEST(KernelCosts, of_a_kernel_that_was_not_measured_are_those_of_products) {
  const KernelCosts costs({{&kernel::gsmm, 100, 100, 0, 1000}}, {{&kernel::gsmm, 100, 100, 0, 10}});
  EXPECT_DOUBLE_EQ(seconds_of(costs, kernel::trsm, 100), 0.5e-3);
  EXPECT_DOUBLE_EQ(seconds_of(costs, kernel::trsm, 100, true), 0.5e-5);
}

TEST(KernelCosts, without_measurements_are_by_operations_and_bytes) {
  const KernelCosts costs({}, {});
  EXPECT_DOUBLE_EQ(seconds_of(costs, kernel::gsmm, 100), 2e6 / 1e10);
  EXPECT_LT(seconds_of(costs, kernel::gsmm, 100, true), seconds_of(costs, kernel::gsmm, 100));
  EXPECT_DOUBLE_EQ(seconds_of(costs, kernel::copy_rows, 100), 8e4 / 1e10);
}

}  // namespace heddle::test
