#pragma once

#include <initializer_list>
#include <iterator>
#include <memory>

#include "algorithms/walk/job.hpp"
#include "algorithms/walk/own_part.hpp"
#include "node-runtime/matrix.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {

/// One node's walk of a sequential program over the tiles of a matrix. The program goes from range
/// to range; in each, one task writes each stored tile, column by column and downwards.
/// broadcast() says which later tasks read a tile. The walk visits only the tasks that concern this
/// node, sends tiles to the nodes that read them, and gives copies up after the last reader.
///
///   walk.broadcast(a(k, c), {panel});
///   for (const auto task : walk.over(panel))
///     co_await task.insert(kernel, {read_write(a(task.row, c)), read(a(k, c))}, options);
///
/// Throws Error(usage) when a task does not write the tile that it is for, or reads a tile of
/// another node that was not broadcast. Used by one thread at a time.
class TileWalk {
 public:
  /// `a` is stored full or lower.
  TileWalk(TaskStream& tasks, const Matrix<double>& a);
  TileWalk(const TileWalk&) = delete;
  TileWalk& operator=(const TileWalk&) = delete;
  ~TileWalk();

  [[nodiscard]] static TileRange tile(TileRow i, TileColumn c) { return {i, i + 1, c, c + 1}; }
  /// Rows [from, end) of tile column c.
  [[nodiscard]] TileRange column(TileColumn c, TileRow from) const;
  /// Rows [from, end) of tile columns [first, end).
  [[nodiscard]] TileRange trailing(TileRow from, TileColumn first) const;
  /// Row i of a range.
  [[nodiscard]] static TileRange row_of(const TileRange& range, TileRow i) {
    return {i, i + 1, range.column_begin, range.column_end};
  }
  /// The columns of a range whose diagonal lies in row i.
  [[nodiscard]] TileRange column_of(const TileRange& range, TileRow i) const;

  /// Tasks of `readers` read the tile as it is now. `readers` come in the order of the program,
  /// each within a range that over() walks later. A tile of another matrix than `a` needs its
  /// version.
  void broadcast(const protocol::Access& tile, std::initializer_list<TileRange> readers);
  void broadcast(const TileRef& tile, std::initializer_list<TileRange> readers) {
    broadcast(read(tile), readers);
  }
  /// Tile (i, c) of `l` to row i and column i of `readers`, for each row i from `from` on: as
  /// broadcast() for each of them, but at the cost of this node's part.
  void broadcast_column(const Matrix<double>& l, TileColumn c, TileRow from,
                        const TileRange& readers, Version version = protocol::count_here);

  /// A task that writes a tile of this node.
  struct Task {
    TileRow row;
    TileColumn column;
    TileWalk* walk;

    /// The first access is the main output, tile (row, column). Once for each task.
    [[nodiscard]] TaskStream::Room insert(const Kernel& kernel, const AccessList& accesses,
                                          const TaskOptions& options = {}) const {
      return walk->insert(kernel, accesses, options);
    }
  };

  class Iterator {
   public:
    explicit Iterator(TileWalk& walk) : walk_(&walk) {}
    [[nodiscard]] Task operator*() const { return {walk_->row_, walk_->column_, walk_}; }
    Iterator& operator++() {
      walk_->advance();
      return *this;
    }
    [[nodiscard]] bool operator==(std::default_sentinel_t /*end*/) const {
      return !walk_->is_walking_;
    }

   private:
    TileWalk* walk_;
  };
  struct Tasks {
    TileWalk* walk;
    [[nodiscard]] Iterator begin() const { return Iterator(*walk); }
    [[nodiscard]] std::default_sentinel_t end() const { return {}; }
  };
  /// The tasks of `range`, for a loop that runs to its end: tiles that no later range reads are
  /// given up there.
  [[nodiscard]] Tasks over(const TileRange& range);

 private:
  void choose();
  void advance();
  TaskStream::Room insert(const Kernel& kernel, const AccessList& list, const TaskOptions& options);

  struct State;
  std::unique_ptr<State> state_;
  bool is_walking_ = false;
  bool is_inserted_ = false;  ///< the current task
  TileRow row_;               ///< of the current task
  TileColumn column_;
};

}  // namespace heddle
