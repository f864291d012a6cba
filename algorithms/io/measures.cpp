#include "algorithms/io/measures.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <span>

#include "algorithms/io/agreement.hpp"
#include "kernels/cpu/norms.hpp"

namespace heddle {
namespace {

/// Sums that the visits of one node add to.
struct Sums {
  explicit Sums(std::int64_t count) : values(static_cast<std::size_t>(count), 0.0) {}

  void add(std::int64_t first, std::span<const double> part) {
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < part.size(); ++i)
      values[static_cast<std::size_t>(first) + i] += part[i];
  }

  /// values[at] := the larger of it and `value`, or the one that is no number.
  void raise(std::int64_t at, double value) {
    const std::lock_guard lock(mutex);
    double& most = values[static_cast<std::size_t>(at)];
    if (!(value <= most) && !std::isnan(most)) most = value;
  }

  std::mutex mutex;
  std::vector<double> values;
};

std::vector<double> zeros(std::int64_t count) {
  return std::vector<double>(static_cast<std::size_t>(count), 0.0);
}

}  // namespace

double symmetric_one_norm(Matrix<double> a) {
  const auto sums = std::make_shared<Sums>(a.columns());
  a.for_each_tile([sums, layout = a.layout()](TileRow i, TileColumn c, TileView tile) {
    std::vector<double> rows = zeros(tile.rows);
    if (i.value() == layout.wide_of(c)) {
      host::add_symmetric_sums(tile, layout.offset_in_wide(c), rows);
    } else {
      std::vector<double> columns = zeros(tile.columns);
      host::add_column_sums(tile, columns);
      host::add_row_sums(tile, rows);
      sums->add(layout.column_begin(c), columns);
    }
    sums->add(layout.row_begin(i), rows);
  });
  a.node().all_reduce(sums->values, Reduction::sum);
  return largest_of(sums->values);
}

std::vector<double> column_norms(Matrix<double> b) {
  const auto sums = std::make_shared<Sums>(b.columns());
  b.for_each_tile([sums, layout = b.layout()](TileRow, TileColumn c, TileView tile) {
    std::vector<double> columns = zeros(tile.columns);
    host::add_column_sums(tile, columns);
    sums->add(layout.column_begin(c), columns);
  });
  b.node().all_reduce(sums->values, Reduction::sum);
  return sums->values;
}

double largest_of(std::span<const double> values) {
  double most = 0;
  for (const double value : values) {
    if (!(value <= most)) most = value;
    if (std::isnan(most)) break;
  }
  return most;
}

std::vector<double> column_two_norms(Matrix<double> b, GlobalRow first) {
  // Each column in units of its largest element, so that no square overflows.
  const auto most = std::make_shared<Sums>(b.columns());
  const auto visit_rows = [&](const auto& visit) {
    b.for_each_tile([&visit, first, layout = b.layout()](TileRow i, TileColumn c, TileView tile) {
      const std::int64_t begin =
          std::clamp<std::int64_t>(first.value() - layout.row_begin(i), 0, tile.rows);
      visit(layout.column_begin(c), tile.block(begin, 0, tile.rows - begin, tile.columns));
    });
  };
  visit_rows([most](std::int64_t column, const TileView& rows) {
    for (std::int64_t j = 0; j < rows.columns; ++j) {
      double value = 0;
      for (std::int64_t i = 0; i < rows.rows; ++i) {
        if (!(std::abs(rows(i, j)) <= value)) value = std::abs(rows(i, j));
        if (std::isnan(value)) break;
      }
      most->raise(column + j, value);
    }
  });
  b.node().all_reduce(most->values, Reduction::maximum);
  const auto squares = std::make_shared<Sums>(b.columns());
  visit_rows([most, squares](std::int64_t column, const TileView& rows) {
    std::vector<double> sums = zeros(rows.columns);
    for (std::int64_t j = 0; j < rows.columns; ++j) {
      const double unit = most->values[static_cast<std::size_t>(column + j)];
      if (unit == 0 || !std::isfinite(unit)) continue;
      double& sum = sums[static_cast<std::size_t>(j)];
      for (std::int64_t i = 0; i < rows.rows; ++i) sum += rows(i, j) / unit * (rows(i, j) / unit);
    }
    squares->add(column, sums);
  });
  b.node().all_reduce(squares->values, Reduction::sum);
  std::vector<double> norms = most->values;
  for (std::size_t j = 0; j < norms.size(); ++j) {
    if (std::isfinite(norms[j])) norms[j] *= std::sqrt(squares->values[j]);
  }
  return norms;
}

Comparison compare(Matrix<double> x, const MatrixSource& source) {
  const auto norms = std::make_shared<Sums>(x.columns());
  const auto differences = std::make_shared<Sums>(x.columns());
  together(x.node(), [&] {
    x.for_each_tile(
        [norms, differences, &source, layout = x.layout()](TileRow i, TileColumn c, TileView tile) {
          std::vector<double> memory(static_cast<std::size_t>(tile.rows * tile.columns));
          const TileView a{memory.data(), tile.rows, tile.columns,
                           std::max<std::int64_t>(1, tile.rows)};
          source.read(GlobalRow{layout.row_begin(i)}, GlobalColumn{layout.column_begin(c)}, a);
          std::vector<double> columns = zeros(tile.columns);
          host::add_column_sums(a, columns);
          norms->add(layout.column_begin(c), columns);
          for (std::int64_t j = 0; j < tile.columns; ++j) {
            for (std::int64_t k = 0; k < tile.rows; ++k) a(k, j) -= tile(k, j);
          }
          std::fill(columns.begin(), columns.end(), 0.0);
          host::add_column_sums(a, columns);
          differences->add(layout.column_begin(c), columns);
        });
  });
  x.node().all_reduce(norms->values, Reduction::sum);
  x.node().all_reduce(differences->values, Reduction::sum);
  return {largest_of(norms->values), largest_of(differences->values)};
}

double log_determinant_of_factor(Matrix<double> l) {
  const auto logs = std::make_shared<Sums>(l.layout().tile_columns());
  l.for_each_tile([logs, layout = l.layout()](TileRow i, TileColumn c, TileView tile) {
    if (i.value() != layout.wide_of(c)) return;
    const double part = host::sum_of_logs(tile, layout.offset_in_wide(c));
    logs->add(c.value(), {&part, 1});
  });
  l.node().all_reduce(logs->values, Reduction::sum);
  double sum = 0;
  for (const double part : logs->values) sum += part;
  return 2 * sum;
}

double scaled_factor_residual(double difference, double a_norm, double n) {
  if (difference == 0) return 0;
  return difference / (n * a_norm * std::numeric_limits<double>::epsilon());
}

double scaled_solution_residual(const std::vector<double>& differences,
                                const std::vector<double>& x_norms,
                                const std::vector<double>& b_norms, double a_norm, double n) {
  std::vector<double> scaled(differences.size(), 0.0);
  for (std::size_t k = 0; k < scaled.size(); ++k) {
    if (differences[k] == 0) continue;
    const double scale = n * (a_norm * x_norms[k] + b_norms[k]);
    scaled[k] = differences[k] / (scale * std::numeric_limits<double>::epsilon());
  }
  return largest_of(scaled);
}

double scaled_normal_residual(const std::vector<double>& products,
                              const std::vector<double>& x_norms,
                              const std::vector<double>& b_norms, double a_norm, double m) {
  std::vector<double> scaled(products.size(), 0.0);
  for (std::size_t k = 0; k < scaled.size(); ++k) {
    if (products[k] == 0) continue;
    // Norms may be as large or small as doubles are: their product is never formed.
    const double scale = a_norm * x_norms[k] + b_norms[k];
    scaled[k] = products[k] / a_norm / scale / (m * std::numeric_limits<double>::epsilon());
  }
  return largest_of(scaled);
}

}  // namespace heddle
