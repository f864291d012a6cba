#include "kernels/cpu/norms.hpp"

#include <cmath>
#include <cstddef>
#include <limits>

#include "base/assert.hpp"

namespace heddle::host {
namespace {

void check_room(std::span<const double> sums, std::int64_t count) {
  HEDDLE_CHECK(static_cast<std::int64_t>(sums.size()) >= count, "{} sums for {} rows or columns",
               sums.size(), count);
}

void check_piece(const TileView& piece, std::int64_t offset) {
  HEDDLE_CHECK(offset >= 0 && offset + piece.columns <= piece.rows,
               "a piece of {} columns at {} in a tile of {} rows", piece.columns, offset,
               piece.rows);
}

}  // namespace

void add_column_sums(const TileView& tile, std::span<double> columns, double unit) {
  check_room(columns, tile.columns);
  for (std::int64_t j = 0; j < tile.columns; ++j) {
    double sum = 0;
    for (std::int64_t i = 0; i < tile.rows; ++i) sum += std::abs(tile(i, j)) * unit;
    columns[static_cast<std::size_t>(j)] += sum;
  }
}

void add_row_sums(const TileView& tile, std::span<double> rows, double unit) {
  check_room(rows, tile.rows);
  for (std::int64_t j = 0; j < tile.columns; ++j) {
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      rows[static_cast<std::size_t>(i)] += std::abs(tile(i, j)) * unit;
    }
  }
}

void add_symmetric_sums(const TileView& piece, std::int64_t offset, std::span<double> sums,
                        double unit) {
  check_piece(piece, offset);
  check_room(sums, piece.rows);
  for (std::int64_t j = 0; j < piece.columns; ++j) {
    const std::int64_t diagonal = offset + j;
    double mirrored = std::abs(piece(diagonal, j)) * unit;
    for (std::int64_t i = diagonal + 1; i < piece.rows; ++i) {
      const double value = std::abs(piece(i, j)) * unit;
      sums[static_cast<std::size_t>(i)] += value;
      mirrored += value;
    }
    sums[static_cast<std::size_t>(diagonal)] += mirrored;
  }
}

double max_abs(const TileView& tile) {
  double largest = 0;
  for (std::int64_t j = 0; j < tile.columns; ++j) {
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      const double value = std::abs(tile(i, j));
      if (std::isnan(value)) return std::numeric_limits<double>::quiet_NaN();
      if (value > largest) largest = value;
    }
  }
  return largest;
}

}  // namespace heddle::host
