#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/memory_block.hpp"
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

/// Normal numbers, in huge pages as the tiles of matrices are: with small ones updates of tiles
/// are slower by a tenth where pages are looked up for a virtual machine.
class NormalElements {
 public:
  NormalElements() = default;
  NormalElements(std::int64_t count, const NormalValues& normal);

  [[nodiscard]] double* data() const { return reinterpret_cast<double*>(block_.get()); }
  [[nodiscard]] std::int64_t count() const { return count_; }

 private:
  MemoryBlock block_;
  std::int64_t count_ = 0;
};

/// A panel of a step, which all workers read: in a factorization, too, what updates is read by all
/// of them, for as long as a step takes, and comes from their common caches. It is as tall as
/// there, or small tiles of it would stay in a core's own caches.
class SharedPanel {
 public:
  static constexpr std::int64_t usual_height = 8192;

  /// As tall as a matrix of `height` rows, or one tile. Its tiles have up to `rows_max` rows and
  /// `columns_max` columns.
  SharedPanel(std::int64_t height, std::int64_t rows_max, std::int64_t columns_max,
              const NormalValues& normal);

  /// Which two tiles of `rows` rows an update reads, of those that `workers` take one after the
  /// other, down a column, then down the next: this worker's next one is some tiles further down.
  struct Pair {
    std::int64_t row = 0;
    std::int64_t column = 0;
  };
  [[nodiscard]] Pair pair(std::int64_t run, std::int32_t worker, std::int32_t workers,
                          std::int64_t rows) const;

  /// They begin again behind the last one.
  [[nodiscard]] TileView tile(std::int64_t i, std::int64_t rows, std::int64_t columns);

 private:
  [[nodiscard]] std::int64_t tiles(std::int64_t rows) const;

  std::int64_t height_;
  NormalElements memory_;
};

/// On the diagonal of a symmetric matrix of order n with normal elements, whose eigenvalues are
/// within 2 sqrt(n): it is positive definite then.
[[nodiscard]] double definite_diagonal(std::int64_t n);

/// Of `seconds`, to the nanosecond and at least one: digits behind that mean nothing in a file.
[[nodiscard]] double microseconds(double seconds);

}  // namespace heddle::tuning
