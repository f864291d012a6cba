#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/element_formulas.hpp"

/// What several generators are made of. Internal to this folder.
namespace heddle {

/// `count` numbers in geometric progression from 1 to 1 / condition. Square roots, products and
/// quotients alone, which round the same way everywhere.
class GeometricSequence {
 public:
  /// condition >= 1.
  GeometricSequence(std::int64_t count, double condition);

  /// Number k, 0 <= k < count. The first is 1, also when it is the only one.
  [[nodiscard]] double operator()(std::int64_t k) const;

 private:
  std::int64_t steps_;
  double condition_;
  std::array<double, 60> roots_{};  ///< condition^(1/2), condition^(1/4), ...
};

/// The numbers of a GeometricSequence in random order.
[[nodiscard]] std::vector<double> shuffled_sequence(std::int64_t count, double condition,
                                                    std::uint64_t seed);

/// 64 random bits: number `index` of the stream.
[[nodiscard]] std::uint64_t random_bits(std::uint64_t seed, kernel::RandomStream stream,
                                        std::uint64_t index);

}  // namespace heddle
