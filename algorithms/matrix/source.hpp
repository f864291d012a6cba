#pragma once

#include "layout/layout.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "kernels/kernel.hpp"

namespace heddle {

struct GeneratedElements;

/// Rows [begin, end) of some column.
struct RowRange {
  GlobalRow begin;
  GlobalRow end;
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

/// Appends to `ranges`, ascending and disjoint, the rows of `column` that this process will read.
using WantedRows = std::function<void(GlobalColumn column, std::vector<RowRange>& ranges)>;

/// Which elements a node reads of a matrix that is cut and distributed in tiles.
enum class WantedPart : std::uint8_t {
  all_tiles,                ///< every tile whose home is on the node
  lower_tiles,              ///< those with tile row >= wide column: Cholesky keeps no others
  lower_tiles_and_mirrors,  ///< and, to check the symmetry, the mirrored block of each
};

/// The rows that `node` reads of each column of a matrix cut by `layout`. Copies its arguments.
[[nodiscard]] WantedRows wanted_by_node(const TileLayout& layout, const Distribution& distribution,
                                        NodeId node, WantedPart part);

/// Where the elements of a matrix come from: a file or a generator. It is read block by block, so
/// that no process ever holds the whole matrix.
///
/// Use: construct (finds out the shape; errors of the input are thrown here or by `prepare`),
/// decide the layout, call `prepare` once, then read. `read` and `read_diagonal` may be called from
/// several threads at a time; `prepare` from one thread before any of them.
class MatrixSource {
 public:
  MatrixSource(const MatrixSource&) = delete;
  MatrixSource& operator=(const MatrixSource&) = delete;
  virtual ~MatrixSource() = default;

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t columns() const { return columns_; }

  /// What this is, for a person: "'k.npy' (NumPy, 400 x 400, C order)".
  [[nodiscard]] virtual std::string description() const = 0;

  /// True when element (i, j) and element (j, i) have the same bits by construction.
  [[nodiscard]] virtual bool is_symmetric() const { return false; }

  /// What tasks can make its tiles of where they live; null: its elements have to be read.
  [[nodiscard]] virtual std::shared_ptr<const GeneratedElements> generated() const {
    return nullptr;
  }

  /// Announces what this process will read. A source that can address its elements ignores it; one
  /// that cannot (text) scans its file here and keeps the wanted part, and the diagonal, in memory.
  /// Throws Error(usage) for what is wrong with the file.
  virtual void prepare(const WantedRows& wanted);

  /// Fills `out` with the block that begins at (row, column). The block lies inside the matrix and
  /// inside what `prepare` announced; `out` may have zero rows or columns.
  void read(GlobalRow row, GlobalColumn column, TileView out) const;

  /// Throws Error(usage) when what was read so far may not be what the source was when it was made:
  /// a file that others have changed meanwhile. After reading, before anything is made of it.
  virtual void check_unchanged() const {}

  /// Fills `out` with the elements (i, i) from i = begin on; all of them may be read by any
  /// process.
  void read_diagonal(std::int64_t begin, std::span<double> out) const;

 protected:
  MatrixSource(std::int64_t rows, std::int64_t columns) : rows_(rows), columns_(columns) {}

  /// For sources that learn their shape while they open their file.
  void set_shape(std::int64_t rows, std::int64_t columns) {
    rows_ = rows;
    columns_ = columns;
  }

 private:
  /// As `read`; `out` is not empty and inside the matrix.
  virtual void read_block(GlobalRow row, GlobalColumn column, TileView out) const = 0;
  virtual void read_diagonal_part(std::int64_t begin, std::span<double> out) const;

  std::int64_t rows_;
  std::int64_t columns_;
};

}  // namespace heddle
