#include "algorithms/io/measures.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <span>

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

  std::mutex mutex;
  std::vector<double> values;
};

/// The largest; not a number if any is none.
double largest(std::span<const double> values) {
  double most = 0;
  for (const double value : values) {
    if (!(value <= most)) most = value;
    if (std::isnan(most)) break;
  }
  return most;
}

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
  return largest(sums->values);
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
  return largest(scaled);
}

}  // namespace heddle
