#include "algorithms/reductions/passing_norms.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "algorithms/reductions/sums.hpp"
#include "base/assert.hpp"
#include "kernels/cpu/norms.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

/// Squares of doubles fit into long double always, into double where the sum says so.
Norm square_sum(const double* column, std::int64_t rows) {
  constexpr double safe_min = 0x1p-900;
  constexpr double safe_max = 0x1p1000;
  double sum = 0;
  for (std::int64_t i = 0; i < rows; ++i) sum += column[i] * column[i];
  if (sum > safe_min && sum < safe_max) return sum;
  Norm wide_sum = 0;
  for (std::int64_t i = 0; i < rows; ++i) wide_sum += Norm{column[i]} * Norm{column[i]};
  return wide_sum;
}

}  // namespace

PassingNorms::PassingNorms(const Matrix<double>& matrix)
    : wide_width_(matrix.layout().wide_width()),
      is_symmetric_(matrix.storage() == Storage::lower),
      wide_(static_cast<std::size_t>(matrix.layout().end_wide().value())),
      sums_(static_cast<std::size_t>(matrix.columns()), 0),
      squares_(is_symmetric_ ? 0 : sums_.size(), 0) {
  const TileLayout& layout = matrix.layout();
  const NodeId me{matrix.node().rank()};
  for (TileColumn c{0}; c < layout.end_column(); ++c) {
    for (TileRow i{0}; i < layout.end_row(); ++i) {
      if (!matrix.stores(i, c) || matrix.home(i, c).node != me) continue;
      wide_[static_cast<std::size_t>(layout.wide_of(c).value())].remaining +=
          layout.row_count(i) * layout.column_count(c);
    }
  }
}

PassingNorms::Part PassingNorms::sums_of(std::int64_t row, std::int64_t column,
                                         const TileView& part) const {
  Part sums{row, column, {}, {}, {}};
  const bool is_diagonal = is_symmetric_ && row + part.rows > column && column >= row;
  if (is_diagonal) {
    sums.rows = sums_in_range([&](double unit) {
      std::vector<double> rows = zeros(part.rows);
      host::add_symmetric_sums(part, column - row, rows, unit);
      return rows;
    });
    return sums;
  }
  sums.columns = sums_in_range([&](double unit) {
    std::vector<double> columns = zeros(part.columns);
    host::add_column_sums(part, columns, unit);
    return columns;
  });
  if (is_symmetric_) {
    sums.rows = sums_in_range([&](double unit) {
      std::vector<double> rows = zeros(part.rows);
      host::add_row_sums(part, rows, unit);
      return rows;
    });
    return sums;
  }
  for (std::int64_t j = 0; j < part.columns; ++j) {
    sums.squares.push_back(square_sum(part.data + j * part.leading, part.rows));
  }
  return sums;
}

void PassingNorms::add(GlobalRow row, GlobalColumn column, const TileView& part) {
  if (part.rows == 0 || part.columns == 0) return;
  Part sums = sums_of(row.value(), column.value(), part);
  const std::scoped_lock lock(mutex_);
  WideParts& wide = wide_[static_cast<std::size_t>(column.value() / wide_width_)];
  wide.parts.push_back(std::move(sums));
  wide.remaining -= part.rows * part.columns;
  HEDDLE_CHECK(wide.remaining >= 0, "{} elements more than the node has in the wide column of {}",
               -wide.remaining, column.value());
  while (next_ < wide_.size() && wide_[next_].remaining == 0) fold(wide_[next_++]);
}

/// In the order of the columns, then the rows.
void PassingNorms::fold(WideParts& wide) {
  std::ranges::sort(wide.parts, {},
                    [](const Part& part) { return std::pair(part.column, part.row); });
  const auto add = [](std::vector<Norm>& to, std::int64_t first, const std::vector<Norm>& sums) {
    for (std::size_t k = 0; k < sums.size(); ++k)
      to[static_cast<std::size_t>(first) + k] += sums[k];
  };
  for (const Part& part : wide.parts) {
    add(sums_, part.column, part.columns);
    add(sums_, part.row, part.rows);
    add(squares_, part.column, part.squares);
  }
  wide.parts = {};
}

std::vector<Norm> PassingNorms::one_norms(Node& node) const {
  return sum_over_nodes(node, sums_);
}

std::vector<Norm> PassingNorms::two_norms(Node& node) const {
  HEDDLE_CHECK(!is_symmetric_, "2-norms of the columns of a symmetric matrix");
  std::vector<Norm> norms = sum_over_nodes(node, squares_);
  for (Norm& norm : norms) norm = std::sqrt(norm);
  return norms;
}

bool PassingNorms::is_valid() const {
  const std::scoped_lock lock(mutex_);
  for (std::size_t j = 0; j < wide_.size(); ++j) {
    if (wide_[j].remaining < 0) return false;
    if (j < next_ && (wide_[j].remaining != 0 || !wide_[j].parts.empty())) return false;
  }
  return next_ == wide_.size() || wide_[next_].remaining > 0;
}

}  // namespace heddle
