#include "algorithms/matrix/generator_loops.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "algorithms/matrix/philox.hpp"

// The loop bodies are written once and always inlined into one function per instruction set, where
// the compiler vectorises them. None of the sets has fused multiply-add, so the bits are the same.

namespace heddle {

namespace {

constexpr Philox4x32::Key key_of(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

/// Counter of block `block` of a column: the stream is in the bits that no column number uses.
constexpr Philox4x32::Counter counter_of(std::uint64_t block, std::uint64_t column,
                                         RandomStream stream) {
  return {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
          static_cast<std::uint32_t>(column),
          static_cast<std::uint32_t>(column >> 32) | static_cast<std::uint32_t>(stream) << 24};
}

/// 51 of 64 random bits and a set last bit as the mantissa of a number m in [1, 2); 2 m - 3.
[[gnu::always_inline]] inline double to_uniform(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 32) | low;
  return 2.0 * std::bit_cast<double>((bits >> 12) | 0x3FF0000000000001U) - 3.0;
}

// A block of Philox makes two elements. A group is 16 rows made from 8 blocks: the rows 0 to 7 are
// the first halves of blocks 0 to 7, the rows 8 to 15 the second halves. So vectors are stored
// whole.
constexpr std::size_t group_blocks = 8;
constexpr std::size_t group_rows = 2 * group_blocks;

[[gnu::always_inline]] inline void uniform_group(Philox4x32::Counter counter, Philox4x32::Key key,
                                                 double* __restrict out) {
  for (std::uint32_t l = 0; l < group_blocks; ++l) {
    const auto bits =
        Philox4x32::generate({counter[0] + l, counter[1], counter[2], counter[3]}, key);
    out[l] = to_uniform(bits[1], bits[0]);
    out[l + group_blocks] = to_uniform(bits[3], bits[2]);
  }
}

[[gnu::always_inline]] inline void uniform_body(std::uint64_t seed, RandomStream stream,
                                                std::int64_t row, std::int64_t column,
                                                std::span<double> out) {
  const Philox4x32::Key key = key_of(seed);
  std::uint64_t group = static_cast<std::uint64_t>(row) / group_rows;
  std::size_t skipped = static_cast<std::size_t>(row) % group_rows;
  double* target = out.data();
  std::size_t left = out.size();
  for (; left > 0; ++group, skipped = 0) {
    const auto counter =
        counter_of(group * group_blocks, static_cast<std::uint64_t>(column), stream);
    if (skipped == 0 && left >= group_rows) {
      uniform_group(counter, key, target);
      target += group_rows;
      left -= group_rows;
    } else {
      std::array<double, group_rows> part{};
      uniform_group(counter, key, part.data());
      const std::size_t count = std::min(left, group_rows - skipped);
      target = std::copy_n(part.data() + skipped, count, target);
      left -= count;
    }
  }
}

[[gnu::always_inline]] inline void low_rank_body(const LowRankVectors& vectors, std::int64_t row,
                                                 std::int64_t column, std::span<double> out) {
  const auto j = static_cast<std::size_t>(column);
  const double r0 = vectors.right[0][j];
  const double r1 = vectors.right[1][j];
  const double r2 = vectors.right[2][j];
  const double r3 = vectors.right[3][j];
  const double* l0 = vectors.left[0].data() + row;
  const double* l1 = vectors.left[1].data() + row;
  const double* l2 = vectors.left[2].data() + row;
  const double* l3 = vectors.left[3].data() + row;
  double* __restrict target = out.data();
  const std::size_t count = out.size();
  for (std::size_t i = 0; i < count; ++i) {
    target[i] = -((l0[i] * r0 + l1[i] * r1) + (l2[i] * r2 + l3[i] * r3));
  }
}

[[gnu::always_inline]] inline void distance_body(std::span<const double> x,
                                                 std::span<const double> y, double scale,
                                                 std::int64_t row, std::int64_t column,
                                                 std::span<double> out) {
  const double x0 = x[static_cast<std::size_t>(column)];
  const double y0 = y[static_cast<std::size_t>(column)];
  const double* x_row = x.data() + row;
  const double* y_row = y.data() + row;
  double* __restrict target = out.data();
  const std::size_t count = out.size();
  for (std::size_t i = 0; i < count; ++i) {
    const double dx = x_row[i] - x0;
    const double dy = y_row[i] - y0;
    target[i] = scale * std::sqrt(dx * dx + dy * dy);
  }
}

/// exp(-x) for x >= 0 to within 2 units in the last place; below exp(-708) it stays there. Made of
/// basic operations alone, so that loops vectorise and no mathematics library decides the bits.
[[gnu::always_inline]] inline double exp_negative(double x) {
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

[[gnu::always_inline]] inline void matern_body(MaternForm form, std::span<double> out) {
  double* target = out.data();
  const std::size_t count = out.size();
  switch (form) {
    case MaternForm::half:
      for (std::size_t i = 0; i < count; ++i) target[i] = exp_negative(target[i]);
      break;
    case MaternForm::three_halves:
      for (std::size_t i = 0; i < count; ++i) {
        target[i] = (1.0 + target[i]) * exp_negative(target[i]);
      }
      break;
    case MaternForm::five_halves:
      for (std::size_t i = 0; i < count; ++i) {
        const double s = target[i];
        target[i] = (1.0 + s + s * s * (1.0 / 3.0)) * exp_negative(s);
      }
      break;
  }
}

void uniform_base(std::uint64_t seed, RandomStream stream, std::int64_t row, std::int64_t column,
                  std::span<double> out) {
  uniform_body(seed, stream, row, column, out);
}
void low_rank_base(const LowRankVectors& vectors, std::int64_t row, std::int64_t column,
                   std::span<double> out) {
  low_rank_body(vectors, row, column, out);
}
void distance_base(std::span<const double> x, std::span<const double> y, double scale,
                   std::int64_t row, std::int64_t column, std::span<double> out) {
  distance_body(x, y, scale, row, column, out);
}
void matern_base(MaternForm form, std::span<double> out) {
  matern_body(form, out);
}

constexpr GeneratorLoops base_loops{"base", uniform_base, low_rank_base, distance_base,
                                    matern_base};

#if defined(__x86_64__)

[[gnu::target("avx2")]] void uniform_avx2(std::uint64_t seed, RandomStream stream, std::int64_t row,
                                          std::int64_t column, std::span<double> out) {
  uniform_body(seed, stream, row, column, out);
}
[[gnu::target("avx2")]] void low_rank_avx2(const LowRankVectors& vectors, std::int64_t row,
                                           std::int64_t column, std::span<double> out) {
  low_rank_body(vectors, row, column, out);
}
[[gnu::target("avx2")]] void distance_avx2(std::span<const double> x, std::span<const double> y,
                                           double scale, std::int64_t row, std::int64_t column,
                                           std::span<double> out) {
  distance_body(x, y, scale, row, column, out);
}
[[gnu::target("avx2")]] void matern_avx2(MaternForm form, std::span<double> out) {
  matern_body(form, out);
}

constexpr GeneratorLoops avx2_loops{"avx2", uniform_avx2, low_rank_avx2, distance_avx2,
                                    matern_avx2};

#endif

}  // namespace

const GeneratorLoops& generator_loops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return avx2_loops;
#endif
  return base_loops;
}

std::vector<const GeneratorLoops*> usable_generator_loops() {
  std::vector<const GeneratorLoops*> loops{&base_loops};
  if (&generator_loops() != &base_loops) loops.push_back(&generator_loops());
  return loops;
}

std::uint64_t random_bits(std::uint64_t seed, RandomStream stream, std::uint64_t index) {
  const auto bits = Philox4x32::generate(counter_of(index, 0, stream), key_of(seed));
  return (std::uint64_t{bits[1]} << 32) | bits[0];
}

}  // namespace heddle
