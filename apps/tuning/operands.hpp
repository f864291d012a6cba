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

/// On the diagonal of a symmetric matrix of order n with normal elements, whose eigenvalues are
/// within 2 sqrt(n): it is positive definite then.
[[nodiscard]] double definite_diagonal(std::int64_t n);

/// Of `seconds`, to the nanosecond and at least one: digits behind that mean nothing in a file.
[[nodiscard]] double microseconds(double seconds);

}  // namespace heddle::tuning
