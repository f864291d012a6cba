#include "algorithms/matrix/generators.hpp"

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

#include "algorithms/matrix/generated_kind.hpp"
#include "algorithms/matrix/generated_source.hpp"
#include "algorithms/matrix/generator_parts.hpp"
#include "algorithms/matrix/qr_generators.hpp"
#include "base/error.hpp"
#include "kernels/cpu/generator_loops.hpp"

namespace heddle {

namespace {

/// In the order of the enumerators.
constexpr std::array<std::string_view, 9> names{"spd",    "random",    "kriging",
                                                "lehmer", "identity",  "conditioned",
                                                "graded", "dependent", "polynomial"};

using kernel::ElementKind;
using kernel::RandomStream;

std::unique_ptr<MatrixSource> make_random(std::int64_t m, const GeneratorOptions& o) {
  return std::make_unique<GeneratedSource>(
      m, o.n, GeneratedElements{{ElementKind::uniform, o.seed}, {}, {}},
      fmt::format("random, {} x {}, seed {}", m, o.n, o.seed), false);
}

/// Number k of all rows or columns, `count` of them.
std::span<double> numbers(std::vector<double>& all, std::size_t count, std::size_t k) {
  return std::span(all).subspan(k * count, count);
}

double inner_product(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// B := H B H with H = I - 2 p p', p random of length 1, for the symmetric matrix B that was built
/// so far: the diagonal d, less p1 q1' + q1 p1' from the second reflector on. With w = B p this is
/// B - p q' - q p' where q = 2 w - 2 (p' w) p. `rows`: p1, q1, p2, q2, d.
void reflect(std::vector<double>& rows, std::uint64_t seed, std::size_t number) {
  const std::size_t n = rows.size() / 5;
  const std::span<double> p = numbers(rows, n, 2 * number);
  const std::span<double> q = numbers(rows, n, 2 * number + 1);
  const std::span<const double> d = numbers(rows, n, 4);
  host::generator_loops().uniform(seed, RandomStream::reflectors, 0,
                                  static_cast<std::int64_t>(number), p);
  const double length = std::sqrt(inner_product(p, p));
  for (double& value : p) value /= length;
  for (std::size_t i = 0; i < n; ++i) q[i] = d[i] * p[i];
  if (number > 0) {
    const std::span<const double> p1 = numbers(rows, n, 0);
    const std::span<const double> q1 = numbers(rows, n, 1);
    const double q1_p = inner_product(q1, p);
    const double p1_p = inner_product(p1, p);
    for (std::size_t i = 0; i < n; ++i) q[i] -= p1[i] * q1_p + q1[i] * p1_p;
  }
  const double p_w = inner_product(p, q);
  for (std::size_t i = 0; i < n; ++i) q[i] = 2.0 * (q[i] - p_w * p[i]);
}

std::unique_ptr<MatrixSource> make_spd(const GeneratorOptions& o) {
  const auto n = static_cast<std::size_t>(o.n);
  GeneratedElements elements{
      {ElementKind::low_rank, o.seed}, std::vector<double>(4 * n), std::vector<double>(5 * n)};
  std::ranges::copy(shuffled_sequence(o.n, o.condition, o.seed),
                    numbers(elements.of_rows, n, 4).begin());
  for (std::size_t number = 0; number < 2; ++number) reflect(elements.of_rows, o.seed, number);
  // Exchanging row and column exchanges p and q in both pairs of terms: the same bits.
  for (const std::size_t k : {0U, 1U, 2U, 3U}) {
    std::ranges::copy(numbers(elements.of_rows, n, k ^ 1U),
                      numbers(elements.of_columns, n, k).begin());
  }
  return std::make_unique<GeneratedSource>(
      o.n, o.n, std::move(elements),
      fmt::format("spd, {} x {}, condition {:g}, seed {}", o.n, o.n, o.condition, o.seed), true);
}

/// The first 32 binary digits of a number in [0, 1], with a 0 before each.
std::uint64_t spread_bits(double coordinate) {
  auto bits = static_cast<std::uint64_t>(std::min(coordinate * 0x1p32, 0x1p32 - 1.0));
  bits = (bits | bits << 16) & 0x0000FFFF0000FFFFU;
  bits = (bits | bits << 8) & 0x00FF00FF00FF00FFU;
  bits = (bits | bits << 4) & 0x0F0F0F0F0F0F0F0FU;
  bits = (bits | bits << 2) & 0x3333333333333333U;
  return (bits | bits << 1) & 0x5555555555555555U;
}

/// Random points in the unit square in the order of a Morton curve: all x, then all y.
std::vector<double> points_of(const GeneratorOptions& o) {
  const auto n = static_cast<std::size_t>(o.n);
  std::vector<double> given(2 * n);
  const std::span<double> x = numbers(given, n, 0);
  const std::span<double> y = numbers(given, n, 1);
  host::generator_loops().uniform(o.seed, RandomStream::points, 0, 0, x);
  host::generator_loops().uniform(o.seed, RandomStream::points, 0, 1, y);
  std::vector<std::pair<std::uint64_t, std::size_t>> order(n);
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = (1.0 + x[i]) / 2.0;
    y[i] = (1.0 + y[i]) / 2.0;
    order[i] = {spread_bits(x[i]) | spread_bits(y[i]) << 1, i};
  }
  std::sort(order.begin(), order.end());
  std::vector<double> sorted;
  sorted.reserve(2 * n);
  for (const std::span<const double> coordinate : {x, y}) {
    for (const auto& [key, i] : order) sorted.push_back(coordinate[i]);
  }
  return sorted;
}

/// Distances between points are multiplied by it.
double distance_scale(const GeneratorOptions& o) {
  return std::sqrt(2.0 * o.smoothness) / o.range;
}

std::string describe_kriging(const GeneratorOptions& o) {
  return fmt::format("kriging, {} x {}, range {:g}, smoothness {:g}, nugget {:g}, seed {}", o.n,
                     o.n, o.range, o.smoothness, o.nugget, o.seed);
}

/// Kriging with a smoothness for which the correlation has no closed form.
class BesselKriging final : public MatrixSource {
 public:
  explicit BesselKriging(const GeneratorOptions& options)
      : MatrixSource(options.n, options.n),
        options_(options),
        points_(points_of(options)),
        scale_(distance_scale(options)),
        factor_(std::pow(2.0, 1.0 - options.smoothness) / std::tgamma(options.smoothness)) {}

  [[nodiscard]] std::string description() const override {
    return "generated: " + describe_kriging(options_);
  }
  [[nodiscard]] bool is_symmetric() const override { return true; }

 private:
  void read_block(GlobalRow row, GlobalColumn column, TileView out) const override {
    const double* const x = points_.data();
    const double* const y = x + rows();
    for (std::int64_t j = 0; j < out.columns; ++j) {
      const std::int64_t c = column.value() + j;
      const std::span<double> values(&out(0, j), static_cast<std::size_t>(out.rows));
      host::generator_loops().distance(x + row.value(), y + row.value(), x[c], y[c], scale_,
                                       values);
      for (double& value : values) value = matern(value);
      const std::int64_t diagonal = c - row.value();
      if (diagonal >= 0 && diagonal < out.rows) out(diagonal, j) = 1.0 + options_.nugget;
    }
  }

  /// The correlation at scaled distance s.
  [[nodiscard]] double matern(double s) const {
    constexpr double vanishing = 700.0;  // exp(-700) is 1e-304
    if (s == 0.0) return 1.0;
    if (s > vanishing) return 0.0;
    const double bessel = std::cyl_bessel_k(options_.smoothness, s);
    // The product tends to 1 as its factors tend to 0 and infinity.
    if (!std::isfinite(bessel)) return 1.0;
    return std::min(1.0, factor_ * std::pow(s, options_.smoothness) * bessel);
  }

  GeneratorOptions options_;
  std::vector<double> points_;
  double scale_;
  double factor_;
};

/// Squares of scaled distances are numbers, too.
bool has_finite_distances(const GeneratorOptions& o) {
  return distance_scale(o) < 1e100;
}

/// The closed form of the correlation, if there is one.
std::optional<ElementKind> matern_kind(double smoothness) {
  if (smoothness == 0.5) return ElementKind::matern_half;
  if (smoothness == 1.5) return ElementKind::matern_three_halves;
  if (smoothness == 2.5) return ElementKind::matern_five_halves;
  return std::nullopt;
}

std::unique_ptr<MatrixSource> make_kriging(const GeneratorOptions& o) {
  const std::optional<ElementKind> kind = matern_kind(o.smoothness);
  if (!kind) return std::make_unique<BesselKriging>(o);
  const auto n = static_cast<std::size_t>(o.n);
  const double scale = distance_scale(o);
  GeneratedElements elements{{*kind, o.seed}, {}, points_of(o)};
  elements.of_columns = elements.of_rows;
  elements.of_columns.insert(elements.of_columns.end(), n, scale);
  elements.of_columns.insert(elements.of_columns.end(), n, 1.0 + o.nugget);
  return std::make_unique<GeneratedSource>(
      o.n, o.n, std::move(elements), describe_kriging(o), true,
      has_finite_distances(o) ? GeneratedSource::Finite::yes : GeneratedSource::Finite::maybe);
}

std::unique_ptr<MatrixSource> make_bare(ElementKind kind, std::int64_t m,
                                        const GeneratorOptions& o) {
  return std::make_unique<GeneratedSource>(
      m, o.n, GeneratedElements{{kind, 0}, {}, {}},
      fmt::format("{}, {} x {}", generator_name(o.kind), m, o.n), m == o.n);
}

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
  const auto numbers = [&]() -> std::uint64_t {
    switch (options.kind) {
      case GeneratorKind::spd:
        return 11 * n;  // 9 of rows and columns, and a sequence to be shuffled
      case GeneratorKind::kriging:
        return 10 * n;  // 6 of rows and columns, and points to be sorted by their keys
      case GeneratorKind::conditioned:
        return 7 * m + 6 * n + 2 * std::min(m, n);
      case GeneratorKind::dependent:
        return 8 * n;
      case GeneratorKind::random:
      case GeneratorKind::lehmer:
      case GeneratorKind::identity:
      case GeneratorKind::graded:
      case GeneratorKind::polynomial:
        break;
    }
    return std::max(m, n);
  };
  return numbers() * sizeof(double);
}

std::optional<GeneratedKind> generated_kind(const GeneratorOptions& options) {
  const auto kind = [&]() -> std::optional<ElementKind> {
    switch (options.kind) {
      case GeneratorKind::random:
        return ElementKind::uniform;
      case GeneratorKind::spd:
      case GeneratorKind::conditioned:
        return ElementKind::low_rank;
      case GeneratorKind::kriging:
        if (!has_finite_distances(options)) break;
        return matern_kind(options.smoothness);
      case GeneratorKind::lehmer:
        return ElementKind::ratio;
      case GeneratorKind::identity:
        return ElementKind::identity;
      case GeneratorKind::graded:
        return ElementKind::scaled;
      case GeneratorKind::dependent:
        return ElementKind::combined;
      case GeneratorKind::polynomial:
        return ElementKind::powers;
    }
    return std::nullopt;
  };
  const std::optional<ElementKind> elements = kind();
  if (!elements) return std::nullopt;
  return GeneratedKind{*elements, options.seed};
}

std::unique_ptr<MatrixSource> make_generator(const GeneratorOptions& options) {
  const std::int64_t m = options.m.value_or(options.n);
  check(options, m);
  switch (options.kind) {
    case GeneratorKind::random:
      return make_random(m, options);
    case GeneratorKind::spd:
      return make_spd(options);
    case GeneratorKind::kriging:
      return make_kriging(options);
    case GeneratorKind::lehmer:
      return make_bare(ElementKind::ratio, m, options);
    case GeneratorKind::identity:
      return make_bare(ElementKind::identity, m, options);
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
