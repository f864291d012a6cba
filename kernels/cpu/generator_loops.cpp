#include "kernels/cpu/generator_loops.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

// The loop bodies are written once and always inlined into one function per instruction set, where
// the compiler vectorises them. None of the sets has fused multiply-add, so the bits are the same.

namespace heddle::host {

using kernel::ElementKind;
using kernel::group_blocks;
using kernel::group_rows;
using kernel::Philox4x32;
using kernel::RandomStream;

namespace {

[[gnu::always_inline]] inline void uniform_group(Philox4x32::Counter counter, Philox4x32::Key key,
                                                 double* __restrict out) {
  for (std::uint32_t l = 0; l < group_blocks; ++l) {
    const auto bits =
        Philox4x32::generate({counter[0] + l, counter[1], counter[2], counter[3]}, key);
    out[l] = kernel::to_uniform(bits[1], bits[0]);
    out[l + group_blocks] = kernel::to_uniform(bits[3], bits[2]);
  }
}

[[gnu::always_inline]] inline void uniform_body(std::uint64_t seed, RandomStream stream,
                                                std::int64_t row, std::int64_t column,
                                                std::span<double> out) {
  const Philox4x32::Key key = kernel::key_of(seed);
  std::uint64_t group = static_cast<std::uint64_t>(row) / group_rows;
  std::size_t skipped = static_cast<std::size_t>(row) % group_rows;
  double* target = out.data();
  std::size_t left = out.size();
  for (; left > 0; ++group, skipped = 0) {
    const auto counter =
        kernel::counter_of(group * group_blocks, static_cast<std::uint64_t>(column), stream);
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

[[gnu::always_inline]] inline void low_rank_body(const std::array<const double*, 4>& left,
                                                 const std::array<double, 4>& right,
                                                 std::span<double> out) {
  const auto [l0, l1, l2, l3] = left;
  const auto [r0, r1, r2, r3] = right;
  double* __restrict target = out.data();
  const std::size_t count = out.size();
  for (std::size_t i = 0; i < count; ++i) {
    target[i] = kernel::low_rank_element(l0[i], r0, l1[i], r1, l2[i], r2, l3[i], r3);
  }
}

[[gnu::always_inline]] inline void distance_body(const double* x, const double* y, double x0,
                                                 double y0, double scale, std::span<double> out) {
  double* __restrict target = out.data();
  const std::size_t count = out.size();
  for (std::size_t i = 0; i < count; ++i) {
    target[i] = kernel::scaled_distance(x[i], y[i], x0, y0, scale);
  }
}

[[gnu::always_inline]] inline void matern_body(ElementKind kind, std::span<double> out) {
  double* target = out.data();
  const std::size_t count = out.size();
  switch (kind) {
    case ElementKind::matern_half:
      for (std::size_t i = 0; i < count; ++i) target[i] = kernel::matern_half(target[i]);
      break;
    case ElementKind::matern_three_halves:
      for (std::size_t i = 0; i < count; ++i) target[i] = kernel::matern_three_halves(target[i]);
      break;
    default:
      for (std::size_t i = 0; i < count; ++i) target[i] = kernel::matern_five_halves(target[i]);
      break;
  }
}

void uniform_base(std::uint64_t seed, RandomStream stream, std::int64_t row, std::int64_t column,
                  std::span<double> out) {
  uniform_body(seed, stream, row, column, out);
}
void low_rank_base(const std::array<const double*, 4>& left, const std::array<double, 4>& right,
                   std::span<double> out) {
  low_rank_body(left, right, out);
}
void distance_base(const double* x, const double* y, double x0, double y0, double scale,
                   std::span<double> out) {
  distance_body(x, y, x0, y0, scale, out);
}
void matern_base(ElementKind kind, std::span<double> out) {
  matern_body(kind, out);
}

constexpr GeneratorLoops base_loops{"base", uniform_base, low_rank_base, distance_base,
                                    matern_base};

#if defined(__x86_64__)

[[gnu::target("avx2")]] void uniform_avx2(std::uint64_t seed, RandomStream stream, std::int64_t row,
                                          std::int64_t column, std::span<double> out) {
  uniform_body(seed, stream, row, column, out);
}
[[gnu::target("avx2")]] void low_rank_avx2(const std::array<const double*, 4>& left,
                                           const std::array<double, 4>& right,
                                           std::span<double> out) {
  low_rank_body(left, right, out);
}
[[gnu::target("avx2")]] void distance_avx2(const double* x, const double* y, double x0, double y0,
                                           double scale, std::span<double> out) {
  distance_body(x, y, x0, y0, scale, out);
}
[[gnu::target("avx2")]] void matern_avx2(ElementKind kind, std::span<double> out) {
  matern_body(kind, out);
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

}  // namespace heddle::host
