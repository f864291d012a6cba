#include "algorithms/matrix/generators.hpp"

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
#include "algorithms/matrix/qr_generators.hpp"
#include "base/error.hpp"

namespace heddle {

namespace {

/// In the order of the enumerators.
constexpr std::array<std::string_view, 9> names{"spd",    "random",    "kriging",
                                                "lehmer", "identity",  "conditioned",
                                                "graded", "dependent", "polynomial"};

class RandomSource final : public MatrixSource {
 public:
  RandomSource(std::int64_t rows, std::int64_t columns, std::uint64_t seed)
      : MatrixSource(rows, columns), seed_(seed) {}

  [[nodiscard]] std::string description() const override {
    return fmt::format("generated: random, {} x {}, seed {}", rows(), columns(), seed_);
  }

 private:
  void read_block(GlobalRow row, GlobalColumn column, TileView out) const override {
    const GeneratorLoops& loops = generator_loops();
    for (std::int64_t j = 0; j < out.columns; ++j) {
      loops.uniform(seed_, RandomStream::entries, row.value(), column.value() + j,
                    column_of(out, j));
    }
  }

  std::uint64_t seed_;
};

class SpdSource final : public MatrixSource {
 public:
  SpdSource(std::int64_t n, double condition, std::uint64_t seed)
      : MatrixSource(n, n),
        condition_(condition),
        seed_(seed),
        diagonal_(shuffled_sequence(n, condition, seed)) {
    reflect(0, p1_, q1_);
    reflect(1, p2_, q2_);
  }

  [[nodiscard]] std::string description() const override {
    return fmt::format("generated: spd, {} x {}, condition {:g}, seed {}", rows(), columns(),
                       condition_, seed_);
  }
  [[nodiscard]] bool is_symmetric() const override { return true; }

 private:
  void read_block(GlobalRow row, GlobalColumn column, TileView out) const override {
    const GeneratorLoops& loops = generator_loops();
    // Exchanging row and column exchanges p and q in both pairs of terms: the same bits.
    const LowRankVectors vectors{{p1_, q1_, p2_, q2_}, {q1_, p1_, q2_, p2_}};
    for (std::int64_t j = 0; j < out.columns; ++j) {
      loops.low_rank(vectors, row.value(), column.value() + j, column_of(out, j));
    }
    for_diagonal(row, column, out, [&](double& element, std::int64_t i) {
      element += diagonal_[static_cast<std::size_t>(i)];
    });
  }

  /// B := H B H with H = I - 2 p p', p random of length 1, for the symmetric matrix B that was
  /// built so far: diagonal_, less p1 q1' + q1 p1' from the second reflector on. With w = B p this
  /// is B - p q' - q p' where q = 2 w - 2 (p' w) p.
  void reflect(std::int64_t number, std::vector<double>& p, std::vector<double>& q) const {
    const auto n = static_cast<std::size_t>(rows());
    p.resize(n);
    q.resize(n);
    generator_loops().uniform(seed_, RandomStream::reflectors, 0, number, p);
    const double length = std::sqrt(std::inner_product(p.begin(), p.end(), p.begin(), 0.0));
    for (double& value : p) value /= length;
    for (std::size_t i = 0; i < n; ++i) q[i] = diagonal_[i] * p[i];
    if (number > 0) {
      const double q1_p = std::inner_product(q1_.begin(), q1_.end(), p.begin(), 0.0);
      const double p1_p = std::inner_product(p1_.begin(), p1_.end(), p.begin(), 0.0);
      for (std::size_t i = 0; i < n; ++i) q[i] -= p1_[i] * q1_p + q1_[i] * p1_p;
    }
    const double p_w = std::inner_product(p.begin(), p.end(), q.begin(), 0.0);
    for (std::size_t i = 0; i < n; ++i) q[i] = 2.0 * (q[i] - p_w * p[i]);
  }

  double condition_;
  std::uint64_t seed_;
  std::vector<double> diagonal_;
  std::vector<double> p1_, q1_, p2_, q2_;
};

class KrigingSource final : public MatrixSource {
 public:
  explicit KrigingSource(const GeneratorOptions& options)
      : MatrixSource(options.n, options.n),
        options_(options),
        scale_(std::sqrt(2.0 * options.smoothness) / options.range),
        factor_(std::pow(2.0, 1.0 - options.smoothness) / std::tgamma(options.smoothness)) {
    place_points();
    if (options_.smoothness == 0.5) form_ = MaternForm::half;
    if (options_.smoothness == 1.5) form_ = MaternForm::three_halves;
    if (options_.smoothness == 2.5) form_ = MaternForm::five_halves;
  }

  [[nodiscard]] std::string description() const override {
    return fmt::format(
        "generated: kriging, {} x {}, range {:g}, smoothness {:g}, nugget {:g}, seed {}", rows(),
        columns(), options_.range, options_.smoothness, options_.nugget, options_.seed);
  }
  [[nodiscard]] bool is_symmetric() const override { return true; }

 private:
  void read_block(GlobalRow row, GlobalColumn column, TileView out) const override {
    const GeneratorLoops& loops = generator_loops();
    for (std::int64_t j = 0; j < out.columns; ++j) {
      const std::span<double> values = column_of(out, j);
      loops.distance(x_, y_, scale_, row.value(), column.value() + j, values);
      if (form_) {
        loops.matern(*form_, values);
      } else {
        for (double& value : values) value = matern(value);
      }
    }
    for_diagonal(row, column, out,
                 [this](double& element, std::int64_t) { element = 1.0 + options_.nugget; });
  }

  /// The correlation at scaled distance s for a smoothness without closed form.
  [[nodiscard]] double matern(double s) const {
    constexpr double vanishing = 700.0;  // exp(-700) is 1e-304
    if (s == 0.0) return 1.0;
    if (s > vanishing) return 0.0;
    const double bessel = std::cyl_bessel_k(options_.smoothness, s);
    // The product tends to 1 as its factors tend to 0 and infinity.
    if (!std::isfinite(bessel)) return 1.0;
    return std::min(1.0, factor_ * std::pow(s, options_.smoothness) * bessel);
  }

  /// Random points in the unit square in the order of a Morton curve.
  void place_points() {
    const auto n = static_cast<std::size_t>(rows());
    std::vector<double> x(n);
    std::vector<double> y(n);
    generator_loops().uniform(options_.seed, RandomStream::points, 0, 0, x);
    generator_loops().uniform(options_.seed, RandomStream::points, 0, 1, y);
    std::vector<std::pair<std::uint64_t, std::size_t>> order(n);
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = (1.0 + x[i]) / 2.0;
      y[i] = (1.0 + y[i]) / 2.0;
      order[i] = {spread_bits(x[i]) | spread_bits(y[i]) << 1, i};
    }
    std::sort(order.begin(), order.end());
    for (const auto& [key, i] : order) {
      x_.push_back(x[i]);
      y_.push_back(y[i]);
    }
  }

  /// The first 32 binary digits of a number in [0, 1], with a 0 before each.
  static std::uint64_t spread_bits(double coordinate) {
    auto bits = static_cast<std::uint64_t>(std::min(coordinate * 0x1p32, 0x1p32 - 1.0));
    bits = (bits | bits << 16) & 0x0000FFFF0000FFFFU;
    bits = (bits | bits << 8) & 0x00FF00FF00FF00FFU;
    bits = (bits | bits << 4) & 0x0F0F0F0F0F0F0F0FU;
    bits = (bits | bits << 2) & 0x3333333333333333U;
    return (bits | bits << 1) & 0x5555555555555555U;
  }

  GeneratorOptions options_;
  std::vector<double> x_, y_;
  double scale_;
  double factor_;  ///< of the general Matern function
  std::optional<MaternForm> form_;
};

class LehmerSource final : public MatrixSource {
 public:
  LehmerSource(std::int64_t rows, std::int64_t columns) : MatrixSource(rows, columns) {}

  [[nodiscard]] std::string description() const override {
    return fmt::format("generated: lehmer, {} x {}", rows(), columns());
  }
  [[nodiscard]] bool is_symmetric() const override { return rows() == columns(); }

 private:
  void read_block(GlobalRow row, GlobalColumn column, TileView out) const override {
    for (std::int64_t j = 0; j < out.columns; ++j) {
      const auto b = static_cast<double>(column.value() + j + 1);
      const auto first = static_cast<double>(row.value() + 1);
      double* target = &out(0, j);
      for (std::int64_t i = 0; i < out.rows; ++i) {
        const double a = first + static_cast<double>(i);
        target[i] = std::min(a, b) / std::max(a, b);
      }
    }
  }
};

class IdentitySource final : public MatrixSource {
 public:
  IdentitySource(std::int64_t rows, std::int64_t columns) : MatrixSource(rows, columns) {}

  [[nodiscard]] std::string description() const override {
    return fmt::format("generated: identity, {} x {}", rows(), columns());
  }
  [[nodiscard]] bool is_symmetric() const override { return rows() == columns(); }

 private:
  void read_block(GlobalRow row, GlobalColumn column, TileView out) const override {
    for (std::int64_t j = 0; j < out.columns; ++j) {
      std::fill_n(&out(0, j), out.rows, 0.0);
    }
    for_diagonal(row, column, out, [](double& element, std::int64_t) { element = 1.0; });
  }
};

[[noreturn]] void refuse(GeneratorKind kind, const std::string& reason) {
  throw Error(ErrorCode::usage,
              fmt::format("cannot generate a {} matrix: {}", generator_name(kind), reason));
}

void check(const GeneratorOptions& options, std::int64_t m) {
  constexpr std::int64_t size_max = std::int64_t{1} << 48;  // exact as a double, no sum overflows
  constexpr double smoothness_max = 20.0;
  const GeneratorKind kind = options.kind;
  const auto require = [kind](bool holds, std::string_view name, const auto& value,
                              std::string_view expected) {
    if (!holds) refuse(kind, fmt::format("{} is {}; expected {}", name, value, expected));
  };
  require(options.n >= 0 && options.n <= size_max, "n", options.n, "0 to 2^48");
  require(m >= 0 && m <= size_max, "m", m, "0 to 2^48");
  if (kind == GeneratorKind::spd || kind == GeneratorKind::kriging) {
    require(m == options.n, "m", m, fmt::format("n ({}), the matrix is square", options.n));
  }
  if (kind == GeneratorKind::spd || kind == GeneratorKind::conditioned ||
      kind == GeneratorKind::graded) {
    require(std::isfinite(options.condition) && options.condition >= 1.0, "condition",
            options.condition, "a number from 1 on");
  }
  if (kind == GeneratorKind::kriging) {
    require(std::isfinite(options.range) && options.range > 0.0, "range", options.range,
            "a positive number");
    require(options.smoothness > 0.0 && options.smoothness <= smoothness_max, "smoothness",
            options.smoothness, "a number above 0, at most 20");
    require(std::isfinite(options.nugget) && options.nugget >= 0.0, "nugget", options.nugget,
            "a number from 0 on");
  }
  if (kind == GeneratorKind::dependent) {
    const std::int64_t rank = options.rank.value_or(0);
    require(rank >= 0 && rank <= options.n, "rank", rank, fmt::format("0 to n ({})", options.n));
    require(std::isfinite(options.distance) && options.distance >= 0.0, "distance",
            options.distance, "a number from 0 on");
  }
}

}  // namespace

std::span<const std::string_view> generator_names() {
  return names;
}

std::optional<GeneratorKind> generator_kind(std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<GeneratorKind>(found - names.begin());
}

std::string_view generator_name(GeneratorKind kind) {
  return names.at(static_cast<std::size_t>(kind));
}

void check_generator(const GeneratorOptions& options) {
  check(options, options.m.value_or(options.n));
}

std::uint64_t generator_bytes(const GeneratorOptions& options) {
  const auto n = static_cast<std::uint64_t>(options.n);
  const auto m = static_cast<std::uint64_t>(options.m.value_or(options.n));
  switch (options.kind) {
    case GeneratorKind::spd:
      return 6 * n * sizeof(double);  // a sequence is shuffled by its keys
    case GeneratorKind::kriging:
      return 6 * n * sizeof(double);  // points, sorted by their keys
    case GeneratorKind::conditioned:
      return (4 * (m + n) + 2 * std::min(m, n)) * sizeof(double);
    case GeneratorKind::random:
    case GeneratorKind::lehmer:
    case GeneratorKind::identity:
    case GeneratorKind::graded:
    case GeneratorKind::dependent:
    case GeneratorKind::polynomial:
      break;
  }
  return std::max(m, n) * sizeof(double);
}

std::unique_ptr<MatrixSource> make_generator(const GeneratorOptions& options) {
  const std::int64_t m = options.m.value_or(options.n);
  check(options, m);
  switch (options.kind) {
    case GeneratorKind::random:
      return std::make_unique<RandomSource>(m, options.n, options.seed);
    case GeneratorKind::spd:
      return std::make_unique<SpdSource>(options.n, options.condition, options.seed);
    case GeneratorKind::kriging:
      return std::make_unique<KrigingSource>(options);
    case GeneratorKind::lehmer:
      return std::make_unique<LehmerSource>(m, options.n);
    case GeneratorKind::identity:
      return std::make_unique<IdentitySource>(m, options.n);
    case GeneratorKind::conditioned:
      return make_conditioned(m, options);
    case GeneratorKind::graded:
      return make_graded(m, options);
    case GeneratorKind::dependent:
      return make_dependent(m, options);
    case GeneratorKind::polynomial:
      return make_polynomial(m, options);
  }
  refuse(options.kind, "unknown kind");
}

}  // namespace heddle
