#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <type_traits>
#include <vector>

#include "node-runtime/collectives/execution/seal.hpp"
#include "tests/collectives/simulation/part.hpp"

/// Inputs of ranks, and what they must reduce to.
namespace heddle::testing {

/// Scalar i of block `block` of the input of a rank.
template <class T>
T value_of(std::uint64_t seed, std::int32_t rank, std::int32_t block, std::int64_t i) {
  const std::uint64_t h =
      collectives::mixed(collectives::mixed(seed, (static_cast<std::uint64_t>(rank) << 32U) +
                                                      static_cast<std::uint64_t>(block)),
                         static_cast<std::uint64_t>(i));
  if constexpr (std::is_same_v<T, double>) {
    return static_cast<double>(h >> 11U) * 0x1p-52 - 1;
  } else if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(h >> 40U) * 0x1p-23F - 1;
  } else {
    return static_cast<T>(h);
  }
}

/// What an operation makes of two scalars, written down once more.
template <class T>
T combined(std::uint32_t operation, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (operation) {
      case 0:
        return a + b;
      case 1:
        return a * b;
      case 2:
        return std::min(a, b);
      default:
        return std::max(a, b);
    }
  } else {
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    switch (operation) {
      case 0:
        return static_cast<T>(x + y);
      case 1:
        return static_cast<T>(x * y);
      case 2:
        return std::min(a, b);
      case 3:
        return std::max(a, b);
      case 4:
        return static_cast<T>(x & y);
      case 5:
        return static_cast<T>(x | y);
      case 6:
        return static_cast<T>(x ^ y);
      case 7:
        return static_cast<T>(a != 0 && b != 0);
      case 8:
        return static_cast<T>(a != 0 || b != 0);
      default:
        return static_cast<T>((a != 0) != (b != 0));
    }
  }
}

/// What ranks' inputs reduce to, by the definition of the bracket (decision 035).
template <class T>
class Reductions final : public References {
 public:
  using Input = std::function<std::vector<T>(std::int32_t rank)>;
  /// Of ranks [0, end).
  const std::vector<T>& up_to(std::int32_t end, std::uint32_t operation, const Input& input) {
    const auto found = of_.find(end);
    if (found != of_.end()) return found->second;
    return of_.emplace(end, bracket(0, end, operation, input)).first->second;
  }

 private:
  static std::vector<T> bracket(std::int32_t begin, std::int32_t end, std::uint32_t operation,
                                const Input& input) {
    if (end - begin == 1) return input(begin);
    std::int32_t left = 1;
    while (2 * left < end - begin) left *= 2;
    std::vector<T> a = bracket(begin, begin + left, operation, input);
    const std::vector<T> b = bracket(begin + left, end, operation, input);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = combined(operation, a[i], b[i]);
    return a;
  }

  std::map<std::int32_t, std::vector<T>> of_;
};

}  // namespace heddle::testing
