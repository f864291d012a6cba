#include "algorithms/matrix/qr_generators.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fmt/core.h>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/matrix/generated_source.hpp"
#include "algorithms/matrix/generator_parts.hpp"
#include "kernels/cpu/generator_loops.hpp"

namespace heddle {

namespace {

using kernel::ElementKind;
using kernel::RandomStream;

/// The inner product, summed in halves: its rounding grows with the logarithm of the length, so
/// that a reflector of a very tall matrix is still orthogonal.
double inner_product(std::span<const double> x, std::span<const double> y) {
  constexpr std::size_t direct = 128;
  if (x.size() <= direct) return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  const std::size_t half = x.size() / 2;
  return inner_product(x.first(half), y.first(half)) +
         inner_product(x.subspan(half), y.subspan(half));
}

/// A = D - sum of l r', with up to four pairs so far.
struct LowRank {
  using Vector = std::vector<double>;

  std::vector<double> diagonal;
  std::array<Vector, 4> left;   ///< as many elements each as there are rows
  std::array<Vector, 4> right;  ///< as there are columns

  /// (D - sum of the first `terms` l r') x, a vector of `size` elements: the matrix times x, or
  /// with left and right exchanged its transpose times x.
  [[nodiscard]] Vector product(std::size_t size, const Vector& x, const std::array<Vector, 4>& l,
                               const std::array<Vector, 4>& r, std::size_t terms) const {
    Vector y(size);
    for (std::size_t i = 0; i < diagonal.size(); ++i) y[i] = diagonal[i] * x[i];
    for (std::size_t k = 0; k < terms; ++k) {
      const double factor = inner_product(r[k], x);
      for (std::size_t i = 0; i < size; ++i) y[i] -= factor * l[k][i];
    }
    return y;
  }

  /// B := H B G for the matrix B that was built so far, with the reflectors H = I - 2 u u' and
  /// G = I - 2 v v', u and v of length 1. With w = B v, z = B' u and c = u' w this is
  /// B - p v' - u q' where p = 2 (w - c u) and q = 2 (z - c v).
  void reflect(std::size_t number, Vector u, Vector v) {
    Vector p = product(u.size(), v, left, right, 2 * number);
    Vector q = product(v.size(), u, right, left, 2 * number);
    const double c = inner_product(u, p);
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = 2.0 * (p[i] - c * u[i]);
    for (std::size_t j = 0; j < q.size(); ++j) q[j] = 2.0 * (q[j] - c * v[j]);
    left[2 * number] = std::move(p);
    right[2 * number] = std::move(v);
    left[2 * number + 1] = std::move(u);
    right[2 * number + 1] = std::move(q);
  }
};

std::vector<double> random_direction(std::int64_t size, std::uint64_t seed, std::size_t number) {
  std::vector<double> x(static_cast<std::size_t>(size));
  host::generator_loops().uniform(seed, RandomStream::reflectors, 0,
                                  static_cast<std::int64_t>(number), x);
  const double length = std::sqrt(inner_product(x, x));
  for (double& value : x) value /= length;
  return x;
}

/// One after the other; each is gone when the next comes.
std::vector<double> concatenated(std::array<std::vector<double>, 4>& parts) {
  std::vector<double> all;
  all.reserve(parts.size() * parts[0].size());
  for (std::vector<double>& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
    part = {};
  }
  return all;
}

/// A column of a dependent matrix: a combination of `size` of the first `rank` columns.
struct Combination {
  std::size_t size = 0;
  std::array<std::int64_t, 3> columns{};
  std::array<double, 3> coefficients{};
};

/// Different columns by Floyd's sampling (Bentley and Floyd, CACM 30 (1987), page 754), with
/// uniform coefficients.
Combination combination_of(std::int64_t column, std::int64_t rank, std::uint64_t seed) {
  Combination combination;
  auto& columns = combination.columns;
  combination.size = std::min(columns.size(), static_cast<std::size_t>(rank));
  for (std::size_t k = 0; k < combination.size; ++k) {
    const std::uint64_t last = static_cast<std::uint64_t>(rank) - (combination.size - k);
    const std::uint64_t bits = random_bits(seed, RandomStream::combinations,
                                           static_cast<std::uint64_t>(column) * columns.size() + k);
    const auto chosen = static_cast<std::int64_t>(bits % (last + 1));
    const auto end = columns.begin() + static_cast<std::ptrdiff_t>(k);
    const bool is_new = std::find(columns.begin(), end, chosen) == end;
    columns[k] = is_new ? chosen : static_cast<std::int64_t>(last);
  }
  host::generator_loops().uniform(seed, RandomStream::coefficients, 0, column,
                                  combination.coefficients);
  return combination;
}

std::unique_ptr<MatrixSource> made(std::int64_t rows, const GeneratorOptions& options,
                                   GeneratedElements elements, const std::string& details) {
  return std::make_unique<GeneratedSource>(
      rows, options.n, std::move(elements),
      fmt::format("{}, {} x {}{}", generator_name(options.kind), rows, options.n, details), false);
}

}  // namespace

std::unique_ptr<MatrixSource> make_conditioned(std::int64_t rows, const GeneratorOptions& options) {
  const std::uint64_t seed = options.seed;
  LowRank a{shuffled_sequence(std::min(rows, options.n), options.condition, seed), {}, {}};
  for (std::size_t number = 0; number < 2; ++number) {
    a.reflect(number, random_direction(rows, seed, number),
              random_direction(options.n, seed, number + 2));
  }
  GeneratedElements elements{
      {ElementKind::low_rank, seed}, concatenated(a.right), concatenated(a.left)};
  a.diagonal.resize(static_cast<std::size_t>(rows));  // of rows that have no diagonal element
  elements.of_rows.insert(elements.of_rows.end(), a.diagonal.begin(), a.diagonal.end());
  return made(rows, options, std::move(elements),
              fmt::format(", condition {:g}, seed {}", options.condition, seed));
}

std::unique_ptr<MatrixSource> make_graded(std::int64_t rows, const GeneratorOptions& options) {
  const GeometricSequence scales(options.n, options.condition);
  GeneratedElements elements{{ElementKind::scaled, options.seed}, {}, {}};
  for (std::int64_t j = 0; j < options.n; ++j) elements.of_columns.push_back(scales(j));
  return made(rows, options, std::move(elements),
              fmt::format(", condition {:g}, seed {}", options.condition, options.seed));
}

std::unique_ptr<MatrixSource> make_dependent(std::int64_t rows, const GeneratorOptions& options) {
  const std::int64_t rank = options.rank.value_or(std::max<std::int64_t>(0, options.n - 1));
  const auto n = static_cast<std::size_t>(options.n);
  GeneratedElements elements{{ElementKind::combined, options.seed}, std::vector<double>(8 * n), {}};
  const auto number = [&](std::int64_t j, std::size_t k) -> double& {
    return elements.of_columns[static_cast<std::size_t>(j) + k * n];
  };
  for (std::int64_t j = 0; j < options.n; ++j) {
    number(j, 0) = -1;
    if (j < rank) continue;
    const Combination combination = combination_of(j, rank, options.seed);
    number(j, 0) = static_cast<double>(combination.size);
    for (std::size_t k = 0; k < combination.size; ++k) {
      number(j, 1 + k) = static_cast<double>(combination.columns[k]);
      number(j, 4 + k) = combination.coefficients[k];
    }
    number(j, 7) = options.distance;
  }
  return made(
      rows, options, std::move(elements),
      fmt::format(", rank {}, distance {:g}, seed {}", rank, options.distance, options.seed));
}

/// Row i has a point in [-1, 1]: both terms of the quotient are exact, so it is rounded once, and
/// the points are symmetric about 0.
std::unique_ptr<MatrixSource> make_polynomial(std::int64_t rows, const GeneratorOptions& options) {
  const std::int64_t steps = rows - 1;
  GeneratedElements elements{{ElementKind::powers, 0}, {}, {}};
  for (std::int64_t i = 0; i < rows; ++i) {
    elements.of_rows.push_back(
        steps == 0 ? 0.0 : static_cast<double>(2 * i - steps) / static_cast<double>(steps));
  }
  return made(rows, options, std::move(elements), "");
}

}  // namespace heddle
