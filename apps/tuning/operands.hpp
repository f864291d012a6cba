#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernel.hpp"

namespace heddle::tuning {

/// Standard normal numbers, the same in each run: how much power a GPU takes, and with it the
/// clock that it holds, depends on the data; zeros and uniform numbers run faster than what
/// factorizations meet.
class NormalValues {
 public:
  NormalValues();

  /// Their number is no multiple of a tile's, so that tiles filled from them one after the other
  /// have no equal columns.
  [[nodiscard]] std::span<const double> values() const { return values_; }
  void fill(std::span<double> elements) const;

 private:
  std::vector<double> values_;
};

/// Tiles of a panel, which all workers read: in a factorization, too, what updates is read by all
/// of them, for as long as a step takes, and comes from their common caches.
class SharedPanel {
 public:
  static constexpr std::int64_t tiles = 16;

  /// Tiles of up to so many elements.
  SharedPanel(std::int64_t elements, const NormalValues& normal);

  /// They begin again behind the last one.
  [[nodiscard]] TileView tile(std::int64_t i, std::int64_t rows, std::int64_t columns);

 private:
  std::int64_t elements_;
  std::vector<double> memory_;
};

/// On the diagonal of a symmetric matrix of order n with normal elements, whose eigenvalues are
/// within 2 sqrt(n): it is positive definite then.
[[nodiscard]] double definite_diagonal(std::int64_t n);

/// Of `seconds`, to the nanosecond and at least one: digits behind that mean nothing in a file.
[[nodiscard]] double microseconds(double seconds);

}  // namespace heddle::tuning
