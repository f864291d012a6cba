#include "algorithms/checks/sampled_qr.hpp"

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

QrResiduals sampled_qr_residuals(const QrMatrix& q, const Again& a, Norm norm,
                                 const SampledQr& sample, const std::vector<Product>& others,
                                 const std::vector<Product>& back) {
  Node& node = q.a.node();
  const auto m = static_cast<double>(q.a.rows());
  const GlobalRow n{q.a.columns()};
  const double unit = sample_unit(norm, n.value());
  fill_with_sample(sample.z, unit);
  fill_with_sample(sample.minus_z, -unit);
  fill_with_zeros(sample.product.x);
  fill_with_zeros(sample.product.top);
  fill_with_zeros(sample.basis.x);
  fill_with_sample(sample.basis.top, 1);
  run_jobs(node, sample.product_jobs(q));
  std::vector<Product> products{sample.again()};
  products.insert(products.end(), others.begin(), others.end());
  a.run(node, [&](const SetPart& set) { return a.jobs(products, back, set); });
  QrResiduals residuals;
  residuals.factorization =
      scaled_factor_residual(largest_deviation(sample.product.x, 0) / unit, norm, m);
  run_jobs(node, sample.basis_jobs(q));
  const Norm deviation[] = {largest_deviation(sample.basis.top, 1),
                            largest_deviation(sample.basis.x, 0, n)};
  residuals.orthogonality = scaled_factor_residual(largest_of(deviation), 1, m);
  return residuals;
}

}  // namespace heddle
