#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bench/peers/peer.hpp"

namespace heddle::peer {

/// A matrix, or the tiles of its lower triangle, in square tiles, smaller at the lower and right
/// edge; column-major and contiguous each.
class TileMatrix {
 public:
  enum class Part : std::uint8_t { all, lower };

  TileMatrix(std::int64_t m, std::int64_t n, std::int64_t block, Part part)
      : m_(m),
        n_(n),
        block_(block),
        part_(part),
        tile_rows_(static_cast<int>((m + block - 1) / block)),
        tile_columns_(static_cast<int>((n + block - 1) / block)) {
    tiles_.resize(static_cast<std::size_t>(tile_rows_) * static_cast<std::size_t>(tile_columns_));
    for_each_tile(
        [&](int i, int j) { tiles_[at(i, j)] = Buffer(std::int64_t{rows(i)} * columns(j)); });
  }

  [[nodiscard]] int tile_rows() const { return tile_rows_; }
  [[nodiscard]] int tile_columns() const { return tile_columns_; }
  /// Rows in tile row i.
  [[nodiscard]] int rows(int i) const {
    return static_cast<int>(std::min(block_, m_ - i * block_));
  }
  /// Columns in tile column j.
  [[nodiscard]] int columns(int j) const {
    return static_cast<int>(std::min(block_, n_ - j * block_));
  }
  [[nodiscard]] double* tile(int i, int j) const { return tiles_[at(i, j)].data(); }

  /// What stands in row i and column j of the matrix.
  [[nodiscard]] double element(std::int64_t i, std::int64_t j) const {
    const auto tile_row = static_cast<int>(i / block_);
    const auto tile_column = static_cast<int>(j / block_);
    return tile(tile_row, tile_column)[i % block_ + j % block_ * rows(tile_row)];
  }

  /// Sets each element of each tile to value(i, j), of its row and column in the matrix.
  template <class Value>
  void generate(Value value) {
    for_each_tile([&](int i, int j) {
      double* element = tile(i, j);
      for (std::int64_t column = j * block_; column < j * block_ + columns(j); ++column) {
        for (std::int64_t row = i * block_; row < i * block_ + rows(i); ++row) {
          *element++ = value(row, column);
        }
      }
    });
  }

 private:
  [[nodiscard]] std::size_t at(int i, int j) const {
    return static_cast<std::size_t>(i) +
           static_cast<std::size_t>(j) * static_cast<std::size_t>(tile_rows_);
  }

  template <class Visit>
  void for_each_tile(Visit visit) {
    for (int j = 0; j < tile_columns_; ++j) {
      for (int i = part_ == Part::lower ? j : 0; i < tile_rows_; ++i) visit(i, j);
    }
  }

  std::int64_t m_;
  std::int64_t n_;
  std::int64_t block_;
  Part part_;
  int tile_rows_;
  int tile_columns_;
  std::vector<Buffer> tiles_;
};

}  // namespace heddle::peer
