#pragma once

#include "layout/layout.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/index.hpp"
#include "kernels/kernel.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {

class EngineLink;
class Node;

/// Which tiles of a matrix exist.
enum class Storage : std::uint8_t {
  full,
  lower,  ///< those on and below the diagonal tiles: symmetric and lower triangular matrices
  upper,  ///< those on and above the diagonal tiles
};

/// Which node a tile lives on.
enum class Dealing : std::uint8_t {
  cyclic,      ///< by its row and wide column: Distribution::home
  transposed,  ///< as if row and wide column were exchanged, on the host
  diagonal,    ///< with the diagonal tile of its row, on the host: right-hand sides
};

struct MatrixSpec {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Storage storage = Storage::full;
  /// How it is cut and where its tiles live; by default as the node was configured to.
  TileLayout layout{};
  Distribution distribution{};
  bool has_layout = false;
  Dealing dealing = Dealing::cyclic;
  bool temporary = false;
  std::int32_t spare_count = 4;  ///< blocks per place for renaming
};

/// What a matrix is on this node. Made by Node; the memory lives as long as the node, and the last
/// handle or the last job that uses it.
struct MatrixState {
  MatrixState() = default;
  MatrixState(const MatrixState&) = delete;
  MatrixState& operator=(const MatrixState&) = delete;
  ~MatrixState();

  Node* node = nullptr;              ///< null: of a simulation
  std::shared_ptr<EngineLink> link;  ///< null: of a simulation, or only planned
  protocol::MatrixId id;
  MatrixSpec spec;
};

/// A tile matrix of doubles, distributed over the nodes. A handle: copies name the same matrix.
template <class T>
class Matrix;

template <>
class Matrix<double> {
 public:
  /// The state's layout is final.
  explicit Matrix(std::shared_ptr<MatrixState> state)
      : state_(std::move(state)),
        tile_rows_(layout().tile_rows()),
        tile_columns_(layout().tile_columns()) {}

  [[nodiscard]] const TileLayout& layout() const { return state_->spec.layout; }
  [[nodiscard]] const Distribution& distribution() const { return state_->spec.distribution; }
  [[nodiscard]] Storage storage() const { return state_->spec.storage; }
  [[nodiscard]] std::int64_t rows() const { return layout().rows; }
  [[nodiscard]] std::int64_t columns() const { return layout().columns; }
  [[nodiscard]] protocol::MatrixId id() const { return state_->id; }
  /// Throws Error(usage) when it has ended.
  [[nodiscard]] Node& node() const;
  [[nodiscard]] const std::shared_ptr<MatrixState>& state() const { return state_; }

  /// Tile (i, c) for tasks. Throws Error(usage) when the matrix has none there.
  [[nodiscard]] TileRef operator()(TileRow i, TileColumn c) const {
    if (i.value() < 0 || i.value() >= tile_rows_ || c.value() < 0 || c.value() >= tile_columns_ ||
        !stores(i, c)) [[unlikely]] {
      refuse_tile(i, c);
    }
    return {{id(), i.value() + c.value() * tile_rows_}, home(i, c)};
  }
  [[nodiscard]] Location home(TileRow i, TileColumn c) const;
  [[nodiscard]] bool stores(TileRow i, TileColumn c) const {
    switch (storage()) {
      case Storage::full:
        break;
      case Storage::lower:
        return i >= layout().diagonal_row(c);
      case Storage::upper:
        return i <= layout().diagonal_row(c);
    }
    return true;
  }

  /// What visits a tile: its place in the matrix and its content, in host memory.
  using Visitor = std::function<void(TileRow, TileColumn, TileView)>;

  /// Lets the CPU workers visit all stored tiles of this node, in any order and in parallel; waits.
  /// `visit` may change the content. When a visit throws, the others are skipped, and all nodes
  /// throw: this one the first of its own exceptions, one without any an Error with the text and
  /// the node of another's. Collective in order: every node makes the same calls.
  Matrix& for_each_tile(const Visitor& visit);

  /// Fills element by element, `fill(i, j)` counted from 0, or block by block: `fill(row, column,
  /// block)` with the global position of the block's first element. Of lower storage the part above
  /// the diagonal becomes zero with the former; the latter must leave it so.
  template <class Fill>
  Matrix& fill(const Fill& fill) {
    const TileLayout l = layout();
    const bool lower = storage() == Storage::lower;
    return for_each_tile([&](TileRow i, TileColumn c, TileView tile) {
      const GlobalRow row{l.row_begin(i)};
      const GlobalColumn column{l.column_begin(c)};
      if constexpr (std::is_invocable_v<Fill, GlobalRow, GlobalColumn, TileView>) {
        fill(row, column, tile);
      } else {
        for (std::int64_t b = 0; b < tile.columns; ++b) {
          for (std::int64_t a = 0; a < tile.rows; ++a) {
            const std::int64_t global_row = row.value() + a;
            const std::int64_t global_column = column.value() + b;
            tile(a, b) =
                lower && global_row < global_column ? 0.0 : fill(global_row, global_column);
          }
        }
      }
    });
  }

 private:
  [[noreturn]] void refuse_tile(TileRow i, TileColumn c) const;
  std::shared_ptr<MatrixState> state_;
  // The layout divides for them; programs name each tile of each task.
  std::int32_t tile_rows_;
  std::int32_t tile_columns_;
};

}  // namespace heddle
