#include "node-runtime/threads/kernel_watch.hpp"

#include <gtest/gtest.h>

namespace heddle {
namespace {

constexpr Kernel counted{.name = "counted",
                         .flops = [](const KernelCase& what) { return what.rows(0) * 1e6; }};
constexpr Kernel uncounted{.name = "uncounted"};
double rate() {
  return 1e9;
}
double never_asked() {
  ADD_FAILURE() << "the rate is measured for nothing";
  return 1e9;
}
constexpr std::int64_t second = 1'000'000'000;

OperandShape tile(std::int64_t rows) {
  return {rows, 1};
}

}  // namespace

TEST(KernelWatch, tells_a_kernel_that_runs_a_hundred_times_as_long_as_its_operations_take) {
  KernelWatch watch(3);
  watch.begin(1, counted, tile(20), 5);  // 20 ms are expected
  EXPECT_FALSE(watch.stuck(0, 1, never_asked)) << "seen for the first time";
  EXPECT_FALSE(watch.stuck(second / 2, 1, never_asked)) << "not as long as the watchdog waits";
  EXPECT_FALSE(watch.stuck(2 * second, 1, rate)) << "no more than 2 s";
  const auto stuck = watch.stuck(2 * second + second / 10, 1, rate);
  ASSERT_TRUE(stuck);
  EXPECT_EQ(describe(*stuck, 2),
            "worker 1 has run counted on a tile of 20 x 1 for 2.1 s, where 0.02 s are expected");
  EXPECT_EQ(describe(*stuck, 1).substr(0, 9), "device 0 ");
  watch.end(1);
  EXPECT_FALSE(watch.stuck(100 * second, 1, rate));
}

TEST(KernelWatch, counts_each_run_from_when_it_is_first_seen) {
  KernelWatch watch(1);
  watch.begin(0, counted, tile(1), 5);
  EXPECT_FALSE(watch.stuck(0, 1, rate));
  watch.begin(0, counted, tile(1), 6);
  EXPECT_FALSE(watch.stuck(10 * second, 1, rate)) << "another run";
  EXPECT_TRUE(watch.stuck(12 * second, 1, rate));
}

TEST(KernelWatch, says_nothing_of_kernels_that_count_no_operations) {
  KernelWatch watch(1);
  watch.begin(0, uncounted, tile(1), 5);
  EXPECT_FALSE(watch.stuck(0, 1, rate));
  EXPECT_FALSE(watch.stuck(1000 * second, 1, rate));
}

}  // namespace heddle
