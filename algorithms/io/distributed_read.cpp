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

namespace {

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

WantedRows wanted_of(const Matrix<double>& matrix, const MatrixSource& source) {
  const NodeId me{matrix.node().rank()};
  if (matrix.storage() == Storage::lower) {
    return wanted_by_node(
        matrix.layout(), matrix.distribution(), me,
        source.is_symmetric() ? WantedPart::lower_tiles : WantedPart::lower_tiles_and_mirrors);
  }
  return [matrix, me](GlobalColumn column, std::vector<RowRange>& ranges) {
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

void prepare_reading(MatrixSource& source, const Matrix<double>& matrix) {
  std::optional<Error> in_line;
  std::optional<Error> other;
  double line = 0;
  try {
    source.prepare(wanted_of(matrix, source));
  } catch (const LineError& error) {
    in_line = error;
    line = static_cast<double>(error.line());
  } catch (const std::exception& error) {
    other = as_error(error);
  }
  agree(matrix.node(), other);
  agree(matrix.node(), in_line, {line});
}

MatrixReading::MatrixReading(const MatrixSource& source, const Matrix<double>& matrix,
                             Checked checked, std::string name)
    : source_(source),
      node_(matrix.node()),
      checks_elements_(checked == Checked::yes),
      checks_symmetry_(checks_elements_ && matrix.storage() == Storage::lower &&
                       !source.is_symmetric()),
      name_(std::move(name)),
      findings_(std::make_shared<Findings>()) {
  const bool is_lower = matrix.storage() == Storage::lower;
  require(source.rows() == matrix.rows() && source.columns() == matrix.columns() &&
              matrix.storage() != Storage::upper &&
              (!is_lower || matrix.rows() == matrix.columns()),
          "MatrixReading: {} is {} x {}, the matrix is {} x {}; it must be as large, without "
          "Storage::upper, and square with Storage::lower",
          name_, source.rows(), source.columns(), matrix.rows(), matrix.columns());
  setting_ = std::make_unique<SettingTogether>(
      matrix,
      [&source, findings = findings_, elements = checks_elements_, symmetry = checks_symmetry_,
       is_lower](GlobalRow row, GlobalColumn column, TileView part) {
        source.read(row, column, part);
        if (elements) findings->add(find_non_finite(part, row, column));
        if (symmetry) check_mirror(source, part, row, column, *findings);
        if (is_lower) clear_above_diagonal(part, row, column);
      });
}

MatrixReading::~MatrixReading() = default;

void MatrixReading::finish() {
  setting_->finish([this] { source_.check_unchanged(); });
  if (checks_elements_) agree_on_non_finite(node_, *findings_, name_);
  if (checks_symmetry_) agree_on_asymmetry(node_, *findings_, name_);
}

void read_elements(const MatrixSource& source, const Matrix<double>& matrix, Checked checked,
                   const std::string& name) {
  MatrixReading(source, matrix, checked, name).finish();
}

}  // namespace heddle
