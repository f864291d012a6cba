#include "apps/tuning/reading.hpp"

#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

#include "kernels/cpu/blas.hpp"

namespace heddle::tuning {
namespace {

TEST(Reading, of_two_and_three_nodes_takes_some_time) {
  load_blas({});
  for (const std::size_t nodes : {2U, 3U}) {
    const auto reading = reading_beside_work(std::vector<Workers>(nodes));
    if (!reading) GTEST_SKIP() << "this system lets no process read another one";
    EXPECT_GE(reading->short_us, 0);
    EXPECT_LT(reading->short_us, 1e5);
    EXPECT_GT(reading->rate, 0.001);
    EXPECT_LT(reading->rate, 1000);
  }
}

}  // namespace
}  // namespace heddle::tuning
