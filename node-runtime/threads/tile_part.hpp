#pragma once

#include <algorithm>
#include <cstdint>

#include "base/assert.hpp"

namespace heddle {

/// Some of a tile's elements: rows [first_row, first_row + row_count) of all its columns, or of
/// these a triangle that begins in the first of the rows. By default the whole tile.
///
/// Invariant of a part of a given tile (`of_tile`): first_row, row_count >= 0 and first_row +
/// row_count <= rows of the tile.
struct TilePart {
  enum class Shape : std::uint8_t {
    full,
    /// Column j has the first min(j + 1, row_count) of these rows: an upper triangle or trapezoid,
    /// as R.
    upper,
    /// Column j has these rows from j + 1 on: the part strictly below the diagonal, as Householder
    /// vectors. `upper` and `lower` of the same rows are `full`, without overlap.
    lower,
  };
  static constexpr std::int64_t to_the_end = -1;

  Shape shape = Shape::full;
  std::int64_t first_row = 0;
  std::int64_t row_count = to_the_end;

  /// The part of a tile of `rows` rows, its row_count a number. Aborts on rows that the tile has
  /// not.
  [[nodiscard]] TilePart of_tile(std::int64_t rows) const {
    TilePart part = *this;
    if (row_count == to_the_end) part.row_count = rows - first_row;
    HEDDLE_CHECK(
        part.first_row >= 0 && part.row_count >= 0 && part.first_row + part.row_count <= rows,
        "first row {}, {} rows, of a tile with {}", first_row, row_count, rows);
    return part;
  }

  // The functions below need a part that `of_tile` returned.
  /// Where the part's rows of column j begin, counted from first_row, and how many they are.
  [[nodiscard]] std::int64_t begin_of(std::int64_t j) const {
    return shape == Shape::lower ? std::min(j + 1, row_count) : 0;
  }
  [[nodiscard]] std::int64_t count_of(std::int64_t j) const {
    return shape == Shape::upper ? std::min(j + 1, row_count) : row_count - begin_of(j);
  }
  /// Elements of a tile with `columns` columns.
  [[nodiscard]] std::int64_t element_count(std::int64_t columns) const {
    const std::int64_t all = row_count * columns;
    if (shape == Shape::full) return all;
    const std::int64_t corner = std::min(row_count, columns);
    const std::int64_t upper = corner * (corner + 1) / 2 + (columns - corner) * row_count;
    return shape == Shape::upper ? upper : all - upper;
  }

  friend bool operator==(const TilePart&, const TilePart&) = default;
};

}  // namespace heddle
