#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/element_formulas.hpp"
#include "kernels/kernels.hpp"

namespace heddle::host {

/// Inner loops of generated matrices, once for any processor and once for processors with wider
/// vectors; both give the same bits. `out` is a part of a column.
struct GeneratorLoops {
  std::string_view name;

  /// Uniform in (-1, 1), symmetric about 0 and never 0, 51 random bits: elements from (row, column)
  /// on of the infinite matrix of this seed and stream. row, column < 2^56.
  void (*uniform)(std::uint64_t seed, kernel::RandomStream stream, std::int64_t row,
                  std::int64_t column, std::span<double> out);

  /// Elements of -((l0 r0' + l1 r1') + (l2 r2' + l3 r3')): numbers of the rows, and of the column.
  void (*low_rank)(const std::array<const double*, 4>& left, const std::array<double, 4>& right,
                   std::span<double> out);

  /// Distances of points (x, y) from (x0, y0), in units of 1 / scale.
  void (*distance)(const double* x, const double* y, double x0, double y0, double scale,
                   std::span<double> out);

  /// Replaces each scaled distance by its correlation, of one of the Matern kinds.
  void (*matern)(kernel::ElementKind kind, std::span<double> out);
};

/// The loops for this processor.
[[nodiscard]] const GeneratorLoops& generator_loops();

/// All that this processor can run; the first runs everywhere.
[[nodiscard]] std::vector<const GeneratorLoops*> usable_generator_loops();

}  // namespace heddle::host
