#include "algorithms/checks/sampled_qr.hpp"

#include <cmath>

#include "algorithms/io/agreement.hpp"
#include "algorithms/reductions/verification.hpp"
#include "node-runtime/node.hpp"

namespace heddle {

std::vector<JobSpec> SampledQr::product_jobs(const QrMatrix& q) const {
  std::vector<JobSpec> jobs;
  jobs.push_back(subtract_product(product.top, q.r, minus_z));
  jobs.push_back(apply_q(q, product));
  return jobs;
}

std::vector<JobSpec> SampledQr::basis_jobs(const QrMatrix& q) const {
  std::vector<JobSpec> jobs;
  jobs.push_back(apply_q(q, basis));
  jobs.push_back(apply_q_transposed(q, basis));
  return jobs;
}

JobSpec SampledQr::job(const Again& a, const QrSideProducts& others, const SetPart& set) const {
  QrSideProducts all = others;
  all.products.push_back({product.x, z});
  all.back.push_back({sums, ones, kernel::Term::magnitude});
  if (squares) all.back.push_back({*squares, ones, kernel::Term::square});
  return a.job(all.products, all.back, set);
}

QrResiduals sampled_qr_residuals(const QrMatrix& q, const Again& a, const SampledQr& sample,
                                 const QrSideProducts& others) {
  Node& node = q.a.node();
  const auto m = static_cast<double>(q.a.rows());
  Settled difference;
  Settled ones;
  // Squares of elements that no double holds are negligible in sums within these bounds.
  Settled squares(0x1p-900, 0x1p1000);
  QrSideProducts remaining = others;
  for (const double unit : sample_units) {
    fill_with_sample(sample.z, unit);
    fill_with_sample(sample.minus_z, -unit);
    fill_with(sample.ones, unit);
    for (const Matrix<double>& y : {sample.product.x, sample.product.top, sample.sums}) {
      fill_with(y, 0);
    }
    if (sample.squares) fill_with(*sample.squares, 0);
    run_jobs(node, sample.product_jobs(q));
    a.run(node, [&](const SetPart& set) { return sample.job(a, remaining, set); });
    const double found[] = {largest_deviation(sample.product.x, 0)};
    bool all = difference.take(found, unit);
    all &= ones.take(elements_of(sample.sums), unit);
    if (sample.squares) all &= squares.take(elements_of(*sample.squares), Norm{unit} * unit);
    if (all) break;
    remaining = {};
  }
  QrResiduals residuals;
  residuals.one_norms = ones.sizes();
  for (const Norm sum : squares.sizes()) residuals.two_norms.push_back(std::sqrt(sum));
  residuals.factorization =
      scaled_factor_residual(difference.sizes()[0], largest_of(residuals.one_norms), m);

  fill_with(sample.basis.x, 0);
  fill_with_sample(sample.basis.top, 1);
  run_jobs(node, sample.basis_jobs(q));
  const Norm deviation[] = {largest_deviation(sample.basis.top, 1),
                            largest_deviation(sample.basis.x, 0, GlobalRow{q.a.columns()})};
  residuals.orthogonality = scaled_factor_residual(largest_of(deviation), 1, m);
  return residuals;
}

}  // namespace heddle
