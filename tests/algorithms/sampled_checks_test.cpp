#include <cmath>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/checks/sampled_cholesky.hpp"
#include "algorithms/checks/sampled_qr.hpp"
#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/io/agreement.hpp"
#include "algorithms/io/distributed_read.hpp"
#include "algorithms/matrix/generators.hpp"
#include "algorithms/reductions/verification.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"

namespace heddle {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int planted_errors = 5;
#else
constexpr int planted_errors = 100;
#endif

/// A source with an error in one element, or that cannot be read from some element on.
class Planted final : public MatrixSource {
 public:
  explicit Planted(const MatrixSource& source)
      : MatrixSource(source.rows(), source.columns()), source_(source) {}

  void plant(std::int64_t row, std::int64_t column, double error) {
    row_ = row;
    column_ = column;
    error_ = error;
  }
  [[nodiscard]] std::string description() const override { return source_.description(); }
  [[nodiscard]] bool is_symmetric() const override { return true; }

 private:
  void read_block(GlobalRow row, GlobalColumn column, TileView out) const override {
    source_.read(row, column, out);
    const std::int64_t i = row_ - row.value();
    const std::int64_t j = column_ - column.value();
    if (i < 0 || i >= out.rows || j < 0 || j >= out.columns) return;
    if (std::isinf(error_)) throw Error(ErrorCode::usage, "the disk failed");
    out(i, j) += error_;
  }

  const MatrixSource& source_;
  std::int64_t row_ = -1;
  std::int64_t column_ = -1;
  double error_ = 0;
};

/// Adds `error` to element (row, column) of `matrix`; returns what was there.
double plant(Matrix<double> matrix, std::int64_t row, std::int64_t column, double error) {
  double before = 0;
  matrix.for_each_tile([&, layout = matrix.layout()](TileRow i, TileColumn c, TileView tile) {
    const std::int64_t p = row - layout.row_begin(i);
    const std::int64_t q = column - layout.column_begin(c);
    if (p < 0 || p >= tile.rows || q < 0 || q >= tile.columns) return;
    before = tile(p, q);
    tile(p, q) += error;
  });
  return before;
}

void put_back(const Matrix<double>& matrix, std::int64_t row, std::int64_t column, double value) {
  plant(matrix, row, column, value - plant(matrix, row, column, 0));
}

/// A symmetric source of given elements.
class Given final : public MatrixSource {
 public:
  using Element = std::function<double(std::int64_t i, std::int64_t j)>;
  Given(std::int64_t rows, std::int64_t columns, Element element)
      : MatrixSource(rows, columns), element_(std::move(element)) {}
  [[nodiscard]] std::string description() const override { return "given"; }
  [[nodiscard]] bool is_symmetric() const override { return true; }

 private:
  void read_block(GlobalRow row, GlobalColumn column, TileView out) const override {
    for (std::int64_t j = 0; j < out.columns; ++j) {
      for (std::int64_t i = 0; i < out.rows; ++i) {
        out(i, j) = element_(row.value() + i, column.value() + j);
      }
    }
  }

  Element element_;
};

void expect_near(Norm value, Norm expected) {
  EXPECT_NEAR(static_cast<double>(value / expected), 1, 1e-13);
}

class Checks : public testing::Test {
 protected:
  explicit Checks(const char* devices)
      : node_(Config::from_text(
            std::string("runtime: {cpu_workers: 2, devices: {backend: ") + devices + "}}\n",
            "test")) {}
  [[nodiscard]] Matrix<double> make(const MatrixSpec& spec) { return node_.matrix<double>(spec); }
  [[nodiscard]] auto maker() {
    return [this](const MatrixSpec& spec) { return make(spec); };
  }
  [[nodiscard]] std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }

  Node node_;
  std::mt19937_64 random_{45};
};

/// n; whether a copy of A is kept; device backend.
using CholeskyCase = std::tuple<std::int64_t, bool, const char*>;

class SampledCholeskyCheck : public Checks, public testing::WithParamInterface<CholeskyCase> {
 protected:
  SampledCholeskyCheck()
      : Checks(std::get<2>(GetParam())),
        good_(make_generator(spd(n()))),
        source_(*good_),
        l_(make(spec())),
        sample_(SampledCholesky::made_by(l_, maker())) {
    source_.prepare(wanted_of(l_, source_));
    read_elements(source_, l_, Checked::yes, "the matrix");
    norm_ = symmetric_one_norm(l_);
    if (keeps_copy()) {
      copy_ = make(spec());
      run_job(node_, copy_tiles(*copy_, l_));
    } else {
      passing_ = make(passing_spec(spec()));
    }
    run_job(node_, cholesky(l_));
  }
  [[nodiscard]] static std::int64_t n() { return std::get<0>(GetParam()); }
  [[nodiscard]] static bool keeps_copy() { return std::get<1>(GetParam()); }
  [[nodiscard]] static GeneratorOptions spd(std::int64_t n) {
    GeneratorOptions options;
    options.n = n;
    return options;
  }
  [[nodiscard]] MatrixSpec spec() const {
    const TileLayout layout{.rows = n(), .columns = n(), .tile = 32, .strip = 16, .small = 8};
    const Distribution d{.devices = node_.facts().devices};
    return MatrixSpec(layout, d, Storage::lower);
  }
  [[nodiscard]] CholeskyResidual check() {
    const Again again = copy_ ? Again::of_copy(*copy_) : Again::of_source(*passing_, &source_);
    return sampled_cholesky_residual(l_, again, sample_);
  }
  [[nodiscard]] double residual() { return check().scaled; }

  std::unique_ptr<MatrixSource> good_;
  Planted source_;
  Matrix<double> l_;
  SampledCholesky sample_;
  std::optional<Matrix<double>> copy_;
  std::optional<Matrix<double>> passing_;
  Norm norm_ = 0;
};

TEST_P(SampledCholeskyCheck, LeavesRoundingOfAGoodFactor) {
  EXPECT_LT(residual(), 1);
}

TEST_P(SampledCholeskyCheck, HasTheNormOfTheMatrix) {
  expect_near(check().norm, norm_);
}

TEST_P(SampledCholeskyCheck, HasTheSameBitsEachTime) {
  const CholeskyResidual first = check();
  for (int k = 0; k < 3; ++k) {
    const CholeskyResidual again = check();
    EXPECT_EQ(again.scaled, first.scaled);
    EXPECT_EQ(again.norm, first.norm);
  }
}

TEST_P(SampledCholeskyCheck, FindsAnErrorInOneElementOfTheProduct) {
  const double error = 1e-8 * static_cast<double>(norm_);
  for (int k = 0; k < planted_errors; ++k) {
    const std::int64_t row = below(n());
    const std::int64_t column = below(row + 1);
    if (copy_) {
      const double before = plant(*copy_, row, column, error);
      EXPECT_GT(residual(), 10) << row << ", " << column;
      put_back(*copy_, row, column, before);
    } else {
      source_.plant(row, column, error);
      EXPECT_GT(residual(), 10) << row << ", " << column;
      source_.plant(-1, -1, 0);
    }
  }
  EXPECT_LT(residual(), 1);
}

TEST_P(SampledCholeskyCheck, FindsAnErrorInOneElementOfTheFactor) {
  for (int k = 0; k < planted_errors / 5; ++k) {
    const std::int64_t row = below(n());
    const std::int64_t column = below(row + 1);
    const double diagonal = plant(l_, column, column, 0);
    const double before = plant(l_, row, column, 1e-8 * static_cast<double>(norm_) / diagonal);
    EXPECT_GT(residual(), 10) << row << ", " << column;
    put_back(l_, row, column, before);
  }
}

TEST_P(SampledCholeskyCheck, IsNoNumberIfTheFactorHasNone) {
  plant(l_, n() - 1, 0, std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(residual()));
}

TEST_P(SampledCholeskyCheck, TellsWhatCannotBeRead) {
  if (copy_) return;
  source_.plant(n() / 2, n() / 2, std::numeric_limits<double>::infinity());
  try {
    static_cast<void>(residual());
    FAIL() << "nothing was thrown";
  } catch (const AgreedError& error) {
    EXPECT_STREQ(error.what(), "the disk failed");
    EXPECT_EQ(error.code(), ErrorCode::usage);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, SampledCholeskyCheck,
                         testing::Combine(testing::Values(1, 45, 300), testing::Bool(),
                                          testing::Values("none", "emulated, per_node: 2")));

/// m and n; whether a copy of A is kept; device backend.
using QrCase = std::tuple<std::pair<std::int64_t, std::int64_t>, bool, const char*>;

QrMatrix make_q(Node& node, std::int64_t m, std::int64_t n) {
  const QrLayout layout{
      .tile = 16, .strip = 8, .small = 4, .virtual_tiles = 2, .inner = 8, .tree = QrTree::binomial};
  return qr_matrix(node, m, n, layout, Distribution{.devices = node.facts().devices});
}

class SampledQrCheck : public Checks, public testing::WithParamInterface<QrCase> {
 protected:
  SampledQrCheck()
      : Checks(std::get<2>(GetParam())),
        good_(make_generator(random_matrix())),
        source_(*good_),
        q_(make_q(node_, m(), n())),
        sample_(SampledQr::made_by(q_, true, maker())),
        tiles_(make(keeps_copy() ? q_.a.spec() : passing_spec(q_.a.spec()))) {
    source_.prepare(wanted_of(q_.a, source_));
    read_elements(source_, q_.a, Checked::yes, "the matrix");
    one_norms_ = column_norms(q_.a);
    two_norms_ = column_two_norms(q_.a, GlobalRow{0});
    norm_ = largest_of(one_norms_);
    if (keeps_copy()) run_job(node_, copy_tiles(tiles_, q_.a));
    run_job(node_, qr(q_));
  }
  [[nodiscard]] static std::int64_t m() { return std::get<0>(GetParam()).first; }
  [[nodiscard]] static std::int64_t n() { return std::get<0>(GetParam()).second; }
  [[nodiscard]] static bool keeps_copy() { return std::get<1>(GetParam()); }
  [[nodiscard]] static GeneratorOptions random_matrix() {
    GeneratorOptions options;
    options.kind = GeneratorKind::random;
    options.m = m();
    options.n = n();
    return options;
  }
  [[nodiscard]] QrResiduals residuals() {
    const Again again = keeps_copy() ? Again::of_copy(tiles_) : Again::of_source(tiles_, &source_);
    return sampled_qr_residuals(q_, again, sample_);
  }

  std::unique_ptr<MatrixSource> good_;
  Planted source_;
  QrMatrix q_;
  SampledQr sample_;
  Matrix<double> tiles_;
  std::vector<Norm> one_norms_;
  std::vector<Norm> two_norms_;
  Norm norm_ = 0;
};

TEST_P(SampledQrCheck, HasTheNormsOfTheColumns) {
  const QrResiduals found = residuals();
  ASSERT_EQ(found.one_norms.size(), one_norms_.size());
  ASSERT_EQ(found.two_norms.size(), two_norms_.size());
  for (std::size_t j = 0; j < one_norms_.size(); ++j) {
    expect_near(found.one_norms[j], one_norms_[j]);
    expect_near(found.two_norms[j], two_norms_[j]);
  }
}

TEST_P(SampledQrCheck, LeavesRoundingOfAGoodFactor) {
  EXPECT_LT(residuals().factorization, 1);
  EXPECT_LT(residuals().orthogonality, 1);
}

TEST_P(SampledQrCheck, HasTheSameBitsEachTime) {
  const QrResiduals first = residuals();
  for (int k = 0; k < 3; ++k) {
    const QrResiduals again = residuals();
    EXPECT_EQ(again.factorization, first.factorization);
    EXPECT_EQ(again.orthogonality, first.orthogonality);
    EXPECT_EQ(again.one_norms, first.one_norms);
    EXPECT_EQ(again.two_norms, first.two_norms);
  }
}

TEST_P(SampledQrCheck, FindsAnErrorInOneElementOfTheProduct) {
  for (int k = 0; k < planted_errors; ++k) {
    const std::int64_t row = below(m());
    const std::int64_t column = below(n());
    const double error = 1e-8 * static_cast<double>(norm_);
    const double before = keeps_copy() ? plant(tiles_, row, column, error) : 0;
    source_.plant(row, column, error);
    EXPECT_GT(residuals().factorization, 10) << row << ", " << column;
    if (keeps_copy()) put_back(tiles_, row, column, before);
  }
}

TEST_P(SampledQrCheck, FindsAnErrorInOneElementOfR) {
  for (int k = 0; k < planted_errors / 5; ++k) {
    const std::int64_t column = below(n());
    const std::int64_t row = below(column + 1);
    const double before = plant(q_.r, row, column, 1e-8 * static_cast<double>(norm_));
    EXPECT_GT(residuals().factorization, 10) << row << ", " << column;
    put_back(q_.r, row, column, before);
  }
}

TEST_P(SampledQrCheck, FindsReflectorsThatAreNotOrthogonal) {
  for (int k = 0; k < planted_errors / 5; ++k) {
    const std::int64_t column = below(n());
    // Below the diagonal of a panel's first tall tile are reflectors of geqrt.
    const std::int64_t row = std::min(m() - 1, column + 1);
    if (row == column) return;
    const double before = plant(q_.a, row, column, 1e-6);
    EXPECT_GT(residuals().orthogonality, 10) << row << ", " << column;
    put_back(q_.a, row, column, before);
  }
}

TEST_P(SampledQrCheck, IsNoNumberIfTheFactorHasNone) {
  plant(q_.r, 0, n() - 1, std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(residuals().factorization));
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, SampledQrCheck,
    testing::Combine(testing::Values(std::pair(1, 1), std::pair(45, 45), std::pair(300, 40)),
                     testing::Bool(), testing::Values("none", "emulated, per_node: 2")));

/// Device backend.
class ChecksNearTheEndsOfTheRange : public Checks, public testing::WithParamInterface<const char*> {
 protected:
  ChecksNearTheEndsOfTheRange() : Checks(GetParam()) {}
};

TEST_P(ChecksNearTheEndsOfTheRange, FindTheNormOfASymmetricMatrix) {
  constexpr std::int64_t n = 40;
  for (const double scale : {1e308, 1e-290}) {
    const Given source(
        n, n, [scale](std::int64_t i, std::int64_t j) { return (i == j ? 1 : 0.03) * scale; });
    const MatrixSpec spec(TileLayout{.rows = n, .columns = n, .tile = 16},
                          Distribution{.devices = node_.facts().devices}, Storage::lower);
    const Matrix<double> l = make(spec);
    read_elements(source, l, Checked::yes, "the matrix");
    expect_near(symmetric_one_norm(l), (1 + 39 * Norm{0.03}) * scale);
    run_job(node_, cholesky(l));
    const SampledCholesky sample = SampledCholesky::made_by(l, maker());
    const Again again = Again::of_source(make(passing_spec(spec)), &source);
    const CholeskyResidual good = sampled_cholesky_residual(l, again, sample);
    expect_near(good.norm, (1 + 39 * Norm{0.03}) * scale);
    EXPECT_LT(good.scaled, 1);
    plant(l, 20, 20, 1e-6 * std::sqrt(scale));
    EXPECT_GT(sampled_cholesky_residual(l, again, sample).scaled, 10);
  }
}

TEST_P(ChecksNearTheEndsOfTheRange, FindTheNormsOfColumns) {
  constexpr std::int64_t m = 40;
  // Squares of the first columns are infinite or 0, and so is the sum of the first one.
  const Given source(m, 6, [](std::int64_t i, std::int64_t j) -> double {
    const double sign = (i * j) % 3 == 1 ? -1 : 1;
    switch (j) {
      case 0:
        return i % 4 == 3 ? 2.5e307 : 0;
      case 1:
        return sign * 1e-200;
      case 2:
        return sign * 1e-310;
      case 3:
        return 0;
      case 4:
        return sign * 1e160;
      default:
        return sign;
    }
  });
  const QrMatrix q = make_q(node_, m, 6);
  read_elements(source, q.a, Checked::yes, "the matrix");
  run_job(node_, qr(q));
  const SampledQr sample = SampledQr::made_by(q, true, maker());
  const Again again = Again::of_source(make(passing_spec(q.a.spec())), &source);
  const QrResiduals found = sampled_qr_residuals(q, again, sample);
  EXPECT_LT(found.factorization, 1);
  const Norm root = std::sqrt(Norm{m});
  expect_near(found.one_norms[0], 10 * Norm{2.5e307});
  expect_near(found.two_norms[0], std::sqrt(Norm{10}) * 2.5e307);
  const double sizes[] = {1e-200, 1e-310, 0, 1e160, 1};
  for (std::size_t j = 1; j < 6; ++j) {
    if (j == 3) continue;
    expect_near(found.one_norms[j], Norm{m} * sizes[j - 1]);
    expect_near(found.two_norms[j], root * sizes[j - 1]);
  }
  EXPECT_EQ(found.one_norms[3], 0);
  EXPECT_EQ(found.two_norms[3], 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, ChecksNearTheEndsOfTheRange,
                         testing::Values("none", "emulated, per_node: 2"));

}  // namespace
}  // namespace heddle
