#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "kernels/kernel.hpp"

namespace heddle::test {

/// A tile in a buffer of its own with sentinels before it, behind it, and in the gap between its
/// rows and its leading dimension. The destructor fails the test if a sentinel has changed.
class GuardedTile {
 public:
  GuardedTile(std::int64_t rows, std::int64_t columns, std::int64_t gap = 3)
      : view_{nullptr, rows, columns, rows + gap},
        buffer_(static_cast<std::size_t>(2 * guard + (rows + gap) * columns), sentinel) {
    view_.data = buffer_.data() + guard;
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) view_(i, j) = 0;
    }
  }
  GuardedTile(const GuardedTile&) = delete;
  GuardedTile& operator=(const GuardedTile&) = delete;
  ~GuardedTile() { EXPECT_TRUE(guards_are_whole()); }

  [[nodiscard]] const TileView& view() const { return view_; }
  double& operator()(std::int64_t i, std::int64_t j) const { return view_(i, j); }
  [[nodiscard]] std::int64_t rows() const { return view_.rows; }
  [[nodiscard]] std::int64_t columns() const { return view_.columns; }

  void fill_random(std::mt19937_64& random) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (std::int64_t j = 0; j < columns(); ++j) {
      for (std::int64_t i = 0; i < rows(); ++i) view_(i, j) = uniform(random);
    }
  }

  void copy_from(const GuardedTile& other) {
    for (std::int64_t j = 0; j < columns(); ++j) {
      for (std::int64_t i = 0; i < rows(); ++i) view_(i, j) = other(i, j);
    }
  }

  [[nodiscard]] bool same_bits(const GuardedTile& other) const {
    for (std::int64_t j = 0; j < columns(); ++j) {
      for (std::int64_t i = 0; i < rows(); ++i) {
        if (bits(view_(i, j)) != bits(other(i, j))) return false;
      }
    }
    return rows() == other.rows() && columns() == other.columns();
  }

 private:
  static constexpr std::int64_t guard = 16;
  static constexpr double sentinel = -7.25e77;

  static std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

  [[nodiscard]] bool guards_are_whole() const {
    const auto size = static_cast<std::int64_t>(buffer_.size());
    for (std::int64_t at = 0; at < size; ++at) {
      const std::int64_t inside = at - guard;
      const bool in_tile = inside >= 0 && inside < view_.leading * view_.columns &&
                           inside % view_.leading < view_.rows;
      if (!in_tile && bits(buffer_[static_cast<std::size_t>(at)]) != bits(sentinel)) return false;
    }
    return true;
  }

  TileView view_;
  std::vector<double> buffer_;
};

/// Runs a kernel on views, main output first.
template <class Parameters>
std::int64_t run(const Kernel& kernel, const Parameters& parameters,
                 const std::vector<TileView>& tiles) {
  const KernelParameters packed(parameters);
  return kernel.host({tiles, packed});
}

}  // namespace heddle::test
