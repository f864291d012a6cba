#pragma once

#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "tests/kernels/pieces.hpp"

/// Pieces for tests on GPUs, and how far their results may be from the host's.
namespace heddle::test {

/// Past one 64 x 64 block, one multiprocessor, one block column of potrf, and the widths at which
/// kernels change their ways; ends that are no multiples of anything.
[[nodiscard]] inline std::vector<Shape> large_shapes() {
  return {{512, 512, 0, 512},   {777, 777, 0, 100},   {1061, 1024, 37, 513},  {1500, 700, 300, 64},
          {1700, 1600, 50, 33}, {2048, 2048, 0, 256}, {2300, 2048, 100, 1100}};
}

inline void for_large_shapes(const std::function<void(const Shape&, std::mt19937_64&)>& body) {
  std::uint64_t seed = 100;
  for (const Shape& shape : large_shapes()) {
    SCOPED_TRACE(shape_name(shape));
    std::mt19937_64 random(seed++);
    body(shape, random);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

[[nodiscard]] inline double tolerance(std::int64_t depth) {
  return 100 * epsilon * (static_cast<double>(depth) + 1);
}

}  // namespace heddle::test
