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

std::vector<Product> SampledCholesky::products(const std::vector<Product>& others) const {
  std::vector<Product> all{{v, z}, {sums, ones, kernel::Term::magnitude}};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

CholeskyResidual sampled_cholesky_residual(const Matrix<double>& l, const Again& a,
                                           const SampledCholesky& sample,
                                           const std::vector<Product>& others) {
  require(l.rows() == l.columns() && l.storage() == Storage::lower,
          "sampled_cholesky_residual: the factor is {} x {}; it must be square with Storage::lower",
          l.rows(), l.columns());
  Node& node = l.node();
  Settled results;
  std::vector<Product> products = sample.products(others);
  for (const double unit : sample_units) {
    fill_with_sample(sample.z, unit);
    fill_with(sample.ones, unit);
    for (const Matrix<double>& m : {sample.w, sample.v, sample.sums}) fill_with(m, 0);
    run_jobs(node, sample.factor_jobs(l));
    a.run(node, [&](const SetPart& set) { return a.symmetric_job(products, set); });
    const double found[] = {largest_deviation(sample.sums, 0), largest_deviation(sample.v, 0)};
    if (results.take(found, unit)) break;
    products = sample.products();
  }
  const Norm norm = results.sizes()[0];
  return {scaled_factor_residual(results.sizes()[1], norm, static_cast<double>(l.columns())), norm};
}

}  // namespace heddle
