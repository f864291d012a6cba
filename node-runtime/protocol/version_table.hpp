#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/index.hpp"
#include "base/indexed_vector.hpp"
#include "base/paged_array.hpp"
#include "node-runtime/protocol/records.hpp"
#include "node-runtime/protocol/slab.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle::protocol {

/// The protocol's view of a matrix.
struct MatrixOptions {
  std::int32_t tile_count = 0;
  /// A temporary matrix has no memory of its own: a tile takes a block of the job's pool with its
  /// first write and returns it after `release`. Other matrices have a block for each tile that
  /// lives on the node.
  bool temporary = false;
  /// For each place of the node: the pool of the matrix's own blocks. Initially block t belongs to
  /// tile t; blocks from tile_count on are spares for renaming, `spare_count` per class.
  std::vector<std::int32_t> pools;
  /// The class of each tile: blocks of a class have equal size, and renaming stays within a class.
  /// Null: one class.
  ClassTable classes;
  std::int32_t class_count = 1;
  /// Renamed tiles per class and place at most; without a spare block a write waits for the readers
  /// of the version it replaces.
  std::int32_t spare_count = 0;
};

/// The tiles of all matrices of a node: for a tile that lives here, its versions, newest first, and
/// the spare blocks for new ones; for a tile of another node, the number of its writes.
///
/// Invariant of a tile that lives here: its versions are linked both ways; 0 <= actual <= expected
/// visits for each; all but the newest are closed.
class VersionTable {
 public:
  explicit VersionTable(std::int32_t places) : places_(places) {}

  MatrixId add_matrix(MatrixOptions options);
  /// Passes over an id: this node could not make the matrix, others may have it.
  void skip_matrix();
  /// Removes a matrix that no job uses.
  void remove_matrix(MatrixId id);
  void remove_all_matrices();
  /// The id of the next add_matrix call.
  [[nodiscard]] MatrixId next_matrix() const { return matrices_.end_index(); }
  [[nodiscard]] bool is_temporary(MatrixId id) const { return matrices_[id]->options.temporary; }

  // ---- tiles that live here
  /// The newest version, with the initial content if there is none yet; not for a temporary tile
  /// before its first write.
  [[nodiscard]] LocalVersion& current(const Access& access);
  /// Null: none yet.
  [[nodiscard]] LocalVersion* find_current(TileId id) { return tile(id).current; }
  /// The version that the job's next write makes, after the current one, which the caller closes.
  [[nodiscard]] LocalVersion& add_version(const Access& access, JobId job);
  /// Detaches the newest version of a temporary tile: the next write follows none.
  void forget_current(TileId id) { tile(id).current = nullptr; }
  /// Detaches the newest versions of all temporary tiles that `job` wrote last, and shows them.
  template <class Show>
  void forget_temporaries(JobId job, const Show& show);
  /// Renaming: gives `version` a spare block, while the replaced version lives on. False: none is
  /// free.
  [[nodiscard]] bool take_spare_block(LocalVersion& version);
  void give_back_spare_block(const LocalVersion& version);
  /// Gives `version` the block of the one it replaces, which ends.
  void take_block_of_previous(LocalVersion& version);
  void destroy(LocalVersion& version);
  /// Block of the tile's newest content; requires that no task that writes it is unfinished.
  [[nodiscard]] BlockRef current_block(TileId id, PlaceId place) const;

  // ---- tiles of other nodes
  /// The version that `access` names.
  [[nodiscard]] Version remote_version(const Access& access, JobId job) const {
    return access.version != count_here ? access.version : counted_version(access.tile, job);
  }
  /// Counts a write whose version the program does not state; returns the version that it replaces.
  Version count_remote_write(const Access& access, JobId job) {
    return access.version != count_here ? access.version : count_write(access.tile, job);
  }

  [[nodiscard]] std::size_t bytes() const { return versions_.bytes(); }
  [[nodiscard]] std::int64_t renamings() const { return renamings_; }
  [[nodiscard]] bool is_valid() const;
  /// Drops all tiles and versions after a failure, without the checks.
  void abandon();

 private:
  struct Tile {
    LocalVersion* current = nullptr;
    JobId job{-1};            ///< of the last write
    std::int32_t number = 0;  ///< number of writes by that job
  };
  struct RemoteWrites {
    JobId job{-1};
    std::int32_t count = 0;
  };
  struct Matrix {
    MatrixOptions options;
    bool in_use = true;
    PagedArray<Tile> tiles;                         ///< touched: tiles of this node
    PagedArray<RemoteWrites> remote_writes;         ///< touched: counted tiles of other nodes
    std::vector<std::vector<std::int32_t>> spares;  ///< free blocks, per place and class

    void clear();
  };

  [[nodiscard]] Tile& tile(TileId id) { return matrices_[id.matrix]->tiles[id.position()]; }
  [[nodiscard]] static std::int32_t pool(const Matrix& matrix, PlaceId place) {
    return matrix.options.pools[static_cast<std::size_t>(place.value())];
  }
  [[nodiscard]] std::vector<std::int32_t>& spares_for(const LocalVersion& version);
  [[nodiscard]] Version counted_version(TileId id, JobId job) const;
  Version count_write(TileId id, JobId job);

  std::int32_t places_;
  IndexedVector<MatrixId, std::unique_ptr<Matrix>> matrices_;
  Slab<LocalVersion> versions_;
  std::int64_t renamings_ = 0;
};

template <class Show>
void VersionTable::forget_temporaries(JobId job, const Show& show) {
  for (const auto& matrix : matrices_) {
    if (!matrix->options.temporary) continue;
    matrix->tiles.for_each_touched([&](Tile& tile) {
      if (tile.current == nullptr || tile.job != job) return;
      show(*std::exchange(tile.current, nullptr));
    });
  }
}

}  // namespace heddle::protocol
