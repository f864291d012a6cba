#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/checks/sampled_cholesky.hpp"
#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/cholesky/inverses.hpp"
#include "algorithms/io/agreement.hpp"
#include "algorithms/io/distributed_read.hpp"
#include "algorithms/reductions/measures.hpp"
#include "algorithms/reductions/verification.hpp"
#include "algorithms/solve/solve.hpp"
#include "apps/matrix_input.hpp"
#include "apps/method.hpp"
#include "apps/warm_up.hpp"
#include "base/assert.hpp"
#include "base/error.hpp"
#include "config/problem.hpp"
#include "config/words.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/tuning.hpp"

namespace heddle {
namespace {

class CholeskyMethod final : public Method {
 public:
  CholeskyMethod(Node& node, Problem& problem)
      : node_(node),
        problem_(problem),
        layout_(node.default_layout(problem.n(), problem.n())),
        distribution_(node.default_distribution(problem.n(), problem.n())),
        input_(node, problem),
        keeps_copy_(problem.wanted().verify == Verify::automatic && distribution_.devices > 0 &&
                    !input_.is_generated()) {}

  [[nodiscard]] config::Layout layout() const override { return layout_keys(layout_); }
  [[nodiscard]] const Distribution& distribution() const override { return distribution_; }
  [[nodiscard]] std::string tiles_text(std::int64_t tiles) const override {
    std::string text = fmt::format("{} of {} x {}", tiles, layout_.tile, layout_.tile);
    if (layout_.strip > 0) {
      text = fmt::format("{}; {} x {}, of which {} columns in pieces of {} for the CPUs", tiles,
                         layout_.tile, layout_.tile, layout_.strip, layout_.small);
    }
    return text + divided_text(layout_.fine);
  }
  [[nodiscard]] double bytes_in_all() const override {
    const auto n = static_cast<double>(problem_.n());
    const double matrices = verify() == Verify::full ? 2 : 1;
    return 8 * (matrices * n * n / 2 + 2 * n * static_cast<double>(problem_.sides()));
  }
  [[nodiscard]] std::string bytes_text() const override {
    return fmt::format("the lower triangle of {} x {} doubles{} and {} right-hand sides",
                       problem_.n(), problem_.n(),
                       verify() == Verify::full ? " twice (problem.verify=full)" : "",
                       problem_.sides());
  }
  bool forgo_copy() override { return std::exchange(keeps_copy_, false); }
  [[nodiscard]] std::string verification_text() const override {
    if (verify() == Verify::none) return "none";
    if (verify() == Verify::full) return "full: A - L L^T as a matrix, from the input once more";
    return sampled_text(keeps_copy_, input_.is_generated());
  }
  [[nodiscard]] TileLayout product_layout() const override { return layout_; }

  [[nodiscard]] Undertaking undertaking() override {
    using Use = Undertaking::Use;
    Shadows shadow(node_);
    const Matrix<double> a = shadow(lower());
    Undertaking u;
    u.held = {{a, Use::matrix}};
    input_.add_to(u, a, shadow);
    u.factorization = cholesky(a);
    const Matrix<double> x = shadow(right_hand_sides_spec(a, problem_.sides()));
    if (problem_.has_sides()) {
      u.held.push_back({x, Use::sides});
      u.solution.push_back(solve_cholesky(a, x));
    }
    if (verify() == Verify::automatic) add_sampled(u, shadow, a, x);
    if (verify() != Verify::full) return u;
    const Matrix<double> r = shadow(lower());
    u.held.push_back({r, Use::copy});
    u.verification.push_back(subtract_product(r, a));
    if (problem_.has_sides()) {
      const Matrix<double> y = shadow(right_hand_sides_spec(a, problem_.sides()));
      u.held.push_back({y, Use::sides});
      u.verification.push_back(subtract_symmetric_product(y, r, x));
    }
    return u;
  }

  void begin_reading(std::uint64_t device_spare) override {
    together(node_, [&] { a_ = node_.matrix<double>(lower()); });
    input_.prepare(*a_);
    if (keeps_copy_) together(node_, [&] { copy_ = node_.matrix<double>(lower()); });
    begin_warm_up(device_spare);
    input_.begin(*a_, Checked::yes);
    if (keeps_copy_) copying_ = node_.submit(copy_tiles(*copy_, *a_));
    if (!problem_.has_sides()) return;
    together(node_, [&] { x_ = right_hand_sides(*a_, problem_.sides()); });
    input_.begin_sides(*x_);
  }
  void finish_reading() override {
    input_.finish();
    if (copying_) wait_for(*copying_);
  }

  [[nodiscard]] JobSpec factorization() override {
    warm_up_.end();
    return cholesky(*a_);
  }
  [[nodiscard]] double flops() const override {
    return cholesky_flops(static_cast<double>(problem_.n()));
  }

  [[nodiscard]] Prospect judge(const JobResult& result, Report& report) override {
    if (result.status == JobResult::Status::numerical_failure) {
      report.status = RunStatus::not_positive_definite;
      report.info = result.info;
      report.hint = fmt::format(
          "the matrix is not positive definite: its leading minor of order {} is not, pivot {} "
          "(counted from 1) is {} and must be > 0. No results were written. Check the matrix "
          "there, or add a larger nugget to its diagonal.",
          result.info, result.info,
          std::isnan(result.pivot) ? std::string("not") : fmt::format("{:.17g}", result.pivot));
      return Prospect::nothing;
    }
    report.log_determinant = log_determinant_of_factor(*a_);
    // A non-finite element of L makes the pivot of its row NaN.
    if (!std::isfinite(*report.log_determinant)) {
      report.status = RunStatus::failed;
      report.hint =
          fmt::format("the factor L has elements that are not finite (log-determinant {}). {}",
                      *report.log_determinant, beyond_doubles("the matrix"));
      return Prospect::nothing;
    }
    report.status = RunStatus::ok;
    return Prospect::solution;
  }

  void solve(Report& /*report*/) override { run_job(node_, solve_cholesky(*a_, *x_)); }

  void verify(Prospect /*prospect*/, Report& report) override {
    if (verify() == Verify::automatic) return verify_sampled(report);
    verify_fully(report);
  }

  [[nodiscard]] Matrix<double> solution() override { return *x_; }
  [[nodiscard]] Matrix<double> factor() override { return *a_; }
  [[nodiscard]] Matrix<double> explicit_q() override { HEDDLE_CHECK(false, "cholesky has no Q"); }

 private:
  using Verify = config::Verify;

  [[nodiscard]] Verify verify() const { return problem_.wanted().verify; }
  [[nodiscard]] MatrixSpec lower() const {
    return MatrixSpec(layout_, distribution(), Storage::lower);
  }

  void begin_warm_up(std::uint64_t device_spare) {
    MatrixSpec spec = lower();
    const std::int64_t n =
        std::min(problem_.n(), layout_.tile * WarmUp::columns_for(distribution()));
    spec.layout.rows = spec.layout.columns = n;
    spec.spare_count = 0;
    warm_up_.begin(node_, device_spare, {spec}, [&] {
      std::optional<Matrix<double>> made;
      together(node_, [&] { made = node_.matrix<double>(spec); });
      made->fill([](std::int64_t i, std::int64_t j) { return i == j ? 1.0 : 0.0; });
      return cholesky(*made);
    });
  }

  /// What the verification by random vectors adds to the plan.
  void add_sampled(Undertaking& u, const Shadows& shadow, const Matrix<double>& a,
                   const Matrix<double>& x) {
    using Use = Undertaking::Use;
    const SampledCholesky sample = SampledCholesky::made_by(a, shadow);
    for (const Matrix<double>& m : {sample.z, sample.w, sample.v, sample.ones, sample.sums}) {
      u.held.push_back({m, Use::sides});
    }
    std::vector<Product> others;
    if (problem_.has_sides()) {
      const Matrix<double> y = shadow(right_hand_sides_spec(a, problem_.sides()));
      u.held.push_back({y, Use::sides});
      others.push_back({y, x});
    }
    const Matrix<double> tiles = shadow(keeps_copy_ ? lower() : input_.passing_spec(lower()));
    if (keeps_copy_) u.held.push_back({tiles, Use::copy});
    const Again again = keeps_copy_ ? Again::of_copy(tiles) : input_.again(tiles);
    u.verify_by(sample.factor_jobs(a));
    u.verification.push_back(again.symmetric_job(sample.products(others)));
    if (keeps_copy_) u.verification.push_back(copy_tiles(tiles, a));
  }

  /// max |A z - L L^T z| over random vectors, and |b - A x| with b read again.
  void verify_sampled(Report& report) {
    const auto n = static_cast<double>(problem_.n());
    std::optional<SampledCholesky> sample;
    std::optional<Matrix<double>> tiles = copy_;
    std::optional<Matrix<double>> sides;
    together(node_, [&] {
      const auto make = [&](const MatrixSpec& spec) { return node_.matrix<double>(spec); };
      sample = SampledCholesky::made_by(*a_, make);
      if (!tiles) tiles = make(input_.passing_spec(lower()));
      if (problem_.has_sides()) sides = right_hand_sides(*a_, problem_.sides());
    });
    const Again again = copy_ ? Again::of_copy(*tiles) : input_.again(*tiles);
    std::vector<Product> others;
    std::vector<Norm> b_norms;
    if (sides) {
      read_elements(problem_.right_hand_sides(), *sides, Checked::before, problem_.sides_name());
      b_norms = column_norms(*sides);
      others.push_back({*sides, *x_});
    }
    const CholeskyResidual residual = sampled_cholesky_residual(*a_, again, *sample, others);
    report.factorization_residual = residual.scaled;
    if (!sides) return;
    report.solution_residual = scaled_solution_residual(column_norms(*sides), column_norms(*x_),
                                                        b_norms, residual.norm, n);
  }

  /// |A - L L^T| and |b - A x|, with A and b read again.
  void verify_fully(Report& report) {
    const auto n = static_cast<double>(problem_.n());
    std::optional<Matrix<double>> made;
    std::optional<Matrix<double>> sides;
    together(node_, [&] {
      made = node_.matrix<double>(lower());
      if (problem_.has_sides()) sides = right_hand_sides(*a_, problem_.sides());
    });
    Matrix<double>& r = *made;
    input_.begin(r, Checked::before);
    input_.finish();
    const Norm a_norm = symmetric_one_norm(r);
    if (problem_.has_sides()) {
      Matrix<double>& y = *sides;
      read_elements(problem_.right_hand_sides(), y, Checked::before, problem_.sides_name());
      const std::vector<Norm> b_norms = column_norms(y);
      run_job(node_, subtract_symmetric_product(y, r, *x_));
      report.solution_residual =
          scaled_solution_residual(column_norms(y), column_norms(*x_), b_norms, a_norm, n);
    }
    run_job(node_, subtract_product(r, *a_));
    report.factorization_residual = scaled_factor_residual(symmetric_one_norm(r), a_norm, n);
  }

  Node& node_;
  Problem& problem_;
  TileLayout layout_;
  Distribution distribution_;
  std::optional<Matrix<double>> a_;  ///< the matrix, then its factor
  std::optional<Matrix<double>> x_;  ///< right-hand sides, then the solution
  MatrixInput input_;
  bool keeps_copy_;  ///< on devices, for verify: auto, if there is room
  std::optional<Matrix<double>> copy_;
  std::optional<Job> copying_;
  WarmUp warm_up_;
};

}  // namespace

std::unique_ptr<Method> make_cholesky(Node& node, Problem& problem) {
  return std::make_unique<CholeskyMethod>(node, problem);
}

}  // namespace heddle
