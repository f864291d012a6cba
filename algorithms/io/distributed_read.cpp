#include "algorithms/io/distributed_read.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "algorithms/io/agreement.hpp"
#include "algorithms/matrix/mtx_text.hpp"
#include "base/require.hpp"

namespace heddle {
namespace {

/// What the visits of one node have found so far. Shared by them: after a failure of the node some
/// may go on while the caller has left.
struct Findings {
  std::mutex mutex;
  std::optional<NonFinite> non_finite;
  std::optional<Asymmetry> asymmetry;

  void add(const std::optional<NonFinite>& found) {
    if (!found) return;
    const std::lock_guard lock(mutex);
    if (!non_finite || comes_before(*found, *non_finite)) non_finite = found;
  }
  void add(const std::optional<Asymmetry>& found) {
    if (!found) return;
    const std::lock_guard lock(mutex);
    if (!asymmetry || is_worse(*found, *asymmetry)) asymmetry = found;
  }
};

/// Sets the matrix from `source`, which must still be what it was behind that.
void set_from(const MatrixSource& source, const Matrix<double>& matrix,
              const Matrix<double>::ColumnsVisitor& set) {
  set_together(matrix, set, [&] { source.check_unchanged(); });
}

void agree_on_non_finite(Node& node, const Findings& findings, const std::string& name) {
  std::optional<Error> trouble;
  std::vector<double> order{0, 0};
  if (findings.non_finite) {
    const NonFinite& element = *findings.non_finite;
    order = {static_cast<double>(element.column.value()), static_cast<double>(element.row.value())};
    trouble = Error(ErrorCode::usage,
                    fmt::format("{} has {}; all elements must be finite", name, describe(element)));
  }
  agree(node, trouble, order);
}

/// What is tolerated, and what to do.
std::string advice_on(const Asymmetry& pair) {
  return fmt::format(
      "That is {:.3g} of the pair's scale; {:.3g} is taken for rounding (8 epsilon), more is not. "
      "If "
      "the matrix is meant to be symmetric, give (A + A^T) / 2",
      pair.relative, symmetry_tolerance);
}

void agree_on_asymmetry(Node& node, const Findings& findings, const std::string& name) {
  std::optional<Error> trouble;
  std::vector<double> order{0, 0, 0};
  if (findings.asymmetry) {
    const Asymmetry& pair = *findings.asymmetry;
    order = {-pair.relative, static_cast<double>(pair.column.value()),
             static_cast<double>(pair.row.value())};
    trouble = Error(ErrorCode::usage,
                    fmt::format("{} is not symmetric, as cholesky needs it; the worst pair: {}. {}",
                                name, describe(pair), advice_on(pair)));
  }
  agree(node, trouble, order);
}

/// The block of `source` that mirrors `tile`, and what is wrong with the pair.
void check_mirror(const MatrixSource& source, const TileView& tile, GlobalRow row,
                  GlobalColumn column, Findings& findings) {
  const GlobalRow mirror_row{column.value()};
  const GlobalColumn mirror_column{row.value()};
  std::vector<double> memory(static_cast<std::size_t>(tile.rows * tile.columns));
  const TileView mirror{memory.data(), tile.columns, tile.rows,
                        std::max<std::int64_t>(1, tile.columns)};
  source.read(mirror_row, mirror_column, mirror);
  findings.add(find_non_finite(mirror, mirror_row, mirror_column));
  std::vector<double> row_diagonal(static_cast<std::size_t>(tile.rows));
  std::vector<double> column_diagonal(static_cast<std::size_t>(tile.columns));
  source.read_diagonal(row.value(), row_diagonal);
  source.read_diagonal(column.value(), column_diagonal);
  findings.add(find_asymmetry(tile, mirror, row, column, row_diagonal, column_diagonal));
}

/// Zeroes what lies above the diagonal of the matrix.
void clear_above_diagonal(const TileView& tile, GlobalRow row, GlobalColumn column) {
  for (std::int64_t j = 0; j < tile.columns; ++j) {
    const std::int64_t above = std::min(tile.rows, column.value() + j - row.value());
    for (std::int64_t i = 0; i < above; ++i) tile(i, j) = 0;
  }
}

}  // namespace

WantedRows wanted_of_symmetric(const Matrix<double>& a, const MatrixSource& source) {
  return wanted_by_node(
      a.layout(), a.distribution(), NodeId{a.node().rank()},
      source.is_symmetric() ? WantedPart::lower_tiles : WantedPart::lower_tiles_and_mirrors);
}

WantedRows wanted_of_tiles(const Matrix<double>& matrix) {
  return [matrix, me = NodeId{matrix.node().rank()}](GlobalColumn column,
                                                     std::vector<RowRange>& ranges) {
    const TileLayout& layout = matrix.layout();
    // All pieces of a wide column are on the same node.
    const WideColumn wide{static_cast<std::int32_t>(column.value() / layout.wide_width())};
    const TileColumn c = layout.wide_begin(wide);
    for (TileRow i{0}; i.value() < layout.tile_rows(); ++i) {
      if (!matrix.stores(i, c) || matrix.home(i, c).node != me) continue;
      const std::int64_t begin = layout.row_begin(i);
      const GlobalRow end{begin + layout.row_count(i)};
      if (!ranges.empty() && ranges.back().end.value() == begin) {
        ranges.back().end = end;
      } else {
        ranges.push_back({GlobalRow{begin}, end});
      }
    }
  };
}

void prepare_together(Node& node, MatrixSource& source, const WantedRows& wanted) {
  std::optional<Error> in_line;
  std::optional<Error> other;
  double line = 0;
  try {
    source.prepare(wanted);
  } catch (const LineError& error) {
    in_line = error;
    line = static_cast<double>(error.line());
  } catch (const std::exception& error) {
    other = as_error(error);
  }
  agree(node, other);
  agree(node, in_line, {line});
}

void read_symmetric(const MatrixSource& source, Matrix<double> a, Checked checked,
                    const std::string& name) {
  require(source.rows() == a.rows() && source.columns() == a.columns() && a.rows() == a.columns() &&
              a.storage() == Storage::lower,
          "read_symmetric: {} is {} x {}, the matrix is {} x {}; it must be as large, square, and "
          "have Storage::lower",
          name, source.rows(), source.columns(), a.rows(), a.columns());
  const auto findings = std::make_shared<Findings>();
  const bool check = checked == Checked::yes;
  set_from(source, a,
           [&source, findings, check](GlobalRow row, GlobalColumn column, TileView part) {
             source.read(row, column, part);
             if (check) {
               findings->add(find_non_finite(part, row, column));
               if (!source.is_symmetric()) check_mirror(source, part, row, column, *findings);
             }
             clear_above_diagonal(part, row, column);
           });
  if (!check) return;
  agree_on_non_finite(a.node(), *findings, name);
  agree_on_asymmetry(a.node(), *findings, name);
}

void read_tiles(const MatrixSource& source, Matrix<double> matrix, Checked checked,
                const std::string& name) {
  require(source.rows() == matrix.rows() && source.columns() == matrix.columns(),
          "read_tiles: {} is {} x {}, the matrix is {} x {}; it must be as large", name,
          source.rows(), source.columns(), matrix.rows(), matrix.columns());
  const auto findings = std::make_shared<Findings>();
  const bool check = checked == Checked::yes;
  set_from(source, matrix,
           [&source, findings, check](GlobalRow row, GlobalColumn column, TileView part) {
             source.read(row, column, part);
             if (check) findings->add(find_non_finite(part, row, column));
           });
  if (check) agree_on_non_finite(matrix.node(), *findings, name);
}

}  // namespace heddle
