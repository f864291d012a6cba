#include "kernels/cpu/micro/micro.hpp"

#include <array>
#include <cstddef>

namespace heddle {

std::span<const MicroKernels* const> micro_kernels() {
#if defined(HEDDLE_MICRO_X86)
  static constexpr std::array<const MicroKernels*, 2> all{&micro_avx2, &micro_avx512};
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") != 0;
  return std::span(all).first(std::size_t{avx2} + std::size_t{avx512});
#else
  return {};
#endif
}

const MicroKernels* best_micro_kernels() {
  const auto all = micro_kernels();
  return all.empty() ? nullptr : all.back();
}

}  // namespace heddle
