#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "algorithms/matrix/source.hpp"

namespace heddle {

enum class GeneratorKind : std::uint8_t {
  random,    ///< uniform in (-1, 1)
  spd,       ///< symmetric positive definite with a given 2-norm condition number
  kriging,   ///< covariance of a Gaussian process at random points of the unit square
  lehmer,    ///< min(i, j) / max(i, j), counted from 1: positive definite, its inverse tridiagonal
  identity,  ///< ones on the diagonal
};

/// The kind that is called `name` in configurations; nothing when there is none.
[[nodiscard]] std::optional<GeneratorKind> generator_kind(std::string_view name);
[[nodiscard]] std::string_view generator_name(GeneratorKind kind);

struct GeneratorOptions {
  GeneratorKind kind = GeneratorKind::spd;
  std::int64_t n = 0;             ///< columns
  std::optional<std::int64_t> m;  ///< rows; n when left out; spd and kriging are square
  std::uint64_t seed = 1;         ///< random, spd, kriging
  double condition = 1.0e4;       ///< spd: largest over smallest eigenvalue, >= 1
  double range = 0.1;             ///< kriging: length of the correlation, the square's side is 1
  double smoothness = 1.5;        ///< kriging: of the Matern function, in (0, 20]
  double nugget = 1.0e-2;         ///< kriging: added to the unit variance on the diagonal, >= 0
};

/// A source that computes its elements.
///
/// Element (i, j) depends on the options, i and j alone: any grid, tile size and order of reading
/// gives the same bits. random, spd, lehmer and identity, and kriging with smoothness 0.5, 1.5
/// or 2.5 use correctly rounded operations alone and so have the same bits on all processors;
/// kriging with another smoothness calls the standard library's Bessel function. All but random are
/// symmetric to the bit when square.
///
/// - spd: A = H2 H1 D H1 H2 with two random Householder reflectors and the eigenvalues D, geometric
///   from 1 to 1 / condition, in random order: a diagonal plus a matrix of rank 4. Keeps 5 n
///   numbers.
/// - kriging: the points are sorted along a Morton curve, so that near rows are near points. The
///   Matern correlation is that of Rasmussen and Williams (2006), equation 4.14. Keeps 2 n numbers.
///
/// Throws Error(usage) that names the option that makes no sense, and its value.
[[nodiscard]] std::unique_ptr<MatrixSource> make_generator(const GeneratorOptions& options);

}  // namespace heddle
