#include "kernels/cpu/norms.hpp"

#include <array>
#include <cmath>
#include <cstddef>

#include "base/assert.hpp"

namespace heddle::host {
namespace {

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

void add_magnitudes_symmetric(const TileView& piece, std::int64_t offset, const TileView& x,
                              const TileView& y) {
  for (std::int64_t k = 0; k < piece.columns; ++k) {
    const std::int64_t diagonal = offset + k;
    const auto rows = [&](const TileView& of, std::int64_t begin, std::int64_t count) {
      return of.block(begin, 0, count, of.columns);
    };
    const TileView column = piece.block(0, k, piece.rows, 1);
    const std::int64_t count = piece.rows - diagonal;
    add_magnitudes(rows(column, diagonal, count), rows(x, diagonal, 1), rows(y, diagonal, count));
    add_magnitudes_transposed(rows(column, diagonal + 1, count - 1),
                              rows(x, diagonal + 1, count - 1), rows(y, diagonal, 1));
  }
}

void add_squares_transposed(const TileView& a, const TileView& x, const TileView& y) {
  add_transposed(a, x, y, square);
}

}  // namespace heddle::host
