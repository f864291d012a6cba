#include "algorithms/reductions/sampled_checks.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "algorithms/io/agreement.hpp"
#include "algorithms/matrix/philox.hpp"
#include "algorithms/reductions/sums.hpp"
#include "algorithms/reductions/verification.hpp"
#include "base/require.hpp"

namespace heddle {
namespace {

using Vectors = std::vector<double>;
/// Shared with the visits: after a failure of the node some may go on while the caller has left.
using Shared = std::shared_ptr<const Vectors>;

/// Which of the two products with a triangular tile is summed.
enum class Side : std::uint8_t { plain, transposed };

/// T v or T^T v for the part on and below the diagonal of `tile`, which begins at (row,
/// column) of L; `v` has `sample_count` columns of length n, the result those of the tile's rows or
/// columns.
Vectors triangle_product(const TileView& tile, std::int64_t row, std::int64_t column,
                         const Vectors& v, std::int64_t n, Side side) {
  const std::int64_t length = side == Side::plain ? tile.rows : tile.columns;
  Vectors result = zeros(length * sample_count);
  for (std::int64_t s = 0; s < sample_count; ++s) {
    const double* const from = v.data() + s * n;
    double* const to = result.data() + s * length;
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      const std::int64_t begin = std::clamp<std::int64_t>(column + j - row, 0, tile.rows);
      if (side == Side::plain) {
        for (std::int64_t i = begin; i < tile.rows; ++i) to[i] += tile(i, j) * from[column + j];
      } else {
        for (std::int64_t i = begin; i < tile.rows; ++i) to[j] += tile(i, j) * from[row + i];
      }
    }
  }
  return result;
}

/// Adds columns of `length` numbers to those of n that are summed, from element `first` on.
void add_columns(Sums<double>& sums, TileRow i, TileColumn c, std::int64_t n, std::int64_t first,
                 const Vectors& columns) {
  const auto length = columns.size() / sample_count;
  for (std::size_t s = 0; s < sample_count; ++s) {
    sums.add(i, c, static_cast<std::int64_t>(s) * n + first,
             std::span(columns).subspan(s * length, length));
  }
}

/// L v or L^T v over all nodes.
Vectors factor_product(Matrix<double>& l, const Shared& v, Side side) {
  const std::int64_t n = l.columns();
  const auto sums = std::make_shared<Sums<double>>(n * sample_count);
  l.for_each_tile([sums, v, n, side, layout = l.layout()](TileRow i, TileColumn c, TileView tile) {
    const std::int64_t row = layout.row_begin(i);
    const std::int64_t column = layout.column_begin(c);
    add_columns(*sums, i, c, n, side == Side::plain ? row : column,
                triangle_product(tile, row, column, *v, n, side));
  });
  return sum_over_nodes(l.node(), *sums);
}

/// Adds the products of one tile of the symmetric A, and its column sums of magnitudes, which come
/// behind them; the elements below the diagonal count for both of their rows.
void add_symmetric_tile(Sums<double>& sums, TileRow i, TileColumn c, const TileView& tile,
                        std::int64_t row, std::int64_t column, const Vectors& v, std::int64_t n,
                        double unit) {
  Vectors strict_down = zeros(tile.rows * sample_count);
  Vectors across = zeros(tile.columns * sample_count);
  Vectors row_sums = zeros(tile.rows);
  Vectors column_sums = zeros(tile.columns);
  for (std::int64_t j = 0; j < tile.columns; ++j) {
    const std::int64_t begin = std::clamp<std::int64_t>(column + j - row, 0, tile.rows);
    for (std::int64_t k = begin; k < tile.rows; ++k) {
      const double value = tile(k, j) * unit;
      const bool is_below = row + k > column + j;
      column_sums[static_cast<std::size_t>(j)] += std::abs(value);
      if (is_below) row_sums[static_cast<std::size_t>(k)] += std::abs(value);
      for (std::int64_t s = 0; s < sample_count; ++s) {
        across[static_cast<std::size_t>(s * tile.columns + j)] +=
            value * v[static_cast<std::size_t>(s * n + row + k)];
        if (!is_below) continue;
        strict_down[static_cast<std::size_t>(s * tile.rows + k)] +=
            value * v[static_cast<std::size_t>(s * n + column + j)];
      }
    }
  }
  add_columns(sums, i, c, n, row, strict_down);
  add_columns(sums, i, c, n, column, across);
  sums.add(i, c, sample_count * n + row, row_sums);
  sums.add(i, c, sample_count * n + column, column_sums);
}

/// A v, then the sums of the magnitudes of each column, over all nodes, times `unit`.
Vectors source_product(Matrix<double>& l, const MatrixSource& source, const Shared& v,
                       double unit) {
  const std::int64_t n = l.columns();
  const auto sums = std::make_shared<Sums<double>>((sample_count + 1) * n);
  visit_together(
      l,
      [sums, &source, v, n, unit, layout = l.layout()](TileRow i, TileColumn c, TileView like) {
        Vectors memory(static_cast<std::size_t>(like.rows * like.columns));
        const TileView a{memory.data(), like.rows, like.columns,
                         std::max<std::int64_t>(1, like.rows)};
        const GlobalRow row{layout.row_begin(i)};
        const GlobalColumn column{layout.column_begin(c)};
        source.read(row, column, a);
        add_symmetric_tile(*sums, i, c, a, row.value(), column.value(), *v, n, unit);
      },
      [&] { source.check_unchanged(); });
  return sum_over_nodes(l.node(), *sums);
}

}  // namespace

std::vector<double> sample_vectors(std::int64_t n) {
  constexpr Philox4x32::Key seed{0x68656464, 0x6c65};
  Vectors z = zeros(n * sample_count);
  for (std::size_t k = 0; k < z.size(); ++k) {
    const Philox4x32::Counter bits = Philox4x32::generate(
        {static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32), 0, 0}, seed);
    z[k] = (bits[0] & 1) == 0 ? 1.0 : -1.0;
  }
  return z;
}

double sampled_cholesky_residual(Matrix<double> l, const MatrixSource& source) {
  require(l.rows() == l.columns() && l.storage() == Storage::lower,
          "sampled_cholesky_residual: the factor is {} x {}; it must be square with Storage::lower",
          l.rows(), l.columns());
  require(source.rows() == l.rows() && source.columns() == l.columns(),
          "sampled_cholesky_residual: the source is {} x {}, the factor is {} x {}; they must be "
          "alike",
          source.rows(), source.columns(), l.rows(), l.columns());
  const std::int64_t n = l.columns();
  const auto z = std::make_shared<const Vectors>(sample_vectors(n));
  const auto products = static_cast<std::size_t>(n * sample_count);
  // The differences, then the column sums of A. All are linear in the unit.
  std::vector<Norm> values = sums_in_range([&](double unit) {
    Vectors all = source_product(l, source, z, unit);
    Vectors w = factor_product(l, z, Side::transposed);
    for (double& value : w) value *= unit;
    const auto scaled = std::make_shared<const Vectors>(std::move(w));
    const Vectors y = factor_product(l, scaled, Side::plain);
    for (std::size_t k = 0; k < products; ++k) all[k] -= y[k];
    return all;
  });
  for (Norm& value : values) value = std::abs(value);
  const std::span<const Norm> all(values);
  return scaled_factor_residual(largest_of(all.first(products)), largest_of(all.subspan(products)),
                                static_cast<double>(n));
}

}  // namespace heddle
