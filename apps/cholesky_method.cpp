#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/cholesky/inverses.hpp"
#include "algorithms/io/agreement.hpp"
#include "algorithms/io/distributed_read.hpp"
#include "algorithms/reductions/measures.hpp"
#include "algorithms/solve/solve.hpp"
#include "apps/method.hpp"
#include "base/assert.hpp"
#include "base/error.hpp"
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
        distribution_(node.default_distribution(problem.n(), problem.n())) {}

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
    const double matrices = problem_.wanted().verify ? 2 : 1;
    return 8 * (matrices * n * n / 2 + 2 * n * static_cast<double>(problem_.sides()));
  }
  [[nodiscard]] std::string bytes_text() const override {
    return fmt::format("the lower triangle of {} x {} doubles{} and {} right-hand sides",
                       problem_.n(), problem_.n(),
                       problem_.wanted().verify ? " twice (problem.verify)" : "", problem_.sides());
  }
  [[nodiscard]] TileLayout product_layout() const override { return layout_; }

  [[nodiscard]] Undertaking undertaking() override {
    using Use = Undertaking::Use;
    Shadows shadow(node_);
    const Matrix<double> a = shadow(lower());
    Undertaking u;
    u.held = {{a, Use::matrix}};
    u.factorization = cholesky(a);
    const Matrix<double> x = shadow(right_hand_sides_spec(a, problem_.sides()));
    if (problem_.has_sides()) {
      u.held.push_back({x, Use::sides});
      u.others.push_back(solve_cholesky(a, x));
    }
    if (!problem_.wanted().verify) return u;
    const Matrix<double> r = shadow(lower());
    u.held.push_back({r, Use::copy});
    u.others.push_back(subtract_product(r, a));
    if (problem_.has_sides()) {
      const Matrix<double> y = shadow(right_hand_sides_spec(a, problem_.sides()));
      u.held.push_back({y, Use::sides});
      u.others.push_back(subtract_symmetric_product(y, r, x));
    }
    return u;
  }

  void read() override {
    together(node_, [&] {
      a_ = node_.matrix<double>(lower());
      static_cast<void>(problem_.matrix());
    });
    MatrixSource& source = problem_.matrix();
    prepare_together(node_, source, wanted_of_symmetric(*a_, source));
    read_symmetric(problem_.matrix(), *a_, Checked::yes, problem_.matrix_name());
    if (!problem_.has_sides()) return;
    together(node_, [&] {
      x_ = right_hand_sides(*a_, problem_.sides());
      static_cast<void>(problem_.right_hand_sides());
    });
    prepare_together(node_, problem_.right_hand_sides(), wanted_of_tiles(*x_));
    read_tiles(problem_.right_hand_sides(), *x_, Checked::yes, problem_.sides_name());
  }

  [[nodiscard]] JobSpec factorization() override { return cholesky(*a_); }
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

  /// A - L L^T| and |b - A x|, with A and b read again.
  void verify(Prospect /*prospect*/, Report& report) override {
    const auto n = static_cast<double>(problem_.n());
    std::optional<Matrix<double>> made;
    std::optional<Matrix<double>> sides;
    together(node_, [&] {
      made = node_.matrix<double>(lower());
      if (problem_.has_sides()) sides = right_hand_sides(*a_, problem_.sides());
    });
    Matrix<double>& r = *made;
    read_symmetric(problem_.matrix(), r, Checked::before, problem_.matrix_name());
    const Norm a_norm = symmetric_one_norm(r);
    if (problem_.has_sides()) {
      Matrix<double>& y = *sides;
      read_tiles(problem_.right_hand_sides(), y, Checked::before, problem_.sides_name());
      const std::vector<Norm> b_norms = column_norms(y);
      run_job(node_, subtract_symmetric_product(y, r, *x_));
      report.solution_residual =
          scaled_solution_residual(column_norms(y), column_norms(*x_), b_norms, a_norm, n);
    }
    run_job(node_, subtract_product(r, *a_));
    report.factorization_residual = scaled_factor_residual(symmetric_one_norm(r), a_norm, n);
  }

  [[nodiscard]] Matrix<double> solution() override { return *x_; }
  [[nodiscard]] Matrix<double> factor() override { return *a_; }
  [[nodiscard]] Matrix<double> explicit_q() override { HEDDLE_CHECK(false, "cholesky has no Q"); }

 private:
  [[nodiscard]] MatrixSpec lower() const {
    return MatrixSpec(layout_, distribution(), Storage::lower);
  }

  Node& node_;
  Problem& problem_;
  TileLayout layout_;
  Distribution distribution_;
  std::optional<Matrix<double>> a_;  ///< the matrix, then its factor
  std::optional<Matrix<double>> x_;  ///< right-hand sides, then the solution
};

}  // namespace

std::unique_ptr<Method> make_cholesky(Node& node, Problem& problem) {
  return std::make_unique<CholeskyMethod>(node, problem);
}

}  // namespace heddle
