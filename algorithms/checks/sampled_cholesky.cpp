#include "algorithms/checks/sampled_cholesky.hpp"

#include "algorithms/io/agreement.hpp"
#include "base/require.hpp"
#include "node-runtime/node.hpp"

namespace heddle {

std::vector<JobSpec> SampledCholesky::factor_jobs(const Matrix<double>& l) const {
  std::vector<JobSpec> jobs;
  jobs.push_back(subtract_transposed_product(w, l, z));
  jobs.push_back(subtract_product(v, l, w));
  return jobs;
}

double sampled_cholesky_residual(const Matrix<double>& l, const Again& a, Norm norm,
                                 const SampledCholesky& sample,
                                 const std::vector<Product>& others) {
  require(l.rows() == l.columns() && l.storage() == Storage::lower,
          "sampled_cholesky_residual: the factor is {} x {}; it must be square with Storage::lower",
          l.rows(), l.columns());
  Node& node = l.node();
  const std::int64_t n = l.columns();
  const double unit = sample_unit(norm, n);
  fill_with_sample(sample.z, unit);
  fill_with_zeros(sample.w);
  fill_with_zeros(sample.v);
  run_jobs(node, sample.factor_jobs(l));
  std::vector<Product> products{sample.product()};
  products.insert(products.end(), others.begin(), others.end());
  a.run(node, [&](const SetPart& set) { return a.symmetric_jobs(products, set); });
  return scaled_factor_residual(largest_deviation(sample.v, 0) / unit, norm,
                                static_cast<double>(n));
}

}  // namespace heddle
