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
namespace {

/// The diagonal of R, by absolute value.
std::vector<double> diagonal_of(const QrMatrix& q) {
  // Each element is set by the one node that has it.
  const auto values =
      std::make_shared<std::vector<double>>(static_cast<std::size_t>(q.r.columns()), 0.0);
  Matrix<double> r = q.r;
  const TileLayout layout = r.layout();
  r.for_each_tile(
      [values, layout](TileRow, TileColumn c, TileView tile) {
        for (std::int64_t j = 0; j < tile.columns; ++j) {
          (*values)[static_cast<std::size_t>(layout.column_begin(c) + j)] =
              std::abs(tile(layout.offset_in_wide(c) + j, j));
        }
      },
      [layout](TileRow i, TileColumn c) { return i == layout.diagonal_row(c); });
  r.node().all_reduce(*values, Reduction::sum);
  return *values;
}

}  // namespace

std::optional<DependentColumn> first_dependent_column(const QrMatrix& q) {
  const std::vector<double> diagonal = diagonal_of(q);
  const std::vector<Norm> norms = column_two_norms(q.r, GlobalRow{0});
  const double limit = static_cast<double>(q.a.rows()) * std::numeric_limits<double>::epsilon();
  constexpr double none = std::numeric_limits<double>::infinity();
  double first = none;
  for (std::size_t j = 0; j < diagonal.size() && first == none; ++j) {
    if (diagonal[j] <= limit * norms[j]) first = static_cast<double>(j);
  }
  // What follows depends on it: the nodes go on together, whatever their processors round.
  first = reduce(q.r.node(), first, Reduction::minimum);
  if (first == none) return std::nullopt;
  const auto j = static_cast<std::size_t>(first);
  return DependentColumn{static_cast<std::int64_t>(j) + 1, diagonal[j],
                         static_cast<double>(norms[j])};
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
