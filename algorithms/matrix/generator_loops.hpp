#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace heddle {

/// Random numbers of one seed are parted into streams that never meet.
enum class RandomStream : std::uint32_t {
  entries,
  order,
  reflectors,
  points,
  combinations,
  coefficients
};

/// Closed forms of the Matern correlation by their smoothness.
enum class MaternForm : std::uint8_t { half, three_halves, five_halves };

/// The vectors of A = -((l0 r0' + l1 r1') + (l2 r2' + l3 r3')) + diagonal: `left` has an element
/// for each row of A, `right` one for each column.
struct LowRankVectors {
  std::array<std::span<const double>, 4> left, right;
};

/// Inner loops of the generators, once for any processor and once for processors with wider
/// vectors; both give the same bits. Element k of `out` belongs to row `row + k`.
struct GeneratorLoops {
  std::string_view name;

  /// Uniform in (-1, 1), symmetric about 0 and never 0, 51 random bits: element (row, column) of
  /// the infinite matrix of this seed and stream. row, column < 2^56.
  void (*uniform)(std::uint64_t seed, RandomStream stream, std::int64_t row, std::int64_t column,
                  std::span<double> out);

  /// Column `column` of the low-rank matrix, without the diagonal.
  void (*low_rank)(const LowRankVectors& vectors, std::int64_t row, std::int64_t column,
                   std::span<double> out);

  /// out[k] = distance of point row + k from point `column`, in units of 1 / scale.
  void (*distance)(std::span<const double> x, std::span<const double> y, double scale,
                   std::int64_t row, std::int64_t column, std::span<double> out);

  /// Replaces each scaled distance s = sqrt(2 smoothness) d / range by its correlation.
  void (*matern)(MaternForm form, std::span<double> out);
};

/// The loops for this processor.
[[nodiscard]] const GeneratorLoops& generator_loops();

/// All that this processor can run; the first runs everywhere.
[[nodiscard]] std::vector<const GeneratorLoops*> usable_generator_loops();

/// 64 random bits: number `index` of the stream.
[[nodiscard]] std::uint64_t random_bits(std::uint64_t seed, RandomStream stream,
                                        std::uint64_t index);

}  // namespace heddle
