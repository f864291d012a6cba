#include "algorithms/qr/measures.hpp"

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "algorithms/io/agreement.hpp"
#include "algorithms/reductions/measures.hpp"
#include "algorithms/reductions/verification.hpp"
#include "algorithms/solve/solve.hpp"
#include "base/require.hpp"
#include "node-runtime/node.hpp"

namespace heddle {

std::optional<DependentColumn> first_dependent_column(const QrMatrix& q) {
  std::vector<double> of_r = diagonal(q.r);
  for (double& element : of_r) element = std::abs(element);
  const std::vector<Norm> norms = column_two_norms(q.r, GlobalRow{0});
  const double limit = static_cast<double>(q.a.rows()) * std::numeric_limits<double>::epsilon();
  constexpr double none = std::numeric_limits<double>::infinity();
  double first = none;
  for (std::size_t j = 0; j < of_r.size() && first == none; ++j) {
    if (of_r[j] <= limit * norms[j]) first = static_cast<double>(j);
  }
  // What follows depends on it: the nodes go on together, whatever their processors round.
  first = reduce(q.r.node(), first, Reduction::minimum);
  if (first == none) return std::nullopt;
  const auto j = static_cast<std::size_t>(first);
  return DependentColumn{static_cast<std::int64_t>(j) + 1, of_r[j], static_cast<double>(norms[j])};
}

MatrixSpec columns_of_product_spec(const Matrix<double>& q, TileColumn c) {
  require(TileColumn{0} <= c && c < q.layout().end_column(),
          "columns_of_product_spec: tile column {} of {}", c.value(), q.layout().tile_columns());
  const std::int64_t columns = q.layout().column_count(c);
  MatrixSpec spec(
      {.rows = q.columns(), .columns = columns, .tile = q.layout().wide_width(), .wide = columns},
      q.distribution());
  spec.distribution.devices = 0;
  return spec;
}

double loss_of_orthogonality(const Matrix<double>& q) {
  Node& node = q.node();
  std::vector<Norm> sums;
  for (TileColumn c{0}; c.value() < q.layout().tile_columns(); ++c) {
    std::optional<Matrix<double>> made;
    together(node, [&] { made = node.matrix<double>(columns_of_product_spec(q, c)); });
    Matrix<double>& product = *made;
    const std::int64_t first = q.layout().column_begin(c);
    product.fill([first](std::int64_t i, std::int64_t j) { return i == first + j ? 1.0 : 0.0; });
    run_job(node, subtract_transposed_product(product, q, q, c));
    const std::vector<Norm> columns = column_norms(product);
    sums.insert(sums.end(), columns.begin(), columns.end());
  }
  return static_cast<double>(largest_of(sums));
}

}  // namespace heddle
