#pragma once

#include <cstdint>

#include "base/index.hpp"

namespace heddle::replay {

/// Hash of a seed and a task, independent of everything else.
[[nodiscard]] inline std::uint64_t mixed(std::uint64_t seed, NodeId node, std::int64_t order) {
  const auto scramble = [](std::uint64_t z) {  // SplitMix64
    z += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30U) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27U) * 0x94D049BB133111EBU;
    return z ^ z >> 31U;
  };
  return scramble(scramble(scramble(seed) ^ static_cast<std::uint64_t>(node.value())) ^
                  static_cast<std::uint64_t>(order));
}

}  // namespace heddle::replay
