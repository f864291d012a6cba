#pragma once

#include <cstdint>

namespace heddle::collectives {

/// A number that depends on both (of splitmix64).
[[nodiscard]] inline std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t h = a * 0x9e3779b97f4a7c15ULL + b;
  h = (h ^ (h >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27U)) * 0x94d049bb133111ebULL;
  return h ^ (h >> 31U);
}

}  // namespace heddle::collectives
