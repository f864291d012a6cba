#include "algorithms/matrix/qr_generators.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <fmt/core.h>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/matrix/generator_loops.hpp"
#include "algorithms/matrix/generator_parts.hpp"

namespace heddle {

namespace {

/// Makes a column that begins at `row` piece by piece, each with another array of its length beside
/// it: calls make(row of the piece, piece, array).
template <class Make>
void for_pieces(std::int64_t row, std::span<double> column, const Make& make) {
  std::array<double, 512> memory{};
  for (std::size_t begin = 0; begin < column.size(); begin += memory.size()) {
    const std::size_t count = std::min(memory.size(), column.size() - begin);
    make(row + static_cast<std::int64_t>(begin), column.subspan(begin, count),
         std::span(memory).first(count));
  }
}

/// The inner product, summed in halves: its rounding grows with the logarithm of the length, so
/// that a reflector of a very tall matrix is still orthogonal.
double inner_product(std::span<const double> x, std::span<const double> y) {
  constexpr std::size_t direct = 128;
  if (x.size() <= direct) return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  const std::size_t half = x.size() / 2;
  return inner_product(x.first(half), y.first(half)) +
         inner_product(x.subspan(half), y.subspan(half));
}

class ConditionedSource final : public MatrixSource {
 public:
  ConditionedSource(std::int64_t rows, const GeneratorOptions& options)
      : MatrixSource(rows, options.n),
        condition_(options.condition),
        seed_(options.seed),
        diagonal_(shuffled_sequence(std::min(rows, options.n), condition_, seed_)) {
    for (std::size_t reflector = 0; reflector < 2; ++reflector) reflect(reflector);
  }

  [[nodiscard]] std::string description() const override {
    return fmt::format("generated: conditioned, {} x {}, condition {:g}, seed {}", rows(),
                       columns(), condition_, seed_);
  }

 private:
  using Vector = std::vector<double>;

  void read_block(GlobalRow row, GlobalColumn column, TileView out) const override {
    const GeneratorLoops& loops = generator_loops();
    const LowRankVectors vectors{{left_[0], left_[1], left_[2], left_[3]},
                                 {right_[0], right_[1], right_[2], right_[3]}};
    for (std::int64_t j = 0; j < out.columns; ++j) {
      loops.low_rank(vectors, row.value(), column.value() + j, column_of(out, j));
    }
    for_diagonal(row, column, out, [this](double& element, std::int64_t i) {
      element += diagonal_[static_cast<std::size_t>(i)];
    });
  }

  /// B := H B G for the matrix B that was built so far, with the reflectors H = I - 2 u u' and
  /// G = I - 2 v v', u and v random of length 1. With w = B v, z = B' u and c = u' w this is
  /// B - p v' - u q' where p = 2 (w - c u) and q = 2 (z - c v).
  void reflect(std::size_t number) {
    const Vector u = random_direction(rows(), number);
    const Vector v = random_direction(columns(), number + 2);
    Vector p = product(u.size(), v, left_, right_, 2 * number);
    Vector q = product(v.size(), u, right_, left_, 2 * number);
    const double c = inner_product(u, p);
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = 2.0 * (p[i] - c * u[i]);
    for (std::size_t j = 0; j < q.size(); ++j) q[j] = 2.0 * (q[j] - c * v[j]);
    left_[2 * number] = std::move(p);
    right_[2 * number] = v;
    left_[2 * number + 1] = u;
    right_[2 * number + 1] = std::move(q);
  }

  [[nodiscard]] Vector random_direction(std::int64_t size, std::size_t number) const {
    Vector x(static_cast<std::size_t>(size));
    generator_loops().uniform(seed_, RandomStream::reflectors, 0, static_cast<std::int64_t>(number),
                              x);
    const double length = std::sqrt(inner_product(x, x));
    for (double& value : x) value /= length;
    return x;
  }

  /// (D - sum of the first `terms` l r') x, a vector of `size` elements: B times x, or with left
  /// and right exchanged its transpose times x.
  [[nodiscard]] Vector product(std::size_t size, const Vector& x, const std::array<Vector, 4>& left,
                               const std::array<Vector, 4>& right, std::size_t terms) const {
    Vector y(size);
    for (std::size_t i = 0; i < diagonal_.size(); ++i) y[i] = diagonal_[i] * x[i];
    for (std::size_t k = 0; k < terms; ++k) {
      const double factor = inner_product(right[k], x);
      for (std::size_t i = 0; i < size; ++i) y[i] -= factor * left[k][i];
    }
    return y;
  }

  double condition_;
  std::uint64_t seed_;
  Vector diagonal_;
  std::array<Vector, 4> left_;   ///< of `rows` elements each
  std::array<Vector, 4> right_;  ///< of `columns` elements each
};

class GradedSource final : public MatrixSource {
 public:
  GradedSource(std::int64_t rows, const GeneratorOptions& options)
      : MatrixSource(rows, options.n),
        condition_(options.condition),
        seed_(options.seed),
        scales_(options.n, condition_) {}

  [[nodiscard]] std::string description() const override {
    return fmt::format("generated: graded, {} x {}, condition {:g}, seed {}", rows(), columns(),
                       condition_, seed_);
  }

 private:
  void read_block(GlobalRow row, GlobalColumn column, TileView out) const override {
    const GeneratorLoops& loops = generator_loops();
    for (std::int64_t j = 0; j < out.columns; ++j) {
      const std::span<double> values = column_of(out, j);
      loops.uniform(seed_, RandomStream::entries, row.value(), column.value() + j, values);
      const double scale = scales_(column.value() + j);
      for (double& value : values) value *= scale;
    }
  }

  double condition_;
  std::uint64_t seed_;
  GeometricSequence scales_;
};

class DependentSource final : public MatrixSource {
 public:
  DependentSource(std::int64_t rows, const GeneratorOptions& options)
      : MatrixSource(rows, options.n),
        rank_(options.rank.value_or(std::max<std::int64_t>(0, options.n - 1))),
        distance_(options.distance),
        seed_(options.seed) {}

  [[nodiscard]] std::string description() const override {
    return fmt::format("generated: dependent, {} x {}, rank {}, distance {:g}, seed {}", rows(),
                       columns(), rank_, distance_, seed_);
  }

 private:
  /// Of `size` of the first `rank` columns.
  struct Combination {
    std::size_t size = 0;
    std::array<std::int64_t, 3> columns{};
    std::array<double, 3> coefficients{};
  };

  void read_block(GlobalRow row, GlobalColumn column, TileView out) const override {
    for (std::int64_t j = 0; j < out.columns; ++j) {
      const std::int64_t number = column.value() + j;
      if (number < rank_) {
        uniform(row.value(), number, column_of(out, j));
      } else {
        combine(row.value(), number, column_of(out, j));
      }
    }
  }

  void uniform(std::int64_t row, std::int64_t column, std::span<double> out) const {
    generator_loops().uniform(seed_, RandomStream::entries, row, column, out);
  }

  void combine(std::int64_t row, std::int64_t column, std::span<double> out) const {
    const Combination combination = combination_of(column);
    const auto make = [&](std::int64_t first, std::span<double> piece, std::span<double> entries) {
      const auto add = [&](double factor, std::int64_t from) {
        uniform(first, from, entries);
        for (std::size_t i = 0; i < piece.size(); ++i) piece[i] += factor * entries[i];
      };
      std::fill(piece.begin(), piece.end(), 0.0);
      for (std::size_t k = 0; k < combination.size; ++k) {
        add(combination.coefficients[k], combination.columns[k]);
      }
      add(distance_, column);
    };
    for_pieces(row, out, make);
  }

  /// Different columns by Floyd's sampling (Bentley and Floyd, CACM 30 (1987), page 754), with
  /// uniform coefficients.
  [[nodiscard]] Combination combination_of(std::int64_t column) const {
    Combination combination;
    auto& columns = combination.columns;
    combination.size = std::min(columns.size(), static_cast<std::size_t>(rank_));
    for (std::size_t k = 0; k < combination.size; ++k) {
      const std::uint64_t last = static_cast<std::uint64_t>(rank_) - (combination.size - k);
      const std::uint64_t bits =
          random_bits(seed_, RandomStream::combinations,
                      static_cast<std::uint64_t>(column) * columns.size() + k);
      const auto chosen = static_cast<std::int64_t>(bits % (last + 1));
      const auto end = columns.begin() + static_cast<std::ptrdiff_t>(k);
      const bool is_new = std::find(columns.begin(), end, chosen) == end;
      columns[k] = is_new ? chosen : static_cast<std::int64_t>(last);
    }
    generator_loops().uniform(seed_, RandomStream::coefficients, 0, column,
                              combination.coefficients);
    return combination;
  }

  std::int64_t rank_;
  double distance_;
  std::uint64_t seed_;
};

class PolynomialSource final : public MatrixSource {
 public:
  PolynomialSource(std::int64_t rows, const GeneratorOptions& options)
      : MatrixSource(rows, options.n) {}

  [[nodiscard]] std::string description() const override {
    return fmt::format("generated: polynomial, {} x {}", rows(), columns());
  }

 private:
  void read_block(GlobalRow row, GlobalColumn column, TileView out) const override {
    for (std::int64_t j = 0; j < out.columns; ++j) {
      const std::int64_t exponent = column.value() + j;
      const auto make = [&](std::int64_t first, std::span<double> powers,
                            std::span<double> squares) {
        raise_points(first, exponent, powers, squares);
      };
      for_pieces(row.value(), column_of(out, j), make);
    }
  }

  /// Point i in [-1, 1]: both terms of the quotient are exact, so it is rounded once, and the
  /// points are symmetric about 0.
  [[nodiscard]] double point(std::int64_t i) const {
    const std::int64_t steps = rows() - 1;
    return steps == 0 ? 0.0 : static_cast<double>(2 * i - steps) / static_cast<double>(steps);
  }

  /// The points from `row` on to the power `exponent`, squaring from its lowest binary digit up.
  /// Overwrites `squares`, which has the length of `powers`.
  void raise_points(std::int64_t row, std::int64_t exponent, std::span<double> powers,
                    std::span<double> squares) const {
    for (std::size_t i = 0; i < powers.size(); ++i) {
      squares[i] = point(row + static_cast<std::int64_t>(i));
      powers[i] = 1.0;
    }
    for (std::int64_t digits = exponent; digits > 0; digits /= 2) {
      if (digits % 2 != 0) {
        for (std::size_t i = 0; i < powers.size(); ++i) powers[i] *= squares[i];
      }
      for (std::size_t i = 0; i < powers.size(); ++i) squares[i] *= squares[i];
    }
  }
};

}  // namespace

std::unique_ptr<MatrixSource> make_conditioned(std::int64_t rows, const GeneratorOptions& options) {
  return std::make_unique<ConditionedSource>(rows, options);
}

std::unique_ptr<MatrixSource> make_graded(std::int64_t rows, const GeneratorOptions& options) {
  return std::make_unique<GradedSource>(rows, options);
}

std::unique_ptr<MatrixSource> make_dependent(std::int64_t rows, const GeneratorOptions& options) {
  return std::make_unique<DependentSource>(rows, options);
}

std::unique_ptr<MatrixSource> make_polynomial(std::int64_t rows, const GeneratorOptions& options) {
  return std::make_unique<PolynomialSource>(rows, options);
}

}  // namespace heddle
