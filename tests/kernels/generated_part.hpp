#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "kernels/element_formulas.hpp"
#include "kernels/kernels.hpp"
#include "tests/kernels/guarded_tile.hpp"

namespace heddle::test {

inline constexpr std::array matern_kinds{kernel::ElementKind::matern_half,
                                         kernel::ElementKind::matern_three_halves,
                                         kernel::ElementKind::matern_five_halves};
inline constexpr std::array all_element_kinds{kernel::ElementKind::uniform,
                                              kernel::ElementKind::scaled,
                                              kernel::ElementKind::combined,
                                              kernel::ElementKind::powers,
                                              kernel::ElementKind::ratio,
                                              kernel::ElementKind::identity,
                                              kernel::ElementKind::low_rank,
                                              kernel::ElementKind::matern_half,
                                              kernel::ElementKind::matern_three_halves,
                                              kernel::ElementKind::matern_five_halves};

/// Where a part begins in its matrix, and its shape.
struct PartPlace {
  std::int64_t row, column, rows, columns, offset;
  bool is_lower;
};
inline constexpr std::array part_places{
    PartPlace{0, 0, 40, 40, 0, false},      PartPlace{0, 0, 40, 40, 0, true},
    PartPlace{3, 5, 1, 1, 2, false},        PartPlace{1021, 1003, 35, 67, 9, true},
    PartPlace{1003, 1021, 35, 67, 0, true}, PartPlace{70000, 11, 1300, 3, 4, false},
    PartPlace{7, 90000, 2, 300, 0, false},  PartPlace{5, 5, 0, 4, 0, false},
    PartPlace{5, 5, 4, 0, 0, true}};

/// A part of a generated matrix: the numbers that it is made of, and what it must be.
class GeneratedPart {
 public:
  GeneratedPart(kernel::ElementKind kind, const PartPlace& place)
      : parameters_{.seed = 0x123456789abcdef,
                    .row = place.row,
                    .column = place.column,
                    .offset = static_cast<std::int32_t>(place.offset),
                    .kind = kind,
                    .is_lower = static_cast<std::int16_t>(place.is_lower ? 1 : 0)} {
    const kernel::ElementNumbers numbers = kernel::numbers_of(kind);
    std::mt19937_64 random(11);
    if (numbers.of_column > 0) {
      columns_.emplace(place.offset + place.columns + 3, numbers.of_column);
      columns_->fill_random(random);
    }
    if (numbers.of_row > 0) {
      rows_.emplace(place.rows, numbers.of_row);
      rows_->fill_random(random);
    }
    for (std::int64_t j = 0; kind == kernel::ElementKind::combined && j < columns_->rows(); ++j) {
      (*columns_)(j, 0) = static_cast<double>(j % 5 - 1);
      for (std::int64_t k = 1; k < 4; ++k) (*columns_)(j, k) = static_cast<double>(10 * j + k);
    }
  }

  [[nodiscard]] const kernel::GenerateParameters& parameters() const { return parameters_; }
  /// The tiles of the kernel.
  [[nodiscard]] std::vector<GuardedTile*> with_inputs(GuardedTile& out) {
    std::vector<GuardedTile*> tiles{&out};
    if (columns_) tiles.push_back(&*columns_);
    if (rows_) tiles.push_back(&*rows_);
    return tiles;
  }

  /// Element (i, j) of the part.
  [[nodiscard]] double element(std::int64_t i, std::int64_t j) const {
    const std::int64_t row = parameters_.row + i;
    const std::int64_t column = parameters_.column + j;
    if (parameters_.is_lower != 0 && row < column) return 0;
    const auto c = [&](std::int64_t k) { return (*columns_)(parameters_.offset + j, k); };
    const auto r = [&](std::int64_t k) { return (*rows_)(i, k); };
    const bool diagonal = row == column;
    switch (parameters_.kind) {
      case kernel::ElementKind::uniform:
        return uniform(row, column);
      case kernel::ElementKind::scaled:
        return uniform(row, column) * c(0);
      case kernel::ElementKind::combined:
        return combined(row, column, j);
      case kernel::ElementKind::powers:
        return power(r(0), column);
      case kernel::ElementKind::ratio:
        return kernel::ratio_element(static_cast<double>(row + 1), static_cast<double>(column + 1));
      case kernel::ElementKind::identity:
        return diagonal ? 1 : 0;
      case kernel::ElementKind::low_rank: {
        const double value =
            kernel::low_rank_element(r(0), c(0), r(1), c(1), r(2), c(2), r(3), c(3));
        return diagonal ? value + r(4) : value;
      }
      default:
        break;
    }
    if (diagonal) return c(3);
    const double s = kernel::scaled_distance(r(0), r(1), c(0), c(1), c(2));
    if (parameters_.kind == kernel::ElementKind::matern_half) return kernel::matern_half(s);
    return parameters_.kind == kernel::ElementKind::matern_three_halves
               ? kernel::matern_three_halves(s)
               : kernel::matern_five_halves(s);
  }

 private:
  [[nodiscard]] double uniform(std::int64_t row, std::int64_t column) const {
    return kernel::uniform_element(kernel::key_of(parameters_.seed), kernel::RandomStream::entries,
                                   static_cast<std::uint64_t>(row),
                                   static_cast<std::uint64_t>(column));
  }
  [[nodiscard]] double combined(std::int64_t row, std::int64_t column, std::int64_t j) const {
    const auto c = [&](std::int64_t k) { return (*columns_)(parameters_.offset + j, k); };
    if (c(0) < 0) return uniform(row, column);
    double sum = 0;
    for (std::int64_t k = 0; k < static_cast<std::int64_t>(c(0)); ++k) {
      sum += c(4 + k) * uniform(row, static_cast<std::int64_t>(c(1 + k)));
    }
    return sum + c(7) * uniform(row, column);
  }
  static double power(double base, std::int64_t exponent) {
    double result = 1;
    for (; exponent > 0; exponent /= 2) {
      if (exponent % 2 != 0) result *= base;
      base *= base;
    }
    return result;
  }

  kernel::GenerateParameters parameters_;
  std::optional<GuardedTile> columns_;
  std::optional<GuardedTile> rows_;
};

}  // namespace heddle::test
