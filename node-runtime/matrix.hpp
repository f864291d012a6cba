#pragma once

#include "layout/layout.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/index.hpp"
#include "kernels/kernel.hpp"
#include "node-runtime/tasks.hpp"

namespace heddle {

class Node;
struct MatrixState;

/// Which tiles of a matrix exist.
enum class Storage : std::uint8_t {
  full,
  lower,  ///< those on and below the diagonal tiles: symmetric and lower triangular matrices
  upper,  ///< those on and above the diagonal tiles
};

/// Where a tile lives.
enum class Dealing : std::uint8_t {
  cyclic,      ///< by its row and wide column: Distribution::home
  transposed,  ///< with the remainder of the tile whose row and wide column are exchanged
  diagonal,    ///< with the remainder of the diagonal tile of its row: right-hand sides
};

/// What a matrix looks like. Only `layout` has sizes; a tile of 0 leaves tiles and distribution to
/// the node's configuration.
struct MatrixSpec {
  MatrixSpec() : MatrixSpec(0, 0) {}
  MatrixSpec(std::int64_t rows, std::int64_t columns, Storage stored = Storage::full)
      : storage(stored) {
    layout = {.rows = rows, .columns = columns, .tile = 0};
  }
  MatrixSpec(const TileLayout& cut, const Distribution& dealt_out, Storage stored = Storage::full)
      : storage(stored), layout(cut), distribution(dealt_out) {}

  Storage storage;
  TileLayout layout{};
  Distribution distribution{};
  Dealing dealing = Dealing::cyclic;
  bool temporary = false;
  std::int32_t spare_count = 4;  ///< blocks per place for renaming
};

/// A tile matrix, distributed over the nodes. A handle: copies name the same matrix. The memory
/// lives as long as the node, and the last handle or the last job that uses it.
template <class T>
class Matrix {
  static_assert(std::is_same_v<T, double>, "heddle's matrices have elements of type double");
};

template <>
class Matrix<double> {
 public:
  /// For heddle's own use: Node::matrix() makes matrices.
  explicit Matrix(std::shared_ptr<MatrixState> state);

  [[nodiscard]] const MatrixSpec& spec() const { return *spec_; }
  [[nodiscard]] const TileLayout& layout() const { return spec_->layout; }
  [[nodiscard]] const Distribution& distribution() const { return spec_->distribution; }
  [[nodiscard]] Storage storage() const { return spec_->storage; }
  [[nodiscard]] std::int64_t rows() const { return layout().rows; }
  [[nodiscard]] std::int64_t columns() const { return layout().columns; }
  [[nodiscard]] protocol::MatrixId id() const { return *id_; }
  /// Throws Error(usage) when it has ended.
  [[nodiscard]] Node& node() const;
  /// What JobSpec::keep_alive takes.
  [[nodiscard]] const std::shared_ptr<MatrixState>& state() const { return state_; }

  /// Tile (i, c) for tasks. Throws Error(usage) when the matrix has none there.
  [[nodiscard]] TileRef operator()(TileRow i, TileColumn c) const {
    if (i.value() < 0 || i.value() >= tile_rows_ || c.value() < 0 || c.value() >= tile_columns_ ||
        !stores(i, c)) [[unlikely]] {
      refuse_tile(i, c);
    }
    return {{*id_, i.value() + c.value() * tile_rows_}, home(i, c)};
  }
  [[nodiscard]] Location home(TileRow i, TileColumn c) const;
  [[nodiscard]] bool stores(TileRow i, TileColumn c) const {
    if (storage() == Storage::full) return true;
    const TileRow diagonal = layout().diagonal_row(c);
    return storage() == Storage::lower ? i >= diagonal : i <= diagonal;
  }

  /// What visits a tile: its place in the matrix and its content, in host memory. Which tiles it
  /// visits; empty: all.
  using Visitor = std::function<void(TileRow, TileColumn, TileView)>;
  using Choice = std::function<bool(TileRow, TileColumn)>;
  /// Lets the CPU workers visit all stored tiles of this node, in any order and in parallel; waits.
  /// `visit` may change the content. When a visit throws, the others are skipped, and all nodes
  /// throw: this one the first of its own exceptions, one without any an Error with the text and
  /// the node of another's. Collective in order: every node makes the same calls.
  Matrix& for_each_tile(const Visitor& visit, const Choice& chosen = {});

  /// As for_each_tile, for new content: `visit` is given columns of a tile and where their first
  /// element is in the matrix, and sets every element. The old content is not there.
  using ColumnsVisitor = std::function<void(GlobalRow, GlobalColumn, TileView)>;
  Matrix& set_columns(const ColumnsVisitor& visit);

  /// As for_each_tile, to look only: at a tile's columns from its column `first` on, in order.
  using ColumnsReader = std::function<void(TileRow, TileColumn, std::int64_t first, TileView)>;
  void read_columns(const ColumnsReader& visit, const Choice& chosen = {}) const;

  /// Fills element by element, `fill(i, j)` counted from 0, or block by block: `fill(row, column,
  /// block)` with the global position of the block's first element. Of lower storage the part above
  /// the diagonal becomes zero with the former; the latter must leave it so.
  template <class Fill>
  Matrix& fill(const Fill& fill) {
    if constexpr (std::is_invocable_v<Fill, GlobalRow, GlobalColumn, TileView>) {
      return for_each_tile([&fill, l = layout()](TileRow i, TileColumn c, TileView tile) {
        fill(GlobalRow{l.row_begin(i)}, GlobalColumn{l.column_begin(c)}, tile);
      });
    } else {
      return set_columns([&fill, lower = storage() == Storage::lower](
                             GlobalRow row, GlobalColumn column, TileView columns) {
        for (std::int64_t b = 0; b < columns.columns; ++b) {
          for (std::int64_t a = 0; a < columns.rows; ++a) {
            const std::int64_t i = row.value() + a;
            const std::int64_t j = column.value() + b;
            columns(a, b) = lower && i < j ? 0.0 : fill(i, j);
          }
        }
      });
    }
  }

  /// Rows and columns of this node's part of the matrix: its tile rows one below the other, its
  /// wide columns side by side, as block-cyclic arrays are (numroc in ScaLAPACK); on one node the
  /// matrix.
  [[nodiscard]] std::int64_t local_rows() const;
  [[nodiscard]] std::int64_t local_columns() const;
  /// Copies the stored tiles of this node into that part, column-major from `local` with distance
  /// `leading` >= local_rows() between columns; writes nothing else. Of lower storage the elements
  /// above the diagonal stay as they are. All nodes throw Error(usage) when `leading` is too small,
  /// or `local` null, on a node that has tiles. Collective.
  void copy_to(double* local, std::int64_t leading) const;
  /// The other way round. Of lower storage the part above the diagonal becomes zero.
  Matrix& copy_from(const double* local, std::int64_t leading);

 private:
  [[noreturn]] void refuse_tile(TileRow i, TileColumn c) const;

  std::shared_ptr<MatrixState> state_;
  // Kept here because insertions read them for each tile.
  const MatrixSpec* spec_;
  const protocol::MatrixId* id_;
  // The layout divides for them.
  std::int32_t tile_rows_;
  std::int32_t tile_columns_;
};

}  // namespace heddle
