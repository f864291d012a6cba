#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "algorithms/matrix/source.hpp"

namespace heddle {

enum class GeneratorKind : std::uint8_t {
  spd,          ///< symmetric positive definite with a given 2-norm condition number
  random,       ///< uniform in (-1, 1)
  kriging,      ///< covariance of a Gaussian process at random points of the unit square
  lehmer,       ///< min(i, j) / max(i, j), counted from 1: positive definite, inverse tridiagonal
  identity,     ///< ones on the diagonal
  conditioned,  ///< general with a given 2-norm condition number
  graded,       ///< random columns of geometrically falling length
  dependent,    ///< random columns, then others near to the space that they span
  polynomial,   ///< powers of points in [-1, 1]: the fit of a polynomial
};

/// What the kinds are called in configurations, in their order.
[[nodiscard]] std::span<const std::string_view> generator_names();

/// The kind that is called `name` in configurations; nothing when there is none.
[[nodiscard]] std::optional<GeneratorKind> generator_kind(std::string_view name);
[[nodiscard]] std::string_view generator_name(GeneratorKind kind);

struct GeneratorOptions {
  GeneratorKind kind = GeneratorKind::spd;
  std::int64_t n = 0;             ///< columns
  std::optional<std::int64_t> m;  ///< rows; n when left out; spd and kriging are square
  std::uint64_t seed = 1;         ///< all but lehmer, identity and polynomial
  double condition = 1.0e4;       ///< >= 1, the largest over the smallest, of spd: eigenvalue;
                                  ///< conditioned: singular value; graded: scale of a column
  double range = 0.1;             ///< kriging: length of the correlation, the square's side is 1
  double smoothness = 1.5;        ///< kriging: of the Matern function, in (0, 20]
  double nugget = 1.0e-2;         ///< kriging: added to the unit variance on the diagonal, >= 0
  std::optional<std::int64_t> rank{};  ///< dependent: independent columns, 0 to n; n - 1 when
                                       ///< left out
  double distance = 1.0e-10;           ///< dependent: largest deviation from the dependence, >= 0
};

/// Allocates nothing.
void check_generator(const GeneratorOptions& options);
/// What the source keeps in memory, and needs to make it, at most.
[[nodiscard]] std::uint64_t generator_bytes(const GeneratorOptions& options);

/// A source that computes its elements.
///
/// Element (i, j) depends on the options, i and j alone: any grid, tile size and order of reading
/// gives the same bits. All kinds but kriging, and kriging with smoothness 0.5, 1.5 or 2.5, use
/// correctly rounded operations alone and so have the same bits on all processors; kriging with
/// another smoothness calls the standard library's Bessel function. spd and kriging, and lehmer and
/// identity when square, are symmetric to the bit.
///
/// - spd: A = H2 H1 D H1 H2 with two random Householder reflectors and the eigenvalues D, geometric
///   from 1 to 1 / condition, in random order: a diagonal plus a matrix of rank 4. Keeps 9 n
///   numbers.
/// - kriging: the points are sorted along a Morton curve, so that near rows are near points. The
///   Matern correlation is that of Rasmussen and Williams (2006), equation 4.14. Keeps 6 n numbers.
/// - conditioned: A = H2 H1 D G1 G2 with random Householder reflectors H of size m and G of size n,
///   and min(m, n) singular values on the diagonal of D, as spd has its eigenvalues. Keeps
///   5 m + 4 n numbers.
/// - graded: entries uniform in (-1, 1), column j times condition^(-j / (n - 1)).
/// - dependent: the first `rank` columns are uniform in (-1, 1). Each later one is a combination of
///   up to three of these, chosen at random with random coefficients in (-1, 1), plus `distance`
///   times a column that is uniform in (-1, 1). A distance of 0 leaves rounding alone; the matrix
///   of rank 0 is then zero.
/// - polynomial: element (i, j) is t_i^j, t_i = -1 + 2 i / (m - 1) correctly rounded (0 when m is
///   1) and the power by repeated squaring.
///
/// Throws Error(usage) that names the option that makes no sense, and its value, as
/// check_generator() does.
[[nodiscard]] std::unique_ptr<MatrixSource> make_generator(const GeneratorOptions& options);

}  // namespace heddle
