#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/index.hpp"
#include "kernels/kernel.hpp"

/// What several generators are made of. Internal to this folder.
namespace heddle {

/// Column `j` of a block.
[[nodiscard]] inline std::span<double> column_of(const TileView& out, std::int64_t j) {
  return {&out(0, j), static_cast<std::size_t>(out.rows)};
}

/// Calls set(element (i, i), i) for the diagonal elements of the block that begins at (row,
/// column).
template <class Set>
void for_diagonal(GlobalRow row, GlobalColumn column, const TileView& out, const Set& set) {
  const std::int64_t begin = std::max(row.value(), column.value());
  const std::int64_t end = std::min(row.value() + out.rows, column.value() + out.columns);
  for (std::int64_t i = begin; i < end; ++i) set(out(i - row.value(), i - column.value()), i);
}

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

}  // namespace heddle
