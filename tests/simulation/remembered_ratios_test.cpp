#include "apps/simulation/remembered_ratios.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "kernels/kernels.hpp"

namespace heddle {
namespace {

/// A tile of so many rows, the triangle above it, and its T.
struct Panel {
  explicit Panel(std::int64_t rows) : operands{{rows, 160}, {160, 160}, {32, 160}} {}
  [[nodiscard]] CrowdedCase<int> beside(int workers) const { return {what, workers}; }

  std::vector<OperandShape> operands;
  KernelCase what{&kernel::tsqrt, {}, operands};
};

class Timings {
 public:
  [[nodiscard]] double ratio(const CrowdedCase<int>& one, const CrowdedCase<int>& other,
                             double timed) {
    return ratios_.ratio(one, other, [&] {
      ++count;
      return timed;
    });
  }
  int count = 0;

 private:
  RememberedRatios<int> ratios_;
};

TEST(RememberedRatios, are_timed_once_for_cases_alike_and_follow_operations_among_them) {
  const Panel tall(1920);
  const Panel taller(2000);
  ASSERT_NEAR(flops_of(taller.what) / flops_of(tall.what), 2000.0 / 1920, 0.01);
  Timings timings;
  EXPECT_DOUBLE_EQ(timings.ratio(tall.beside(6), tall.beside(12), 0.8), 0.8);
  EXPECT_NEAR(timings.ratio(taller.beside(6), tall.beside(12), 99), 0.8 * 2000 / 1920, 0.01);
  EXPECT_EQ(timings.count, 1);
}

// Ratios of tall tiles over short ones were those of their operations, which took thrice as long as
// they do: what more or fewer workers make of a tall tile had been timed before.
TEST(RememberedRatios, of_short_and_tall_tiles_are_timed_each) {
  const Panel tall(1920);
  const Panel low(80);
  Timings timings;
  EXPECT_DOUBLE_EQ(timings.ratio(low.beside(6), low.beside(6), 1), 1);
  EXPECT_DOUBLE_EQ(timings.ratio(tall.beside(6), low.beside(6), 4), 4);
  EXPECT_DOUBLE_EQ(timings.ratio(tall.beside(6), low.beside(6), 99), 4);
  EXPECT_EQ(timings.count, 2);
}

TEST(RememberedRatios, of_other_crowds_are_timed_each) {
  const Panel tall(1920);
  Timings timings;
  EXPECT_DOUBLE_EQ(timings.ratio(tall.beside(6), tall.beside(12), 0.8), 0.8);
  EXPECT_DOUBLE_EQ(timings.ratio(tall.beside(6), tall.beside(24), 0.7), 0.7);
  EXPECT_DOUBLE_EQ(timings.ratio(tall.beside(12), tall.beside(6), 1.2), 1.2);
  EXPECT_EQ(timings.count, 3);
}

}  // namespace
}  // namespace heddle
