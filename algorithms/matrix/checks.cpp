#include "algorithms/matrix/checks.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <fmt/core.h>
#include <utility>
#include <vector>

#include "base/require.hpp"

namespace heddle {

namespace {

/// Without a branch per element, so that it runs at the speed of memory.
bool has_non_finite(const double* values, std::int64_t count) {
  constexpr std::uint64_t exponent = 0x7FF0000000000000U;
  constexpr std::uint64_t carry = 0x0010000000000000U;
  std::uint64_t any = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    // An exponent of ones, and no other, carries into the top bit.
    any |= (std::bit_cast<std::uint64_t>(values[i]) & exponent) + carry;
  }
  return (any >> 63) != 0;
}

std::pair<std::int64_t, std::int64_t> column_major(GlobalRow row, GlobalColumn column) {
  return {column.value(), row.value()};
}

std::vector<double> square_roots(std::span<const double> values) {
  std::vector<double> roots(values.size());
  std::transform(values.begin(), values.end(), roots.begin(),
                 [](double value) { return std::sqrt(std::abs(value)); });
  return roots;
}

}  // namespace

std::optional<NonFinite> find_non_finite(TileView block, GlobalRow row, GlobalColumn column) {
  if (block.rows == 0) return std::nullopt;
  for (std::int64_t j = 0; j < block.columns; ++j) {
    const double* values = &block(0, j);
    if (!has_non_finite(values, block.rows)) continue;
    const auto bad =
        std::find_if(values, values + block.rows, [](double x) { return !std::isfinite(x); });
    return NonFinite{row + (bad - values), column + j, *bad};
  }
  return std::nullopt;
}

std::string describe(const NonFinite& element) {
  return fmt::format("{} at row {}, column {} (counted from 1)", element.value,
                     element.row.value() + 1, element.column.value() + 1);
}

bool comes_before(const NonFinite& a, const NonFinite& b) {
  return column_major(a.row, a.column) < column_major(b.row, b.column);
}

std::optional<Asymmetry> find_asymmetry(TileView block, TileView mirror, GlobalRow row,
                                        GlobalColumn column, std::span<const double> row_diagonal,
                                        std::span<const double> column_diagonal, double tolerance) {
  require(mirror.rows == block.columns && mirror.columns == block.rows,
          "find_asymmetry: a block of {} x {} and a mirror of {} x {}; it must be {} x {}",
          block.rows, block.columns, mirror.rows, mirror.columns, block.columns, block.rows);
  require(std::ssize(row_diagonal) == block.rows && std::ssize(column_diagonal) == block.columns,
          "find_asymmetry: {} and {} elements of the diagonal for a block of {} x {}",
          row_diagonal.size(), column_diagonal.size(), block.rows, block.columns);
  const std::vector<double> row_scale = square_roots(row_diagonal);
  const std::vector<double> column_scale = square_roots(column_diagonal);
  std::optional<Asymmetry> worst;
  const auto compare = [&](std::int64_t i, std::int64_t j) {
    const double value = block(i, j);
    const double mirrored = mirror(j, i);
    const double difference = std::abs(value - mirrored);
    if (!(difference > 0.0)) return;
    const double scale = std::max(
        {std::abs(value), std::abs(mirrored),
         row_scale[static_cast<std::size_t>(i)] * column_scale[static_cast<std::size_t>(j)]});
    const double relative = difference / scale;
    if (!(relative > tolerance)) return;
    const Asymmetry found{row + i, column + j, value, mirrored, difference, relative};
    if (!worst || is_worse(found, *worst)) worst = found;
  };
  // Small squares: the mirror is walked across its columns.
  constexpr std::int64_t square = 8;
  for (std::int64_t j = 0; j < block.columns; j += square) {
    const std::int64_t j_end = std::min(j + square, block.columns);
    for (std::int64_t i = 0; i < block.rows; i += square) {
      const std::int64_t i_end = std::min(i + square, block.rows);
      for (std::int64_t jj = j; jj < j_end; ++jj) {
        for (std::int64_t ii = i; ii < i_end; ++ii) compare(ii, jj);
      }
    }
  }
  return worst;
}

std::optional<Asymmetry> find_asymmetry(const MatrixSource& source, TileView block, GlobalRow row,
                                        GlobalColumn column, double tolerance) {
  if (source.is_symmetric() || block.rows == 0 || block.columns == 0) return std::nullopt;
  std::vector<double> elements(static_cast<std::size_t>(block.rows * block.columns));
  const TileView mirror{elements.data(), block.columns, block.rows, block.columns};
  source.read(GlobalRow{column.value()}, GlobalColumn{row.value()}, mirror);
  std::vector<double> row_diagonal(static_cast<std::size_t>(block.rows));
  std::vector<double> column_diagonal(static_cast<std::size_t>(block.columns));
  source.read_diagonal(row.value(), row_diagonal);
  source.read_diagonal(column.value(), column_diagonal);
  return find_asymmetry(block, mirror, row, column, row_diagonal, column_diagonal, tolerance);
}

std::string describe(const Asymmetry& pair) {
  const std::int64_t i = pair.row.value() + 1;
  const std::int64_t j = pair.column.value() + 1;
  return fmt::format(
      "element ({}, {}) is {} but element ({}, {}) is {}, difference {:.3g} (counted from 1)", i, j,
      pair.value, j, i, pair.mirrored, pair.difference);
}

bool is_worse(const Asymmetry& a, const Asymmetry& b) {
  if (a.relative != b.relative) return a.relative > b.relative;
  return column_major(a.row, a.column) < column_major(b.row, b.column);
}

}  // namespace heddle
