#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/collectives/reduce/own_functors.hpp"
#include "tests/collectives/reduce/reduce_cases.hpp"

namespace heddle::test {

inline Matrix2 draw_value(std::mt19937_64& random, const Matrix2* /*type*/) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  Matrix2 made{};
  for (double* const x : {&made.a, &made.b, &made.c, &made.d}) *x = uniform(random);
  return made;
}
inline AffineMap draw_value(std::mt19937_64& random, const AffineMap* /*type*/) {
  return {static_cast<std::uint32_t>(random() % 1000003),
          static_cast<std::uint32_t>(random() % 1000003)};
}
inline ThreeBytes draw_value(std::mt19937_64& random, const ThreeBytes* /*type*/) {
  const auto digit = [&] { return static_cast<std::uint8_t>(random() % 5); };
  ThreeBytes made{};
  for (std::uint8_t* const x : {&made.x, &made.y, &made.z}) *x = digit();
  return made;
}
inline Matrix3 draw_value(std::mt19937_64& random, const Matrix3* /*type*/) {
  Matrix3 made{};
  for (std::int64_t& x : made.at) x = std::bit_cast<std::int64_t>(random());
  return made;
}

/// Operations of a program's own, beside what their functors give.
inline std::vector<ReduceCase> own_cases() {
  return {case_of<Matrix2>(matrix_product(), Scalar::float64, MatrixProduct{}),
          case_of<AffineMap>(then_modulo(1000003), Scalar::uint32, ThenModulo{1000003}),
          case_of<ThreeBytes>(first_that_is(), Scalar::byte, FirstThatIs{}),
          case_of<Matrix3>(integer_product(), Scalar::int64, IntegerProduct{})};
}

}  // namespace heddle::test
