#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include "algorithms/checks/sampled_cholesky.hpp"
#include "algorithms/checks/sampled_qr.hpp"
#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/io/agreement.hpp"
#include "algorithms/io/distributed_read.hpp"
#include "algorithms/matrix/generators.hpp"
#include "algorithms/reductions/passing_norms.hpp"
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

PartVisitor into(const std::shared_ptr<PassingNorms>& norms) {
  return [norms](GlobalRow row, GlobalColumn column, const TileView& part) {
    norms->add(row, column, part);
  };
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
    const auto norms = std::make_shared<PassingNorms>(l_);
    source_.prepare(wanted_of_symmetric(l_, source_));
    read_symmetric(source_, l_, Checked::yes, "the matrix", into(norms));
    EXPECT_TRUE(norms->is_valid());
    norm_ = largest_of(norms->one_norms(node_));
    EXPECT_NEAR(static_cast<double>(norm_ / symmetric_one_norm(l_)), 1, 1e-13);
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
  [[nodiscard]] double residual() {
    const Again again = copy_ ? Again::of_copy(*copy_) : Again::of_source(*passing_, &source_);
    return sampled_cholesky_residual(l_, again, norm_, sample_);
  }

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

TEST_P(SampledCholeskyCheck, HasTheSameBitsEachTime) {
  const double first = residual();
  for (int k = 0; k < 3; ++k) EXPECT_EQ(residual(), first);
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

/// m and n; device backend.
using QrCase = std::tuple<std::pair<std::int64_t, std::int64_t>, const char*>;

class SampledQrCheck : public Checks, public testing::WithParamInterface<QrCase> {
 protected:
  SampledQrCheck()
      : Checks(std::get<1>(GetParam())),
        good_(make_generator(random_matrix())),
        source_(*good_),
        q_(make_q()),
        sample_(SampledQr::made_by(q_, maker())),
        passing_(make(passing_spec(q_.a.spec()))) {
    const auto norms = std::make_shared<PassingNorms>(q_.a);
    source_.prepare(wanted_of_tiles(q_.a));
    read_tiles(source_, q_.a, Checked::yes, "the matrix", into(norms));
    EXPECT_TRUE(norms->is_valid());
    const std::vector<Norm> ones = norms->one_norms(node_);
    const std::vector<Norm> twos = norms->two_norms(node_);
    const std::vector<Norm> one_norms = column_norms(q_.a);
    const std::vector<Norm> two_norms = column_two_norms(q_.a, GlobalRow{0});
    for (std::size_t j = 0; j < ones.size(); ++j) {
      EXPECT_NEAR(static_cast<double>(ones[j] / one_norms[j]), 1, 1e-13);
      EXPECT_NEAR(static_cast<double>(twos[j] / two_norms[j]), 1, 1e-13);
    }
    norm_ = largest_of(ones);
    run_job(node_, qr(q_));
  }
  [[nodiscard]] static std::int64_t m() { return std::get<0>(GetParam()).first; }
  [[nodiscard]] static std::int64_t n() { return std::get<0>(GetParam()).second; }
  [[nodiscard]] static GeneratorOptions random_matrix() {
    GeneratorOptions options;
    options.kind = GeneratorKind::random;
    options.m = m();
    options.n = n();
    return options;
  }
  [[nodiscard]] QrMatrix make_q() {
    const QrLayout layout{.tile = 16,
                          .strip = 8,
                          .small = 4,
                          .virtual_tiles = 2,
                          .inner = 8,
                          .tree = QrTree::binomial};
    return qr_matrix(node_, m(), n(), layout, Distribution{.devices = node_.facts().devices});
  }
  [[nodiscard]] QrResiduals residuals() {
    return sampled_qr_residuals(q_, Again::of_source(passing_, &source_), norm_, sample_);
  }

  std::unique_ptr<MatrixSource> good_;
  Planted source_;
  QrMatrix q_;
  SampledQr sample_;
  Matrix<double> passing_;
  Norm norm_ = 0;
};

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
  }
}

TEST_P(SampledQrCheck, FindsAnErrorInOneElementOfTheProduct) {
  for (int k = 0; k < planted_errors; ++k) {
    const std::int64_t row = below(m());
    const std::int64_t column = below(n());
    source_.plant(row, column, 1e-8 * static_cast<double>(norm_));
    EXPECT_GT(residuals().factorization, 10) << row << ", " << column;
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

INSTANTIATE_TEST_SUITE_P(Sizes, SampledQrCheck,
                         testing::Combine(testing::Values(std::pair(1, 1), std::pair(45, 45),
                                                          std::pair(300, 40)),
                                          testing::Values("none", "emulated, per_node: 2")));

TEST(SampleUnit, KeepsProductsInTheRangeOfDoubles) {
  EXPECT_EQ(sample_unit(1, 1000), 1);
  EXPECT_EQ(sample_unit(Norm{1e308}, 1000), 0x1p-64);
  EXPECT_TRUE(std::isfinite(1e308 * sample_unit(Norm{1e308}, 1'000'000) * 1e6));
}

TEST(PassingNorms, AreFiniteWhereSumsOfDoublesAreNot) {
  Node node(Config::from_text("runtime: {cpu_workers: 1, devices: {backend: none}}\n", "test"));
  const Matrix<double> a =
      node.matrix<double>(MatrixSpec(TileLayout{.rows = 40, .columns = 3, .tile = 16}, {}));
  PassingNorms norms(a);
  EXPECT_TRUE(norms.is_valid());
  for (const std::int64_t row : {32, 0, 16}) {  // in any order
    std::vector<double> part(std::size_t{16} * 3);
    const TileView view{part.data(), std::min<std::int64_t>(16, 40 - row), 3, 16};
    for (std::int64_t i = 0; i < view.rows; ++i) {
      view(i, 0) = 1e308;
      view(i, 1) = 1e-200;
      view(i, 2) = 0;
    }
    norms.add(GlobalRow{row}, GlobalColumn{0}, view);
    EXPECT_TRUE(norms.is_valid());
  }
  const std::vector<Norm> ones = norms.one_norms(node);
  const std::vector<Norm> twos = norms.two_norms(node);
  EXPECT_NEAR(static_cast<double>(ones[0] / 40 / 1e308L), 1, 1e-12);
  EXPECT_NEAR(static_cast<double>(twos[0] / std::sqrt(Norm{40}) / 1e308L), 1, 1e-12);
  EXPECT_NEAR(static_cast<double>(twos[1] / std::sqrt(Norm{40}) / 1e-200L), 1, 1e-12);
  EXPECT_EQ(ones[2], 0);
  EXPECT_EQ(twos[2], 0);
}

}  // namespace
}  // namespace heddle
