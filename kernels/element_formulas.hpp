#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/philox.hpp"

/// Elements of generated matrices (the kernel `generate`, kernels/kernels.hpp), for the host's
/// loops and for GPUs. They are made of basic operations alone, which round the same way
/// everywhere, so that no mathematics library decides the bits. Files that include this are
/// compiled without fused multiply-add.
namespace heddle::kernel {

#ifdef __CUDACC__
#define HEDDLE_FORMULA __host__ __device__ inline
#else
// Loops then vectorise for the instruction set of the function that they are in.
#define HEDDLE_FORMULA [[gnu::always_inline]] inline
#endif

/// Random numbers of one seed are parted into streams that never meet.
enum class RandomStream : std::uint32_t {
  entries,
  order,
  reflectors,
  points,
  combinations,
  coefficients
};

HEDDLE_FORMULA constexpr Philox4x32::Key key_of(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

/// Counter of block `block` of a column: the stream is in the bits that no column number uses.
HEDDLE_FORMULA constexpr Philox4x32::Counter counter_of(std::uint64_t block, std::uint64_t column,
                                                        RandomStream stream) {
  return {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
          static_cast<std::uint32_t>(column),
          static_cast<std::uint32_t>(column >> 32) | static_cast<std::uint32_t>(stream) << 24};
}

/// 51 of 64 random bits and a set last bit as the mantissa of a number m in [1, 2); 2 m - 3.
HEDDLE_FORMULA double to_uniform(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 32) | low;
  return 2.0 * std::bit_cast<double>((bits >> 12) | 0x3FF0000000000001U) - 3.0;
}

/// A block of Philox makes two elements of a column. Sixteen rows are made from eight blocks: the
/// first eight rows are the first halves of the blocks, the others the second halves.
inline constexpr std::uint32_t group_blocks = 8;
inline constexpr std::uint32_t group_rows = 2 * group_blocks;

/// Uniform in (-1, 1): element (row, column) of the infinite matrix of this key and stream.
HEDDLE_FORMULA double uniform_element(Philox4x32::Key key, RandomStream stream, std::uint64_t row,
                                      std::uint64_t column) {
  const std::uint64_t group = row / group_rows;
  const auto inside = static_cast<std::uint32_t>(row % group_rows);
  const Philox4x32::Counter bits = Philox4x32::generate(
      counter_of(group * group_blocks + inside % group_blocks, column, stream), key);
  return inside < group_blocks ? to_uniform(bits[1], bits[0]) : to_uniform(bits[3], bits[2]);
}

/// -((l0 r0 + l1 r1) + (l2 r2 + l3 r3)).
HEDDLE_FORMULA double low_rank_element(double l0, double r0, double l1, double r1, double l2,
                                       double r2, double l3, double r3) {
  return -((l0 * r0 + l1 * r1) + (l2 * r2 + l3 * r3));
}

/// The distance of two points in units of 1 / scale.
HEDDLE_FORMULA double scaled_distance(double x, double y, double x0, double y0, double scale) {
  const double dx = x - x0;
  const double dy = y - y0;
  return scale * std::sqrt(dx * dx + dy * dy);
}

/// exp(-x) for x >= 0 to within 2 units in the last place; below exp(-708) it stays there.
HEDDLE_FORMULA double exp_negative(double x) {
  constexpr double log2_e = 1.4426950408889634;
  constexpr double ln2_high = 6.93147180369123816490e-01;  // 21 trailing zero bits: k * it is exact
  constexpr double ln2_low = 1.90821492927058770002e-10;
  constexpr double round_up = 0x1.8p52;  // adding it rounds to an integer, in the last bits
  x = x < 708.0 ? x : 708.0;
  const double shifted = x * log2_e + round_up;
  const double k = shifted - round_up;
  const double r = (k * ln2_high - x) + k * ln2_low;  // |r| <= ln(2) / 2
  double sum = 1.0 / 6227020800.0;                    // Taylor to r^13 / 13!
  sum = sum * r + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  sum = sum * r + 1.0;
  sum = sum * r + 1.0;
  const std::uint64_t scale =
      (std::uint64_t{1023} << 52) - (std::bit_cast<std::uint64_t>(shifted) << 52);
  return sum * std::bit_cast<double>(scale);
}

/// Matern correlations at the scaled distance s = sqrt(2 smoothness) d / range, by smoothness.
HEDDLE_FORMULA double matern_half(double s) {
  return exp_negative(s);
}
HEDDLE_FORMULA double matern_three_halves(double s) {
  return (1.0 + s) * exp_negative(s);
}
HEDDLE_FORMULA double matern_five_halves(double s) {
  return (1.0 + s + s * s * (1.0 / 3.0)) * exp_negative(s);
}

/// The smaller over the larger one; both are positive.
HEDDLE_FORMULA double ratio_element(double a, double b) {
  return a < b ? a / b : b / a;
}

#undef HEDDLE_FORMULA

}  // namespace heddle::kernel
