#include "algorithms/cholesky/cholesky.hpp"

#include <algorithm>

#include "algorithms/cholesky/panel_readers.hpp"
#include "base/assert.hpp"
#include "kernels/cholesky.hpp"

namespace heddle {
namespace {

/// The tiles of a lower matrix as a node walks them: its own rows and wide columns of the grid.
struct OwnPart {
  std::int32_t grid_row;
  std::int32_t grid_column;
  std::int32_t grid_rows;
  std::int32_t grid_columns;

  OwnPart(const Distribution& d, NodeId node)
      : grid_row(node.value() / d.grid_columns),
        grid_column(node.value() % d.grid_columns),
        grid_rows(d.grid_rows),
        grid_columns(d.grid_columns) {}

  /// First own tile row at or after `row`; the next ones follow at distance grid_rows.
  [[nodiscard]] std::int32_t first_row(std::int32_t row) const {
    return row + ((grid_row - row) % grid_rows + grid_rows) % grid_rows;
  }
  [[nodiscard]] std::int32_t first_wide(std::int32_t wide) const {
    return wide + ((grid_column - wide) % grid_columns + grid_columns) % grid_columns;
  }
  [[nodiscard]] bool has_row(std::int32_t row) const { return row % grid_rows == grid_row; }
  [[nodiscard]] bool has_wide(std::int32_t wide) const {
    return wide % grid_columns == grid_column;
  }
};

/// Copies of column c's tiles that this node may hold are not needed after step c.
void release_column(TaskStream& tasks, const Matrix<double>& l, const OwnPart& own, TileColumn c,
                    Version version) {
  const std::int32_t rows = l.layout().tile_rows();
  for (std::int32_t i = l.layout().wide_of(c); i < rows; ++i) {
    if (own.has_row(i) || own.has_wide(i)) tasks.release(read(l(TileRow{i}, c), version));
  }
}

/// 001 section 3.1, with each node walking only the tasks that write its own tiles, and announcing
/// to whom the tiles of its part of a finished column go.
Program factorize(TaskStream& tasks, Matrix<double> a) {
  const TileLayout layout = a.layout();
  const OwnPart own(a.distribution(), tasks.node());
  const std::int32_t rows = layout.tile_rows();
  const std::int32_t columns = layout.tile_columns();

  for (TileColumn c{0}; c.value() < columns; ++c) {
    const std::int32_t k = layout.wide_of(c);  // the diagonal tile's row
    const Version factored{c.value() + 1};     // each column before it has updated the tile once
    const bool has_panel = own.has_wide(k);
    TaskOptions options;

    if (has_panel && own.has_row(k)) {
      options.parameters = KernelParameters(kernel::PieceParameters{layout.offset_in_wide(c)});
      options.priority = column_priority(columns, c.value(), 2);
      options.info_base = layout.column_begin(c);
      co_await tasks.insert(kernel::potrf, options, read_write(a(TileRow{k}, c)));
      for (const NodeId reader : panel_readers(a, k, c, Reads::later_columns)) {
        co_await tasks.announce(read(a(TileRow{k}, c), factored), reader, options.priority);
      }
    }
    options.info_base = 0;
    for (std::int32_t i = own.first_row(k + 1); has_panel && i < rows; i += own.grid_rows) {
      options.parameters = KernelParameters(kernel::PieceParameters{layout.offset_in_wide(c)});
      options.priority = column_priority(columns, c.value(), 1);
      co_await tasks.insert(kernel::trsm, options, read_write(a(TileRow{i}, c)),
                            read(a(TileRow{k}, c), factored));
      for (const NodeId reader : panel_readers(a, i, c, Reads::later_columns)) {
        co_await tasks.announce(read(a(TileRow{i}, c), factored), reader, options.priority);
      }
    }
    for (std::int32_t j = own.first_wide(k); j < rows; j += own.grid_columns) {
      const std::int32_t end = layout.wide_begin(j + 1).value();
      for (TileColumn d{std::max(layout.wide_begin(j).value(), c.value() + 1)}; d.value() < end;
           ++d) {
        options.priority = column_priority(columns, d.value(), 0);
        const std::int64_t offset = layout.offset_in_wide(d);
        for (std::int32_t i = own.first_row(j); i < rows; i += own.grid_rows) {
          if (i == j) {
            options.parameters = KernelParameters(kernel::PieceParameters{offset});
            co_await tasks.insert(kernel::syrk, options, read_write(a(TileRow{i}, d)),
                                  read(a(TileRow{i}, c), factored));
          } else {
            options.parameters = KernelParameters(kernel::UpdateParameters{offset});
            co_await tasks.insert(kernel::gsmm, options, read_write(a(TileRow{i}, d)),
                                  read(a(TileRow{i}, c), factored),
                                  read(a(TileRow{j}, c), factored));
          }
        }
      }
    }
    release_column(tasks, a, own, c, factored);
  }
}

/// The same updates without the factorization in between, each column's own included.
Program subtract(TaskStream& tasks, Matrix<double> r, Matrix<double> l) {
  const TileLayout layout = r.layout();
  const OwnPart own(r.distribution(), tasks.node());
  const std::int32_t rows = layout.tile_rows();
  const std::int32_t columns = layout.tile_columns();
  const Version given{0};

  for (TileColumn c{0}; c.value() < columns; ++c) {
    const std::int32_t k = layout.wide_of(c);
    TaskOptions options;
    options.priority = column_priority(columns, c.value(), 0);
    for (std::int32_t i = own.first_row(k); own.has_wide(k) && i < rows; i += own.grid_rows) {
      for (const NodeId reader : panel_readers(l, i, c, Reads::own_column_too)) {
        co_await tasks.announce(read(l(TileRow{i}, c), given), reader, options.priority);
      }
    }
    for (std::int32_t j = own.first_wide(k); j < rows; j += own.grid_columns) {
      const std::int32_t end = layout.wide_begin(j + 1).value();
      for (TileColumn d{std::max(layout.wide_begin(j).value(), c.value())}; d.value() < end; ++d) {
        const std::int64_t offset = layout.offset_in_wide(d);
        for (std::int32_t i = own.first_row(j); i < rows; i += own.grid_rows) {
          if (i == j) {
            options.parameters = KernelParameters(kernel::PieceParameters{offset});
            co_await tasks.insert(kernel::syrk, options, read_write(r(TileRow{i}, d)),
                                  read(l(TileRow{i}, c), given));
          } else {
            options.parameters = KernelParameters(kernel::UpdateParameters{offset});
            co_await tasks.insert(kernel::gsmm, options, read_write(r(TileRow{i}, d)),
                                  read(l(TileRow{i}, c), given), read(l(TileRow{j}, c), given));
          }
        }
      }
    }
    release_column(tasks, l, own, c, given);
  }
}

void check_square_lower(const Matrix<double>& a) {
  HEDDLE_CHECK(a.rows() == a.columns() && a.storage() == Storage::lower, "{} x {}", a.rows(),
               a.columns());
}

}  // namespace

std::int32_t column_priority(std::int32_t columns, std::int32_t column, int step) {
  const std::int64_t rank = std::int64_t{columns - column} * 4 + step;
  const std::int64_t most = std::int64_t{columns} * 4 + 3;
  return static_cast<std::int32_t>(most <= 1023 ? rank : rank * 1023 / most);
}

JobSpec cholesky(const Matrix<double>& a) {
  check_square_lower(a);
  JobSpec spec;
  spec.name = "cholesky";
  spec.matrices = {a.id()};
  spec.keep_alive = {a.state()};
  spec.program = [a](TaskStream& tasks) { return factorize(tasks, a); };
  return spec;
}

JobSpec subtract_product(const Matrix<double>& r, const Matrix<double>& l) {
  check_square_lower(r);
  HEDDLE_CHECK(r.layout() == l.layout() && r.distribution() == l.distribution());
  JobSpec spec;
  spec.name = "residual";
  spec.matrices = {r.id(), l.id()};
  spec.keep_alive = {r.state(), l.state()};
  spec.program = [r, l](TaskStream& tasks) { return subtract(tasks, r, l); };
  return spec;
}

}  // namespace heddle
