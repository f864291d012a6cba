#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/checks/again.hpp"
#include "algorithms/checks/sampled_qr.hpp"
#include "algorithms/io/agreement.hpp"
#include "algorithms/io/distributed_read.hpp"
#include "algorithms/qr/layout.hpp"
#include "algorithms/qr/measures.hpp"
#include "algorithms/qr/qr_matrix.hpp"
#include "algorithms/reductions/measures.hpp"
#include "algorithms/reductions/verification.hpp"
#include "algorithms/solve/solve.hpp"
#include "apps/matrix_input.hpp"
#include "apps/method.hpp"
#include "apps/warm_up.hpp"
#include "base/error.hpp"
#include "config/problem.hpp"
#include "config/words.hpp"
#include "node-runtime/node_facts.hpp"

namespace heddle {
namespace {

/// Minimum tile of the reference products: updates of tall tiles are wide products.
constexpr std::int64_t product_tile_min = 256;
constexpr std::int64_t device_product_tile_min = 2048;
/// Most rows of the matrix that devices warm up on, and its tall tiles, if these have fewer.
constexpr std::int64_t warm_up_rows_max = 16384;
constexpr std::int64_t tall_tiles = 4;

/// One of the widest tile columns.
TileColumn widest_column(const TileLayout& layout) {
  TileColumn widest{0};
  const std::int32_t columns = std::min(layout.tile_columns(), layout.pieces_per_wide());
  for (TileColumn c{1}; c.value() < columns; ++c) {
    if (layout.column_count(c) > layout.column_count(widest)) widest = c;
  }
  return widest;
}

class QrMethod final : public Method {
 public:
  QrMethod(Node& node, Problem& problem)
      : node_(node),
        problem_(problem),
        cut_(choose_qr_cut(problem.m(), problem.n(), node.config().layout, node.facts())),
        input_(node, problem),
        keeps_copy_(problem.wanted().verify == Verify::automatic && cut_.distribution.devices > 0 &&
                    !input_.is_generated()) {}

  [[nodiscard]] config::Layout layout() const override { return layout_keys(cut_.layout); }
  [[nodiscard]] const Distribution& distribution() const override { return cut_.distribution; }
  [[nodiscard]] std::string tiles_text(std::int64_t tiles) const override {
    const QrLayout& l = cut_.layout;
    std::string text = fmt::format("{} of {} x {}", tiles, l.tile * l.virtual_tiles, l.tile);
    if (l.strip > 0)
      text += fmt::format(" ({} columns in pieces of {} for the CPUs)", l.strip, l.small);
    return text + fmt::format(", inner {}, {} tree", l.inner, name_of(*layout().tree)) +
           divided_text(l.fine);
  }
  [[nodiscard]] double bytes_in_all() const override {
    const auto m = static_cast<double>(problem_.m());
    const auto n = static_cast<double>(problem_.n());
    const auto k = static_cast<double>(problem_.sides());
    return 8 * ((needs_copy() ? 2 : 1) * m * n + n * n / 2 + 2 * k * (m + n));
  }
  [[nodiscard]] std::string bytes_text() const override {
    return fmt::format("{} x {} doubles{}, R and {} right-hand sides", problem_.m(), problem_.n(),
                       needs_copy() ? " twice (problem.verify=full, problem.output.q)" : "",
                       problem_.sides());
  }
  bool forgo_copy() override { return std::exchange(keeps_copy_, false); }
  [[nodiscard]] std::string verification_text() const override {
    if (verify() == Verify::none) return "none";
    if (verify() == Verify::full)
      return "full: A - Q R and I - Q^T Q as matrices, from the input once more";
    return sampled_text(keeps_copy_, input_.is_generated());
  }
  [[nodiscard]] TileLayout product_layout() const override {
    TileLayout layout;
    layout.strip = cut_.layout.strip;
    layout.tile = std::max(cut_.layout.tile, cut_.distribution.devices > 0 ? device_product_tile_min
                                                                           : product_tile_min);
    return layout;
  }

  [[nodiscard]] Undertaking undertaking() override {
    using Use = Undertaking::Use;
    const Shadows shadow(node_);
    const QrSpecs specs = qr_specs(problem_.m(), problem_.n(), cut_.layout, cut_.distribution);
    const QrMatrix q = qr_matrix_of(specs, cut_.layout, shadow);
    Undertaking u;
    u.held = {{q.a, Use::matrix}, {q.t, Use::matrix}, {q.r, Use::matrix}};
    input_.add_to(u, q.a, shadow);
    if (q.pair_v) {
      u.held.push_back({*q.pair_v, Use::matrix});
      u.held.push_back({*q.pair_t, Use::matrix});
    }
    u.factorization = qr(q);
    const QrOperand b = qr_operand_of(qr_operand_specs(q, problem_.sides()), shadow);
    const Matrix<double> x = shadow(right_hand_sides_spec(q.r, problem_.sides()));
    if (problem_.has_sides()) {
      for (const Matrix<double>& m : {b.x, b.top, x}) u.held.push_back({m, Use::sides});
      for (const Matrix<double>& m : b.elsewhere) u.held.push_back({m, Use::sides});
      u.solution.push_back(apply_q_transposed(q, b));
      u.solution.push_back(solve_upper(q.r, x, b.top));
    }
    if (verify() == Verify::automatic && problem_.n() > 0) add_sampled(u, shadow, q, b, x);
    if (!needs_copy()) return u;
    const QrOperand copy = qr_operand_of(explicit_q_operand_specs(q), shadow);
    u.held.push_back({copy.x, Use::copy});
    u.held.push_back({copy.top, Use::copy});
    if (problem_.wanted().output.q) u.results.push_back(apply_q_to_triangle(q, copy));
    if (verify() == Verify::full) {
      // Once with R, once with the identity.
      for (int k = 0; k < 2; ++k) u.verification.push_back(apply_q_to_triangle(q, copy));
    }
    if (verify() == Verify::full && problem_.n() > 0) {
      const TileColumn c = widest_column(q.a.layout());
      const Matrix<double> product = shadow(columns_of_product_spec(copy.x, c));
      u.held.push_back({product, Use::copy});
      u.verification.push_back(subtract_transposed_product(product, copy.x, copy.x, c));
    }
    if (verify() == Verify::full && problem_.has_sides()) {
      const QrSideProducts sides = side_products(b, x);
      u.verification.push_back(Again::of_copy(copy.x).job(sides.products, sides.back));
    }
    return u;
  }

  void begin_reading(std::uint64_t device_spare) override {
    q_ = qr_matrix(node_, problem_.m(), problem_.n(), cut_.layout, cut_.distribution);
    input_.prepare(q_->a);
    if (keeps_copy_) copy_ = make_copy();
    begin_warm_up(device_spare);
    input_.begin(q_->a, Checked::yes);
    if (keeps_copy_) copying_ = node_.submit(copy_tiles(*copy_, q_->a));
    if (!problem_.has_sides()) return;
    together(node_, [&] {
      b_ = qr_operand(*q_, problem_.sides());
      x_ = right_hand_sides(q_->r, problem_.sides());
    });
    input_.begin_sides(b_->x);
  }
  void finish_reading() override {
    input_.finish();
    if (copying_) wait_for(*copying_);
  }

  [[nodiscard]] JobSpec factorization() override {
    warm_up_.end();
    return qr(*q_);
  }
  [[nodiscard]] double flops() const override {
    return qr_flops(static_cast<double>(problem_.m()), static_cast<double>(problem_.n()));
  }

  [[nodiscard]] Prospect judge(const JobResult& /*result*/, Report& report) override {
    if (const auto element = first_non_finite(q_->r)) {
      report.status = RunStatus::failed;
      report.hint = fmt::format("R has elements that are not finite, first {}. {}",
                                heddle::describe(*element), beyond_doubles("the matrix"));
      return Prospect::nothing;
    }
    if (const auto dependent = first_dependent_column(*q_)) {
      report.status = RunStatus::rank_deficient;
      report.info = dependent->index;
      report.hint = fmt::format(
          "the matrix is rank deficient: column {} (counted from 1) is, to rounding, a combination "
          "of those before it: |R({}, {})| is {:.3g}, the column's norm {:.3g}. No solution was "
          "computed; the factor is as good as any. Leave that column out, or regularise.",
          dependent->index, dependent->index, dependent->index, dependent->diagonal,
          dependent->norm);
      return Prospect::factor;
    }
    report.status = RunStatus::ok;
    return Prospect::solution;
  }

  void solve(Report& report) override {
    run_job(node_, apply_q_transposed(*q_, *b_));
    run_job(node_, solve_upper(q_->r, *x_, b_->top));
    if (!is_tall()) return;
    const std::vector<Norm> norms = column_two_norms(b_->x, GlobalRow{problem_.n()});
    report.residual_norms.emplace(norms.begin(), norms.end());
  }

  void verify(Prospect prospect, Report& report) override {
    const bool has_solution = problem_.has_sides() && prospect == Prospect::solution;
    if (verify() == Verify::automatic) return verify_sampled(has_solution, report);
    verify_fully(has_solution, report);
  }

  [[nodiscard]] Matrix<double> solution() override { return *x_; }
  [[nodiscard]] Matrix<double> factor() override { return q_->r; }
  [[nodiscard]] Matrix<double> explicit_q() override {
    Matrix<double> copy = make_copy();
    make_q(copy);
    return copy;
  }

 private:
  using Verify = config::Verify;

  [[nodiscard]] Verify verify() const { return problem_.wanted().verify; }
  [[nodiscard]] bool needs_copy() const {
    return verify() == Verify::full || problem_.wanted().output.q;
  }
  [[nodiscard]] bool is_tall() const { return problem_.m() > problem_.n(); }

  void begin_warm_up(std::uint64_t device_spare) {
    const QrLayout& cut = cut_.layout;
    const std::int64_t columns =
        std::min(problem_.n(), cut.tile * WarmUp::columns_for(cut_.distribution));
    // Several tall tiles, unless they are so tall that one does.
    const std::int64_t wanted =
        std::min(warm_up_rows_max, tall_tiles * cut.tile * cut.virtual_tiles);
    const std::int64_t rows = std::min(problem_.m(), std::max(columns, wanted));
    const QrSpecs specs = qr_specs(rows, columns, cut, cut_.distribution);
    warm_up_.begin(node_, device_spare, {specs.a, specs.t, specs.r}, [&] {
      const QrMatrix q = qr_matrix(node_, rows, columns, cut, cut_.distribution);
      Matrix<double>(q.a).fill([](std::int64_t i, std::int64_t j) {
        return static_cast<double>((i * 7919 + j * j * 31 + j) % 1009) - 504;
      });
      return qr(q);
    });
  }

  /// What the products of the verification with A add to: b - A x and, where that does not vanish,
  /// A^T (b - A x).
  [[nodiscard]] QrSideProducts side_products(const QrOperand& b, const Matrix<double>& x) const {
    QrSideProducts all{{{b.x, x}}, {}};
    if (is_tall()) all.back.push_back({b.top, b.x});
    return all;
  }

  /// What the verification by random vectors adds to the plan.
  void add_sampled(Undertaking& u, const Shadows& shadow, const QrMatrix& q, const QrOperand& b,
                   const Matrix<double>& x) const {
    const SampledQr sample = SampledQr::made_by(q, problem_.has_sides() && is_tall(), shadow);
    for (const Matrix<double>& m : {sample.z, sample.minus_z, sample.product.x, sample.product.top,
                                    sample.basis.x, sample.basis.top, sample.ones, sample.sums}) {
      u.held.push_back({m, Undertaking::Use::sides});
    }
    if (sample.squares) u.held.push_back({*sample.squares, Undertaking::Use::sides});
    for (const QrOperand& operand : {sample.product, sample.basis}) {
      for (const Matrix<double>& m : operand.elsewhere)
        u.held.push_back({m, Undertaking::Use::sides});
    }
    QrSideProducts sides;
    if (problem_.has_sides()) sides = side_products(b, x);
    u.verify_by(sample.product_jobs(q));
    u.verify_by(sample.basis_jobs(q));
    const Matrix<double> tiles = shadow(keeps_copy_ ? q.a.spec() : input_.passing_spec(q.a.spec()));
    if (keeps_copy_) u.held.push_back({tiles, Undertaking::Use::copy});
    const Again again = keeps_copy_ ? Again::of_copy(tiles) : input_.again(tiles);
    u.verification.push_back(sample.job(again, sides));
    if (keeps_copy_) u.verification.push_back(copy_tiles(tiles, q.a));
  }

  /// max |A z - Q R z| and max |z - Q^T Q z| over random vectors, and the residual of the solution.
  void verify_sampled(bool has_solution, Report& report) {
    report.factorization_residual = 0;
    report.orthogonality = 0;
    if (problem_.n() > 0) {
      std::optional<SampledQr> sample;
      std::optional<Matrix<double>> tiles = copy_;
      together(node_, [&] {
        const auto make = [&](const MatrixSpec& spec) { return node_.matrix<double>(spec); };
        sample = SampledQr::made_by(*q_, has_solution && is_tall(), make);
        if (!tiles) tiles = make(input_.passing_spec(q_->a.spec()));
      });
      const Again again = copy_ ? Again::of_copy(*tiles) : input_.again(*tiles);
      QrSideProducts sides;
      std::vector<Norm> b_norms;
      if (has_solution) {
        b_norms = read_sides_again();
        sides = side_products(*b_, *x_);
      }
      const QrResiduals residuals = sampled_qr_residuals(*q_, again, *sample, sides);
      report.factorization_residual = residuals.factorization;
      report.orthogonality = residuals.orthogonality;
      if (has_solution) {
        report.solution_residual =
            solution_residual(is_tall() ? residuals.two_norms : residuals.one_norms, b_norms);
      }
    }
  }

  void verify_fully(bool has_solution, Report& report) {
    const auto m = static_cast<double>(problem_.m());
    // |A - Q R|
    Matrix<double> copy = make_copy();
    apply_to(copy, q_->r);
    const Comparison a = compare(copy, problem_.matrix());
    report.factorization_residual = scaled_factor_residual(a.difference, a.norm, m);
    if (has_solution) verify_solution(copy, a.column_norms, report);
    // |I - Q^T Q|
    make_q(copy);
    report.orthogonality = problem_.m() == 0 ? 0
                                             : loss_of_orthogonality(copy) /
                                                   (m * std::numeric_limits<double>::epsilon());
  }

  [[nodiscard]] Matrix<double> make_copy() {
    std::optional<Matrix<double>> made;
    together(node_, [&] { made = node_.matrix<double>(q_->a.spec()); });
    return *made;
  }
  /// copy := Q [top; 0].
  void apply_to(Matrix<double>& copy, const Matrix<double>& top) {
    copy.fill([](std::int64_t, std::int64_t) { return 0.0; });
    run_job(node_, apply_q_to_triangle(*q_, {copy, top, q_->traveling_r}));
  }
  void make_q(Matrix<double>& copy) {
    std::optional<Matrix<double>> identity;
    together(node_, [&] { identity = node_.matrix<double>(q_->r.spec()); });
    identity->fill([](std::int64_t i, std::int64_t j) { return i == j ? 1.0 : 0.0; });
    apply_to(copy, *identity);
  }

  /// |b - A x| of a square system, otherwise |A^T (b - A x)|; both are read again into `a` and b.
  void verify_solution(Matrix<double>& a, const std::vector<Norm>& a_norms, Report& report) {
    input_.begin(a, Checked::before);
    input_.finish();
    const std::vector<Norm> b_norms = read_sides_again();
    const QrSideProducts sides = side_products(*b_, *x_);
    run_job(node_, Again::of_copy(a).job(sides.products, sides.back));
    report.solution_residual =
        solution_residual(is_tall() ? column_two_norms(a, GlobalRow{0}) : a_norms, b_norms);
  }

  /// b as it was, and the norms of its columns; A^T b is zero.
  [[nodiscard]] std::vector<Norm> read_sides_again() {
    read_elements(problem_.right_hand_sides(), b_->x, Checked::before, problem_.sides_name());
    if (!is_tall()) return column_norms(b_->x);
    fill_with(b_->top, 0);
    return column_two_norms(b_->x, GlobalRow{0});
  }

  /// The scaled residual from what side_products() left. Each column of A is weighted by its own
  /// norm in `a_norms` (1-norms, 2-norms for a tall matrix), so columns may differ in scale.
  [[nodiscard]] double solution_residual(const std::vector<Norm>& a_norms,
                                         const std::vector<Norm>& b_norms) {
    const std::vector<Norm> x_norms = weighted_norms(*x_, a_norms);
    if (!is_tall()) {
      return scaled_solution_residual(column_norms(b_->x), x_norms, b_norms, 1,
                                      static_cast<double>(problem_.n()));
    }
    return scaled_normal_residual(largest_quotients(b_->top, a_norms), x_norms, b_norms, 1,
                                  static_cast<double>(problem_.m()));
  }

  Node& node_;
  Problem& problem_;
  QrCut cut_;
  MatrixInput input_;
  bool keeps_copy_;  ///< on devices, for verify: auto, if there is room
  std::optional<Matrix<double>> copy_;
  std::optional<Job> copying_;
  std::optional<QrMatrix> q_;
  std::optional<QrOperand> b_;       ///< right-hand sides, then Q^T b
  std::optional<Matrix<double>> x_;  ///< the solution
  WarmUp warm_up_;
};

}  // namespace

std::unique_ptr<Method> make_qr(Node& node, Problem& problem) {
  return std::make_unique<QrMethod>(node, problem);
}

}  // namespace heddle
