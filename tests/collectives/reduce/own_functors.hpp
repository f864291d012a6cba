#pragma once

#include <cstdint>

#include "node-runtime/collectives/reduce/host_device.hpp"
#include "node-runtime/collectives/reduce/reduce_operation.hpp"

/// Operations as programs have them, of elements of all sorts of lengths, none of them commutative.
namespace heddle::test {

struct Matrix2 {
  double a, b, c, d;
};
/// 32 bytes, whose product is rounded.
struct MatrixProduct {
  HEDDLE_HOST_DEVICE Matrix2 operator()(const Matrix2& x, const Matrix2& y) const {
    return {x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c,
            x.c * y.b + x.d * y.d};
  }
};

/// x -> factor x + addend modulo a number that the functor has.
struct AffineMap {
  std::uint32_t factor, addend;
};
struct ThenModulo {
  std::uint64_t modulus;
  HEDDLE_HOST_DEVICE AffineMap operator()(const AffineMap& f, const AffineMap& g) const {
    return {static_cast<std::uint32_t>(std::uint64_t{g.factor} * f.factor % modulus),
            static_cast<std::uint32_t>((std::uint64_t{g.factor} * f.addend + g.addend) % modulus)};
  }
};

/// Three bytes of 0 to 4: permutations' worth of a string, of which the first that is not 0 wins.
struct ThreeBytes {
  std::uint8_t x, y, z;
};
struct FirstThatIs {
  HEDDLE_HOST_DEVICE ThreeBytes operator()(const ThreeBytes& a, const ThreeBytes& b) const {
    return {a.x != 0 ? a.x : b.x, a.y != 0 ? a.y : b.y, a.z != 0 ? a.z : b.z};
  }
};

/// 72 bytes: no whole number of these is a few words of 16 bytes.
struct Matrix3 {
  std::int64_t at[9];  // NOLINT(*-avoid-c-arrays)
};
struct IntegerProduct {
  HEDDLE_HOST_DEVICE Matrix3 operator()(const Matrix3& x, const Matrix3& y) const {
    Matrix3 result{};
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        std::uint64_t sum = 0;
        for (int k = 0; k < 3; ++k) {
          sum += static_cast<std::uint64_t>(x.at[3 * i + k]) *
                 static_cast<std::uint64_t>(y.at[3 * k + j]);
        }
        result.at[3 * i + j] = static_cast<std::int64_t>(sum);
      }
    }
    return result;
  }
};

// own_operations_on_devices.cpp, which nvcc compiles where there is CUDA.
[[nodiscard]] ReduceOperation matrix_product();
[[nodiscard]] ReduceOperation then_modulo(std::uint64_t modulus);
[[nodiscard]] ReduceOperation first_that_is();
[[nodiscard]] ReduceOperation integer_product();

}  // namespace heddle::test
