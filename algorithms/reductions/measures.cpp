#include "algorithms/reductions/measures.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "algorithms/io/agreement.hpp"
#include "algorithms/reductions/sums.hpp"
#include "algorithms/reductions/verification.hpp"
#include "base/require.hpp"
#include "kernels/cpu/norms.hpp"

namespace heddle {

static_assert(std::numeric_limits<Norm>::max_exponent >
                  4 * std::numeric_limits<double>::max_exponent,
              "products of norms of doubles do not fit into long double here");
namespace {

/// The largest values over the tiles of one node. Any thread.
template <class Number>
struct Maxima {
  explicit Maxima(std::int64_t count) : values(static_cast<std::size_t>(count), 0) {}

  /// values[at] := the larger of it and `value`, or the one that is no number.
  void raise(std::int64_t at, Number value) {
    const std::lock_guard lock(mutex);
    Number& most = values[static_cast<std::size_t>(at)];
    if (!(value <= most) && !std::isnan(most)) most = value;
  }

  std::mutex mutex;
  std::vector<Number> values;
};

/// Lets `take` have the elements of each column of each tile, one after the other, with their rows:
/// it changes the tile's result for the column, which `keep` gets. Any thread.
template <class Take, class Keep>
void fold_columns(const Matrix<double>& b, const Take& take, const Keep& keep) {
  b.read_columns([take, keep, layout = b.layout()](TileRow i, TileColumn c, std::int64_t first,
                                                   TileView columns) {
    const auto row = static_cast<std::size_t>(layout.row_begin(i));
    for (std::int64_t j = 0; j < columns.columns; ++j) {
      Norm result = 0;
      for (std::int64_t k = 0; k < columns.rows; ++k) {
        take(result, row + static_cast<std::size_t>(k), std::abs(columns(k, j)));
      }
      keep(i, c, layout.column_begin(c) + first + j, result);
    }
  });
}

void require_square_lower(const char* function, const Matrix<double>& a) {
  require(a.rows() == a.columns() && a.storage() == Storage::lower,
          "{}: the matrix is {} x {}; it must be square with Storage::lower", function, a.rows(),
          a.columns());
}

void require_weights(const char* function, const Matrix<double>& b,
                     const std::vector<Norm>& weights) {
  require(std::ssize(weights) == b.rows(), "{}: {} weights for {} rows; each row needs one",
          function, weights.size(), b.rows());
}

void require_alike(const char* function, std::size_t differences, std::size_t x_norms,
                   std::size_t b_norms) {
  require(x_norms == differences && b_norms == differences,
          "{}: norms of {} differences, {} solutions and {} right-hand sides; as many of each are "
          "needed",
          function, differences, x_norms, b_norms);
}

/// A vector as a column.
TileView column_of(std::vector<double>& vector) {
  const auto count = static_cast<std::int64_t>(vector.size());
  return {vector.data(), count, 1, std::max<std::int64_t>(1, count)};
}

/// The 1-norms of the columns of `part`, times `unit`.
std::vector<double> column_sums(const TileView& part, double unit) {
  std::vector<double> units(static_cast<std::size_t>(part.rows), unit);
  std::vector<double> sums = zeros(part.columns);
  host::add_magnitudes_transposed(part, column_of(units), column_of(sums));
  return sums;
}

double nearest_double(Norm value) {
  constexpr double least = std::numeric_limits<double>::denorm_min();
  // Only what is 0 is 0.
  return value > 0 ? std::max(static_cast<double>(value), least) : static_cast<double>(value);
}

/// Reduces what may be larger than doubles are, in units of the largest of all nodes.
std::vector<Norm> over_all_nodes(Node& node, std::vector<Norm> values, Reduction reduction) {
  std::vector<double> exponents(values.size());
  std::transform(values.begin(), values.end(), exponents.begin(),
                 [](Norm value) { return static_cast<double>(std::ilogb(value)); });
  node.all_reduce(exponents, Reduction::maximum);
  std::vector<double> scaled(values.size());
  const auto scale = [&](std::size_t k) {
    // Zero, infinity and what is not a number have the least and largest exponents that there are.
    return static_cast<int>(std::clamp(exponents[k], -16000.0, 16000.0));
  };
  for (std::size_t k = 0; k < values.size(); ++k) {
    scaled[k] = static_cast<double>(std::ldexp(values[k], -scale(k)));
  }
  node.all_reduce(scaled, reduction);
  for (std::size_t k = 0; k < values.size(); ++k) {
    values[k] = std::ldexp(static_cast<Norm>(scaled[k]), scale(k));
  }
  return values;
}

}  // namespace

Norm symmetric_one_norm(const Matrix<double>& a) {
  require_square_lower("symmetric_one_norm", a);
  return largest_of(sums_in_range([&a](double unit) {
    const auto sums = std::make_shared<Sums<double>>(a.columns());
    a.read_columns([sums, unit, layout = a.layout()](TileRow i, TileColumn c, std::int64_t first,
                                                     TileView part) {
      std::vector<double> rows = zeros(part.rows);
      if (i == layout.diagonal_row(c)) {
        std::vector<double> units(rows.size(), unit);
        host::add_magnitudes_symmetric(part, layout.offset_in_wide(c) + first, column_of(units),
                                       column_of(rows));
      } else {
        std::vector<double> units(static_cast<std::size_t>(part.columns), unit);
        host::add_magnitudes(part, column_of(units), column_of(rows));
        sums->add(i, c, layout.column_begin(c) + first, column_sums(part, unit));
      }
      sums->add(i, c, layout.row_begin(i), rows);
    });
    return sum_over_nodes(a.node(), *sums);
  }));
}

std::vector<Norm> column_norms(const Matrix<double>& b) {
  return sums_in_range([&b](double unit) {
    const auto sums = std::make_shared<Sums<double>>(b.columns());
    b.read_columns([sums, unit, layout = b.layout()](TileRow i, TileColumn c, std::int64_t first,
                                                     TileView part) {
      sums->add(i, c, layout.column_begin(c) + first, column_sums(part, unit));
    });
    return sum_over_nodes(b.node(), *sums);
  });
}

Norm largest_of(std::span<const Norm> values) {
  Norm most = 0;
  for (const Norm value : values) {
    if (!(value <= most)) most = value;
    if (std::isnan(most)) break;
  }
  return most;
}

std::vector<Norm> column_two_norms(const Matrix<double>& b, GlobalRow first) {
  // Each column in units of its largest element, so that no square overflows.
  const auto most = std::make_shared<Maxima<double>>(b.columns());
  const auto visit_rows = [&](const auto& visit) {
    b.read_columns([visit, first, layout = b.layout()](TileRow i, TileColumn c, std::int64_t column,
                                                       TileView part) {
      const std::int64_t begin =
          std::clamp<std::int64_t>(first.value() - layout.row_begin(i), 0, part.rows);
      visit(i, c, layout.column_begin(c) + column,
            part.block(begin, 0, part.rows - begin, part.columns));
    });
  };
  visit_rows([most](TileRow, TileColumn, std::int64_t column, const TileView& rows) {
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
  const auto squares = std::make_shared<Sums<double>>(b.columns());
  visit_rows([most, squares](TileRow i, TileColumn c, std::int64_t column, const TileView& rows) {
    std::vector<double> sums = zeros(rows.columns);
    for (std::int64_t j = 0; j < rows.columns; ++j) {
      const double unit = most->values[static_cast<std::size_t>(column + j)];
      if (unit == 0 || !std::isfinite(unit)) continue;
      double& sum = sums[static_cast<std::size_t>(j)];
      for (std::int64_t k = 0; k < rows.rows; ++k) sum += rows(k, j) / unit * (rows(k, j) / unit);
    }
    squares->add(i, c, column, sums);
  });
  const std::vector<double> square_sums = sum_over_nodes(b.node(), *squares);
  std::vector<Norm> norms(most->values.begin(), most->values.end());
  for (std::size_t j = 0; j < norms.size(); ++j) {
    if (std::isfinite(norms[j])) norms[j] *= std::sqrt(square_sums[j]);
  }
  return norms;
}

std::vector<Norm> weighted_norms(const Matrix<double>& b, const std::vector<Norm>& weights) {
  require_weights("weighted_norms", b, weights);
  const auto sums = std::make_shared<Sums<Norm>>(b.columns());
  fold_columns(
      b, [weights](Norm& sum, std::size_t row, double value) { sum += weights[row] * value; },
      [sums](TileRow i, TileColumn c, std::int64_t column, Norm sum) {
        sums->add(i, c, column, {&sum, 1});
      });
  return over_all_nodes(b.node(), sums->total(), Reduction::sum);
}

std::vector<Norm> largest_quotients(const Matrix<double>& b, const std::vector<Norm>& weights) {
  require_weights("largest_quotients", b, weights);
  const auto most = std::make_shared<Maxima<Norm>>(b.columns());
  const auto take = [weights](Norm& largest, std::size_t row, double value) {
    const Norm quotient = value == 0 ? 0 : value / weights[row];
    if (!(quotient <= largest) && !std::isnan(largest)) largest = quotient;
  };
  fold_columns(b, take, [most](TileRow, TileColumn, std::int64_t column, Norm largest) {
    most->raise(column, largest);
  });
  return over_all_nodes(b.node(), most->values, Reduction::maximum);
}

std::optional<NonFinite> first_non_finite(const Matrix<double>& matrix) {
  constexpr double none = std::numeric_limits<double>::infinity();
  const auto found = std::make_shared<std::optional<NonFinite>>();
  const auto mutex = std::make_shared<std::mutex>();
  matrix.read_columns([found, mutex, layout = matrix.layout()](
                          TileRow i, TileColumn c, std::int64_t first, TileView columns) {
    const auto here = find_non_finite(columns, GlobalRow{layout.row_begin(i)},
                                      GlobalColumn{layout.column_begin(c) + first});
    if (!here) return;
    const std::lock_guard lock(*mutex);
    if (!*found || comes_before(*here, **found)) *found = here;
  });
  Node& node = matrix.node();
  const std::optional<NonFinite>& mine = *found;
  const double column =
      reduce(node, mine ? static_cast<double>(mine->column.value()) : none, Reduction::minimum);
  if (column == none) return std::nullopt;
  const bool leads = mine && static_cast<double>(mine->column.value()) == column;
  const double row =
      reduce(node, leads ? static_cast<double>(mine->row.value()) : none, Reduction::minimum);
  const bool is_mine = leads && static_cast<double>(mine->row.value()) == row;
  // One node has the value; the zeros of the others leave infinity and NaN as they are.
  double value = reduce(node, is_mine ? mine->value : 0, Reduction::sum);
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();  // without a sign
  return NonFinite{GlobalRow{static_cast<std::int64_t>(row)},
                   GlobalColumn{static_cast<std::int64_t>(column)}, value};
}

Comparison compare(const Matrix<double>& x, const MatrixSource& source) {
  require(source.rows() == x.rows() && source.columns() == x.columns(),
          "compare: the source is {} x {}, the matrix is {} x {}; they must be alike",
          source.rows(), source.columns(), x.rows(), x.columns());
  const std::int64_t n = x.columns();
  const std::vector<Norm> norms = sums_in_range([&](double unit) {
    // The sums of A, then those of the differences.
    const auto sums = std::make_shared<Sums<double>>(2 * n);
    together(x.node(), [&] {
      x.read_columns([sums, unit, n, &source, layout = x.layout()](
                         TileRow i, TileColumn c, std::int64_t first, TileView part) {
        std::vector<double> memory(static_cast<std::size_t>(part.rows * part.columns));
        const TileView a{memory.data(), part.rows, part.columns,
                         std::max<std::int64_t>(1, part.rows)};
        const std::int64_t column = layout.column_begin(c) + first;
        source.read(GlobalRow{layout.row_begin(i)}, GlobalColumn{column}, a);
        sums->add(i, c, column, column_sums(a, unit));
        for (std::int64_t j = 0; j < part.columns; ++j) {
          for (std::int64_t k = 0; k < part.rows; ++k) a(k, j) -= part(k, j);
        }
        sums->add(i, c, n + column, column_sums(a, unit));
      });
      source.check_unchanged();
    });
    return sum_over_nodes(x.node(), *sums);
  });
  const std::span<const Norm> all(norms);
  const auto count = static_cast<std::size_t>(n);
  return {
      largest_of(all.first(count)), {all.begin(), all.begin() + n}, largest_of(all.subspan(count))};
}

std::vector<double> diagonal(const Matrix<double>& a) {
  // Each element is set by the one node that has it.
  const auto values = std::make_shared<std::vector<double>>(
      static_cast<std::size_t>(std::min(a.rows(), a.columns())), 0.0);
  const TileLayout layout = a.layout();
  a.read_columns(
      [values, layout](TileRow i, TileColumn c, std::int64_t first, TileView part) {
        const std::int64_t column = layout.column_begin(c) + first;
        const std::int64_t row = column - layout.row_begin(i);
        for (std::int64_t j = 0; j < std::min(part.columns, part.rows - row); ++j) {
          (*values)[static_cast<std::size_t>(column + j)] = part(row + j, j);
        }
      },
      // The other tiles stay where they are.
      [layout](TileRow i, TileColumn c) { return i == layout.diagonal_row(c); });
  a.node().all_reduce(*values, Reduction::sum);
  return *values;
}

double log_determinant_of_factor(const Matrix<double>& l) {
  require_square_lower("log_determinant_of_factor", l);
  double sum = 0;
  for (const double element : diagonal(l)) sum += std::log(element);
  return 2 * sum;
}

double scaled_factor_residual(Norm difference, Norm a_norm, double n) {
  if (difference == 0) return 0;
  return nearest_double(difference / (n * a_norm * std::numeric_limits<double>::epsilon()));
}

double scaled_solution_residual(const std::vector<Norm>& differences,
                                const std::vector<Norm>& x_norms, const std::vector<Norm>& b_norms,
                                Norm a_norm, double n) {
  require_alike("scaled_solution_residual", differences.size(), x_norms.size(), b_norms.size());
  std::vector<Norm> scaled(differences.size(), 0);
  for (std::size_t k = 0; k < scaled.size(); ++k) {
    if (differences[k] == 0) continue;
    const Norm scale = n * (a_norm * x_norms[k] + b_norms[k]);
    scaled[k] = differences[k] / (scale * std::numeric_limits<double>::epsilon());
  }
  return nearest_double(largest_of(scaled));
}

double scaled_normal_residual(const std::vector<Norm>& products, const std::vector<Norm>& x_norms,
                              const std::vector<Norm>& b_norms, Norm a_norm, double m) {
  require_alike("scaled_normal_residual", products.size(), x_norms.size(), b_norms.size());
  std::vector<Norm> scaled(products.size(), 0);
  for (std::size_t k = 0; k < scaled.size(); ++k) {
    if (products[k] == 0) continue;
    const Norm scale = a_norm * (a_norm * x_norms[k] + b_norms[k]);
    scaled[k] = products[k] / (scale * (m * std::numeric_limits<double>::epsilon()));
  }
  return nearest_double(largest_of(scaled));
}

}  // namespace heddle
