#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "bench/peers/normal.hpp"
#include "node-runtime/node.hpp"

/// Checks of large factorizations by products with random vectors. A product costs as much as
/// reading the matrix, and neither the tasks nor the kernels that are checked take part in it.
namespace heddle {

/// A few columns in host memory, the same on all nodes.
struct Columns {
  static constexpr std::int64_t count = 2;

  explicit Columns(std::int64_t row_count)
      : rows(row_count), values(static_cast<std::size_t>(row_count * count), 0.0) {}

  [[nodiscard]] double* column(std::int64_t s) { return values.data() + s * rows; }
  [[nodiscard]] const double* column(std::int64_t s) const { return values.data() + s * rows; }

  std::int64_t rows;
  std::vector<double> values;
};

inline Columns random_columns(std::int64_t rows) {
  Columns x(rows);
  for (std::int64_t s = 0; s < Columns::count; ++s) {
    for (std::int64_t i = 0; i < rows; ++i) x.column(s)[i] = peer::probe(i, s);
  }
  return x;
}

/// Which elements of a stored matrix M a product multiplies with.
enum class Operand : std::uint8_t {
  general,           ///< M
  upper,             ///< those on and above the diagonal
  lower,             ///< those on and below it
  lower_transposed,  ///< of the transposed matrix of these
  symmetric,         ///< those on and below it, and their mirror image
};

/// One tile's part of a product: `down` for the tile's rows and `across` for its columns.
struct TileProduct {
  Operand operand;
  const Columns& x;
  GlobalRow row;  ///< of the tile's first element
  GlobalColumn column;
  Columns down;
  Columns across;

  TileProduct(Operand what, const Columns& vectors, GlobalRow i, GlobalColumn j,
              const TileView& tile)
      : operand(what), x(vectors), row(i), column(j), down(tile.rows), across(tile.columns) {}

  void add(const TileView& tile) {
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      const std::int64_t diagonal = column.value() + j - row.value();  // row within the tile
      const bool whole = operand == Operand::general || operand == Operand::upper;
      const std::int64_t begin = whole ? 0 : std::clamp<std::int64_t>(diagonal, 0, tile.rows);
      const std::int64_t end = operand == Operand::upper
                                   ? std::clamp<std::int64_t>(diagonal + 1, 0, tile.rows)
                                   : tile.rows;
      if (operand != Operand::lower_transposed) add_down(tile, j, begin, end);
      // The diagonal has no mirror image.
      const bool mirrors = operand == Operand::symmetric && diagonal >= 0;
      if (operand == Operand::lower_transposed || operand == Operand::symmetric) {
        add_across(tile, j, mirrors ? std::min(begin + 1, end) : begin, end);
      }
    }
  }

 private:
  void add_down(const TileView& tile, std::int64_t j, std::int64_t begin, std::int64_t end) {
    for (std::int64_t s = 0; s < Columns::count; ++s) {
      const double factor = x.column(s)[column.value() + j];
      double* to = down.column(s);
      for (std::int64_t i = begin; i < end; ++i) to[i] += tile(i, j) * factor;
    }
  }
  void add_across(const TileView& tile, std::int64_t j, std::int64_t begin, std::int64_t end) {
    for (std::int64_t s = 0; s < Columns::count; ++s) {
      const double* from = x.column(s) + row.value();
      double sum = 0;
      for (std::int64_t i = begin; i < end; ++i) sum += tile(i, j) * from[i];
      across.column(s)[j] += sum;
    }
  }
};

/// The product of `matrix` with `x`. Collective.
inline Columns product(Matrix<double> matrix, const Columns& x, Operand operand) {
  const bool transposed = operand == Operand::lower_transposed;
  Columns result(transposed ? matrix.columns() : matrix.rows());
  std::mutex mutex;
  const auto add = [&result](const Columns& part, std::int64_t first) {
    for (std::int64_t s = 0; s < Columns::count; ++s) {
      for (std::int64_t i = 0; i < part.rows; ++i) result.column(s)[first + i] += part.column(s)[i];
    }
  };
  matrix.for_each_tile([&, layout = matrix.layout()](TileRow i, TileColumn c, TileView tile) {
    TileProduct part(operand, x, GlobalRow{layout.row_begin(i)},
                     GlobalColumn{layout.column_begin(c)}, tile);
    part.add(tile);
    const std::lock_guard lock(mutex);
    if (!transposed) add(part.down, part.row.value());
    if (transposed || operand == Operand::symmetric) add(part.across, part.column.value());
  });
  matrix.node().all_reduce(result.values, Reduction::sum);
  return result;
}

/// Frobenius norms of `expected` and of its difference from `actual`.
struct Distance {
  double norm = 0;
  double difference = 0;

  /// difference / (n norm eps): what rounding alone leaves is below about 10. As |A x| is at most
  /// |A| |x|, this is no less than what the norm of A itself would give.
  [[nodiscard]] double scaled(double n) const {
    return difference / (n * norm * std::numeric_limits<double>::epsilon());
  }
};

inline Distance distance(const Columns& expected, const Columns& actual) {
  Distance squares;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    squares.norm += expected.values[i] * expected.values[i];
    const double difference = expected.values[i] - actual.values[i];
    squares.difference += difference * difference;
  }
  return {std::sqrt(squares.norm), std::sqrt(squares.difference)};
}

/// The content of a matrix of as many columns, on all nodes. Collective.
inline Columns gathered(Matrix<double> matrix) {
  Columns result(matrix.rows());
  // Each element is written by the one node that has it, and once.
  matrix.for_each_tile([&result, layout = matrix.layout()](TileRow i, TileColumn c, TileView tile) {
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      double* to = result.column(layout.column_begin(c) + j) + layout.row_begin(i);
      for (std::int64_t l = 0; l < tile.rows; ++l) to[l] = tile(l, j);
    }
  });
  matrix.node().all_reduce(result.values, Reduction::sum);
  return result;
}

inline void spread(const Columns& from, Matrix<double> matrix) {
  matrix.fill([&from](std::int64_t i, std::int64_t j) { return from.column(j)[i]; });
}

}  // namespace heddle
