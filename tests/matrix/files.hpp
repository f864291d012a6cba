#pragma once

#include <bit>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "algorithms/matrix/source.hpp"
#include "kernels/kernel.hpp"
#include "tests/support/files.hpp"

namespace heddle::testing {

[[nodiscard]] inline bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// A block with memory of its own, and sentinels below each column that writers must not touch.
class Block {
 public:
  static constexpr double sentinel = -77.25;

  Block(std::int64_t rows, std::int64_t columns)
      : rows_(rows),
        columns_(columns),
        elements_(static_cast<std::size_t>((rows + 3) * columns + 1), sentinel) {}

  [[nodiscard]] TileView view() { return {elements_.data(), rows_, columns_, rows_ + 3}; }
  [[nodiscard]] double operator()(std::int64_t i, std::int64_t j) const {
    return elements_[static_cast<std::size_t>(i + j * (rows_ + 3))];
  }
  [[nodiscard]] bool has_all_sentinels() const {
    for (std::int64_t j = 0; j < columns_; ++j) {
      for (std::int64_t i = rows_; i < rows_ + 3; ++i) {
        if ((*this)(i, j) != sentinel) return false;
      }
    }
    return elements_.back() == sentinel;
  }

 private:
  std::int64_t rows_;
  std::int64_t columns_;
  std::vector<double> elements_;
};

/// The block of `source` that begins at (row, column).
inline Block read_block(const MatrixSource& source, std::int64_t row, std::int64_t column,
                        std::int64_t rows, std::int64_t columns) {
  Block block(rows, columns);
  source.read(GlobalRow{row}, GlobalColumn{column}, block.view());
  EXPECT_TRUE(block.has_all_sentinels());
  return block;
}

inline Block read_all(const MatrixSource& source) {
  return read_block(source, 0, 0, source.rows(), source.columns());
}

/// All rows of all columns.
inline WantedRows all_rows(std::int64_t rows) {
  return [rows](GlobalColumn, std::vector<RowRange>& ranges) {
    ranges.push_back({GlobalRow{0}, GlobalRow{rows}});
  };
}

}  // namespace heddle::testing
