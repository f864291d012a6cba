#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/kernel_case.hpp"
#include "node-runtime/fine/fine_graph.hpp"
#include "node-runtime/matrix.hpp"
#include "node-runtime/threads/program.hpp"
#include "tests/support/program.hpp"

/// What the product's own programs do on each node when they are walked, for the simulated cluster.
namespace heddle::simulation {

/// A call of a program to its stream on one node.
struct Call {
  Step::Kind kind = Step::Kind::append;
  std::string_view kernel;          ///< of an insertion
  const FineGraph* fine = nullptr;  ///< likewise: its fine-grain form; null: it has none
  std::array<std::uint64_t, 4> parameters{};
  std::int64_t info_base = 0;
  std::int32_t priority = 0;
  std::vector<protocol::Access> accesses;  ///< as the program gave them
  std::vector<Version> versions;           ///< of each: as stated, or counted on its home node
  NodeId reader;                           ///< of an announcement
  /// What each access means wherever the tile is (MatrixTable::add_room): the tile and its version
  /// in writes that change it.
  std::vector<std::pair<protocol::TileId, Version>> meant;
  bool is_move = false;  ///< of an insertion: copies a tile to another place
};

/// Numbers the matrices of programs as the simulated cluster does, in the order in which they are
/// added, and learns where the tiles of temporary ones live.
class MatrixTable {
 public:
  void add(const Matrix<double>& matrix, std::int32_t spare_count);
  void add_temporary(protocol::MatrixId matrix);
  /// Tiles of `matrix`, which is temporary and not added yet, are the same ones on every grid.
  void name_tiles_of(const Matrix<double>& matrix) {
    named_.emplace(matrix.id(), protocol::MatrixId{-1 - static_cast<std::int32_t>(named_.size())});
  }
  /// False: where tiles of the matrix live, and so which tile serves a task, depends on the grid.
  [[nodiscard]] bool has_names(protocol::MatrixId number) const {
    return !is_temporary(number) || rooms_.contains(number);
  }
  /// `room`, which was added, holds tiles of `matrix` while they are at another place.
  void add_room(const Matrix<double>& room, const Matrix<double>& matrix);
  [[nodiscard]] bool is_room(protocol::MatrixId number) const { return rooms_.contains(number); }
  [[nodiscard]] protocol::TileId meant(protocol::TileId tile) const {
    const auto found = rooms_.find(tile.matrix);
    return found == rooms_.end() ? tile : protocol::TileId{found->second, tile.index};
  }

  /// The access with the table's number of the matrix. Says what is wrong in `defect` when its home
  /// is not where the tile lives, or for a temporary one not where another access saw it.
  protocol::Access renumbered(protocol::Access access, std::string& defect);
  [[nodiscard]] bool is_temporary(protocol::MatrixId number) const {
    return matrices_[static_cast<std::size_t>(number.value())].temporary;
  }
  [[nodiscard]] const std::vector<SimulatedMatrix>& matrices() const { return matrices_; }

 private:
  std::map<protocol::MatrixId, protocol::MatrixId> numbers_;
  /// What the tiles of named temporaries mean, by the nodes' numbers.
  std::map<protocol::MatrixId, protocol::MatrixId> named_;
  std::map<protocol::MatrixId, protocol::MatrixId> rooms_;  ///< by number, those of their matrices
  std::vector<SimulatedMatrix> matrices_;
};

/// A job as its nodes walk it.
struct RecordedJob {
  std::vector<std::vector<Call>> nodes;
  /// The first thing that no program may do: a task on another node than its main output's, a write
  /// to a tile that lives elsewhere, a version that is not the one that the tile is at, a version
  /// left out of an access to a tile elsewhere. Empty if there is none.
  std::string defect;
  /// What JobSpec::readers says of each version that a node names, and of each that its tasks
  /// write.
  KnownReaders readers;
};

/// What tasks are cut into, should workers divide them: parts of `small` of tiles that have these
/// shapes, by the program's own numbers of matrices.
struct FineCut {
  std::int64_t small = 1;
  std::function<OperandShape(protocol::TileId)> shape_of;
};

/// Walks the program once for each of `nodes` nodes.
[[nodiscard]] RecordedJob record(const JobSpec& spec, std::int32_t nodes, MatrixTable& table,
                                 const FineCut& cut);

/// The recorded tasks in an order in which each reads only what is written, for the simulated
/// cluster. Says so in `defect` when there is no such order.
[[nodiscard]] WalkedProgram walked_program(const RecordedJob& job, const MatrixTable& table,
                                           std::string& defect);

/// "gsmm of tile 3 of matrix 0 version 2", for messages.
[[nodiscard]] std::string describe(const Call& call);

}  // namespace heddle::simulation
