#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/config.hpp"

/// What `heddle solve` solves.
namespace heddle::config {

enum class Factorization : std::uint8_t { cholesky, qr };
enum class MatrixKind : std::uint8_t {
  spd,
  random,
  kriging,
  lehmer,
  identity,
  conditioned,
  graded,
  dependent,
  polynomial
};
enum class RhsKind : std::uint8_t { random };
/// How results are checked.
enum class Verify : std::uint8_t {
  automatic,  ///< the solution by its residual, the factorization by products with random vectors
  full,       ///< the factorization by its residual as a matrix, which takes a second one
  none,
};

/// Source of the matrix. Exactly one of `file` and `generate` is set; the other members apply only
/// with `generate`, for the kinds that the option table lists.
struct Matrix {
  std::optional<std::string> file;     ///< .npy or .mtx, relative to the current directory
  std::optional<MatrixKind> generate;  ///< made tile by tile from `seed`
  std::int64_t n = 0;                  ///< columns
  std::optional<std::int64_t> m;       ///< rows; always set once loaded
  double condition = 1.0e4;            ///< spd, conditioned: 2-norm condition number; graded:
                                       ///< largest over smallest scale of a column
  std::uint64_t seed = 1;
  double range = 0.1;                ///< kriging: correlation length; points lie in the unit square
  double smoothness = 1.5;           ///< kriging: Matern order
  double nugget = 1.0e-2;            ///< kriging: added to the diagonal
  std::optional<std::int64_t> rank;  ///< dependent: independent columns; always set once loaded
  double distance = 1.0e-10;         ///< dependent: largest deviation from the linear dependence

  [[nodiscard]] std::int64_t rows() const { return m.value_or(n); }
  [[nodiscard]] std::int64_t independent_columns() const {
    return rank.value_or(n > 0 ? n - 1 : 0);
  }
};

/// Source of the right-hand sides. Exactly one of `file` and `generate` is set.
struct Rhs {
  std::optional<std::string> file;  ///< .npy or .mtx
  std::optional<RhsKind> generate;
  std::int64_t columns = 1;
  std::uint64_t seed = 2;
};

/// Files to write; each is optional.
struct Output {
  std::optional<std::string> solution;  ///< .npy
  std::optional<std::string> factor;    ///< .npy; of QR: R, n x n
  std::optional<std::string> q;         ///< .npy; QR only: the thin Q, m x n
};

struct Problem {
  Factorization factorization = Factorization::cholesky;
  Matrix matrix;
  std::optional<Rhs> rhs;
  Output output;
  Verify verify = Verify::automatic;
  bool overlap = true;  ///< on devices: a file is read while the factorization begins
};

}  // namespace heddle::config
