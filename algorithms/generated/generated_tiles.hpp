#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "algorithms/matrix/generated_source.hpp"
#include "algorithms/walk/broadcast.hpp"
#include "node-runtime/matrix.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {

/// What tasks make the tiles of a generated matrix of (the kernel `generate`): numbers of its rows
/// and columns, as matrices beside it.
class GeneratedTiles {
 public:
  /// For a matrix made from `a`. Each matrix of numbers is made by `make` from its spec.
  template <class Make>
  [[nodiscard]] static GeneratedTiles made_by(const MatrixSpec& a, const GeneratedKind& kind,
                                              const Make& make) {
    GeneratedTiles tiles(kind);
    const auto specs = specs_of(a, kind);
    if (specs.columns) tiles.columns_ = make(*specs.columns);
    if (specs.rows) tiles.rows_ = make(*specs.rows);
    return tiles;
  }

  /// The numbers of a matrix of this kind. Collective; what a node throws is thrown on all.
  void fill(const std::shared_ptr<const GeneratedElements>& elements);

  /// Those that there are.
  [[nodiscard]] std::vector<Matrix<double>> numbers() const;

  /// Sets all tiles of `a`; above the diagonal of a matrix of Storage::lower they become zero.
  [[nodiscard]] JobSpec job(const Matrix<double>& a) const;

 private:
  friend class GeneratedWalk;

  struct Specs {
    std::optional<MatrixSpec> columns;
    std::optional<MatrixSpec> rows;
  };
  explicit GeneratedTiles(const GeneratedKind& kind) : kind_(kind) {}
  [[nodiscard]] static Specs specs_of(const MatrixSpec& a, const GeneratedKind& kind);

  GeneratedKind kind_;
  std::optional<Matrix<double>> columns_;  ///< cut as the wide columns
  std::optional<Matrix<double>> rows_;     ///< cut as the rows
};

/// The numbers on their way to the tasks that make tiles, in a program of which every node walks
/// all tiles.
class GeneratedWalk {
 public:
  GeneratedWalk(TaskStream& tasks, const GeneratedTiles& from);

  /// The next tasks make pieces of tile (i, j) on node `at`.
  void columns_to(WideColumn j, NodeId at, std::int32_t priority);
  void rows_to(TileRow i, NodeId at, std::int32_t priority);
  /// The task that makes a tile of this node, a piece of that one.
  [[nodiscard]] TaskStream::Room make(const Matrix<double>& a, TileRow i, TileColumn c,
                                      std::int32_t priority);

 private:
  TaskStream& tasks_;
  GeneratedKind kind_;
  std::vector<Broadcast> columns_;  ///< empty: the kind has no such numbers
  std::vector<Broadcast> rows_;
};

}  // namespace heddle
