#pragma once

#include <cmath>
#include <cstdint>

// Compiled for the processor and, in .cu files, for the GPU alike.
#ifdef __CUDACC__
#define HEDDLE_PEER_ON_BOTH __host__ __device__
#else
#define HEDDLE_PEER_ON_BOTH
#endif

/// The elements of the matrices that GPUs are measured with, heddle's own drivers' as well. Their
/// distribution matters: on a GPU at its power limit uniform numbers and zeros run faster than
/// normally distributed ones.
namespace heddle::peer {

/// The finalizer of splitmix64: each bit of the result depends on all bits of `h`.
HEDDLE_PEER_ON_BOTH inline std::uint64_t mixed(std::uint64_t h) {
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  return h ^ (h >> 31);
}

/// A number of the standard normal distribution that depends on i and j alone, both less than 2^31.
/// Box and Muller's two numbers belong to neighbouring rows.
HEDDLE_PEER_ON_BOTH inline double normal(std::int64_t i, std::int64_t j) {
  constexpr double two_pi = 6.283185307179586;
  const auto pair = static_cast<std::uint64_t>(i / 2) << 32 | static_cast<std::uint64_t>(j);
  const std::uint64_t first = mixed(pair + 0x9e3779b97f4a7c15ULL);
  const std::uint64_t second = mixed(first + 0x9e3779b97f4a7c15ULL);
  const double length =  // of a number in (0, 1)
      ::sqrt(-2 * ::log((static_cast<double>(first >> 11) + 0.5) * 0x1p-53));
  const double angle = two_pi * static_cast<double>(second >> 11) * 0x1p-53;
  return length * (i % 2 == 0 ? ::cos(angle) : ::sin(angle));
}

/// Element (i, j) of a symmetric positive definite matrix of order n: what stands beside the n of
/// the diagonal has a 2-norm of about sqrt(n).
HEDDLE_PEER_ON_BOTH inline double normal_spd(std::int64_t i, std::int64_t j, std::int64_t n) {
  if (i == j) return static_cast<double>(n);
  return 0.5 * (i > j ? normal(i, j) : normal(j, i));
}

/// Column `s` of the random vectors that checks multiply with: none of a matrix's own columns.
HEDDLE_PEER_ON_BOTH inline double probe(std::int64_t i, std::int64_t s) {
  return normal(i, (std::int64_t{1} << 30) + s);
}

}  // namespace heddle::peer

#undef HEDDLE_PEER_ON_BOTH
