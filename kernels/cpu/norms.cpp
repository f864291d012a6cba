#include "kernels/cpu/norms.hpp"

#include <array>
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

/// The sum of term(a[i], x[i]).
template <class Term>
double sum_of(std::int64_t count, const double* a, const double* x, Term term) {
  constexpr std::int64_t width = 8;  // sums that a vector register, or several, can hold
  std::array<double, width> sums{};
  std::int64_t i = 0;
  for (; i + width <= count; i += width) {
    for (std::int64_t k = 0; k < width; ++k) {
      sums[static_cast<std::size_t>(k)] += term(a[i + k], x[i + k]);
    }
  }
  for (std::size_t k = 0; i < count; ++i, ++k) sums[k] += term(a[i], x[i]);
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

template <class Term>
void add_transposed(const TileView& a, const TileView& x, const TileView& y, Term term) {
  HEDDLE_CHECK(y.rows == a.columns && x.rows == a.rows && y.columns == x.columns,
               "{} x {} += ({} x {})^T * {} x {}", y.rows, y.columns, a.rows, a.columns, x.rows,
               x.columns);
  for (std::int64_t r = 0; r < y.columns; ++r) {
    for (std::int64_t k = 0; k < a.columns; ++k) {
      y(k, r) += sum_of(a.rows, a.data + k * a.leading, x.data + r * x.leading, term);
    }
  }
}

constexpr auto magnitude = [](double a, double x) { return std::abs(a) * x; };
constexpr auto square = [](double a, double x) {
  const double product = a * x;
  return product * product;
};

}  // namespace

void add_magnitudes(const TileView& a, const TileView& x, const TileView& y) {
  HEDDLE_CHECK(y.rows == a.rows && x.rows == a.columns && y.columns == x.columns,
               "{} x {} += {} x {} * {} x {}", y.rows, y.columns, a.rows, a.columns, x.rows,
               x.columns);
  for (std::int64_t r = 0; r < y.columns; ++r) {
    for (std::int64_t k = 0; k < a.columns; ++k) {
      const double factor = x(k, r);
      for (std::int64_t i = 0; i < a.rows; ++i) y(i, r) += magnitude(a(i, k), factor);
    }
  }
}

void add_magnitudes_transposed(const TileView& a, const TileView& x, const TileView& y) {
  add_transposed(a, x, y, magnitude);
}

void add_magnitudes_symmetric(const TileView& a, const TileView& x, const TileView& y) {
  HEDDLE_CHECK(a.rows == a.columns, "a symmetric tile of {} x {}", a.rows, a.columns);
  for (std::int64_t k = 0; k < a.columns; ++k) {
    const std::int64_t below = a.rows - k - 1;
    const auto rows = [&](const TileView& of) { return of.block(k + 1, 0, below, of.columns); };
    const auto row = [&](const TileView& of) { return of.block(k, 0, 1, of.columns); };
    add_magnitudes(a.block(k, k, below + 1, 1), row(x), y.block(k, 0, below + 1, y.columns));
    add_magnitudes_transposed(a.block(k + 1, k, below, 1), rows(x), row(y));
  }
}

void add_squares_transposed(const TileView& a, const TileView& x, const TileView& y) {
  add_transposed(a, x, y, square);
}

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
