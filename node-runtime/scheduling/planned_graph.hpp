#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle {

/// The tasks of a job before they run, and their dependencies, from all nodes' walks through the
/// program, one node after the other. A task belongs to its main output's node; tasks of a node are
/// consecutive, in the order of its walk. Only reads are dependencies: a pure write may be renamed.
///
/// About 50 bytes per task; linear in tasks and accesses. Not thread-safe.
class PlannedGraph {
 public:
  /// A job with more than `tasks_max` tasks is not recorded; stop walking when that is exceeded.
  explicit PlannedGraph(std::int64_t tasks_max) : tasks_max_(tasks_max) {}

  /// Begins the walk of the next node: 0, then 1, ...
  void begin_node();
  /// Appends the next task of the walk, of this node or another; `kind` identifies its cost for the
  /// caller.
  void append(std::int32_t kind, std::span<const protocol::Access> accesses);
  /// Ends the last node's walk.
  void end();

  /// False if the job has too many tasks.
  [[nodiscard]] bool is_complete() const { return count_ == std::ssize(tasks_); }
  /// Tasks so far; `tasks_max` + 1 if there are too many.
  [[nodiscard]] std::int64_t count() const { return count_; }
  /// The first task of each node, and the total as the last element.
  [[nodiscard]] std::span<const std::int64_t> first_of_node() const { return first_of_node_; }
  [[nodiscard]] std::int32_t kind(std::size_t task) const { return tasks_[task].kind; }
  [[nodiscard]] Location home(std::size_t task) const { return tasks_[task].home; }

  /// Seconds of a task of `kind` at `place`.
  using Cost = std::function<double(std::int32_t kind, PlaceId place)>;
  /// Seconds to transfer a version from where it was made; may be empty.
  using Transfer =
      std::function<double(Location from, Location to, protocol::TileId tile, Version version)>;
  /// For each task the longest path from its start to the job's end ("bottom level" or "upward
  /// rank"), transfers included. Requires is_complete().
  [[nodiscard]] std::vector<double> levels(const Cost& cost, const Transfer& transfer) const;

 private:
  /// Drops all tasks: there are too many.
  void drop();

  struct Task {
    std::int64_t first_need = 0;
    std::int32_t kind = 0;
    Location home;
  };
  struct Need {
    protocol::TileId tile;
    Version version;
  };
  /// The writes to one matrix; each vector has an element per tile.
  struct Tiles {
    /// Tasks by the version that they replace; -1: none.
    std::vector<std::vector<std::int32_t>> writers;
    std::vector<std::int32_t> writes;  ///< in this node's walk so far
  };

  [[nodiscard]] std::span<const Need> needs(std::size_t task) const;
  /// The task that made the version; -1: none, it is initial content.
  [[nodiscard]] std::int32_t writer(const Need& need) const;

  std::int64_t tasks_max_;
  NodeId node_{-1};
  std::int64_t count_ = 0;
  std::vector<std::int64_t> first_of_node_;
  std::vector<Task> tasks_;
  std::vector<Need> needs_;
  std::unordered_map<std::int32_t, Tiles> matrices_;
};

/// Rank of each value among the distinct ones, 0 the lowest, scaled to `levels` if there are more.
/// Values that differ only by rounding have one rank.
[[nodiscard]] std::vector<std::int16_t> ranks_of(const std::vector<double>& values,
                                                 std::int32_t levels);

}  // namespace heddle
