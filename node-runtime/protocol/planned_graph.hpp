#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle::protocol {

/// The tasks of a job before they run, and what each of them waits for: as all nodes' walks through
/// the program tell, one node after the other. A task is its main output's node's; those of one
/// node follow each other as it walks them. Reading alone makes a task wait: who only writes may
/// have a block of its own.
///
/// Some 50 bytes for each task, linear in tasks and accesses. Not thread-safe.
class PlannedGraph {
 public:
  /// Of a job with more tasks than `tasks_max` nothing is kept: once there are so many, walking on
  /// tells nothing more.
  explicit PlannedGraph(std::int64_t tasks_max) : tasks_max_(tasks_max) {}

  /// The walk of the next node begins: 0, then 1, ...
  void begin_node();
  /// The next task of the walk, the node's own or not; `kind` says to the caller what it costs.
  void append(std::int32_t kind, std::span<const Access> accesses);
  /// All nodes have walked.
  void end();

  /// All tasks so far are there.
  [[nodiscard]] bool is_complete() const { return count_ == std::ssize(tasks_); }
  /// Tasks so far; of a job with too many, one more than are kept.
  [[nodiscard]] std::int64_t count() const { return count_; }
  /// The first task of each node, and one behind the last.
  [[nodiscard]] std::span<const std::int64_t> first_of_node() const { return first_of_node_; }
  [[nodiscard]] std::int32_t kind(std::size_t task) const { return tasks_[task].kind; }
  [[nodiscard]] Location home(std::size_t task) const { return tasks_[task].home; }

  /// Seconds of a task of a kind, where it runs.
  using Cost = std::function<double(std::int32_t kind, PlaceId place)>;
  /// What it takes to have a version where another task made it; may be empty.
  using Transfer = std::function<double(Location from, Location to, TileId tile, Version version)>;
  /// For each task the longest way from its begin to the job's end: the times of tasks that wait
  /// for each other (the "bottom level", or "upward rank"), with what transfers between them take.
  /// The graph is complete.
  [[nodiscard]] std::vector<double> levels(const Cost& cost, const Transfer& transfer) const;

 private:
  /// There are too many tasks.
  void drop();

  struct Task {
    std::int64_t first_need = 0;
    std::int32_t kind = 0;
    Location home;
  };
  struct Need {
    TileId tile;
    Version version;
  };
  /// Of one matrix, by tile.
  struct Tiles {
    /// Tasks by the version that they replace; -1: none.
    std::vector<std::vector<std::int32_t>> writers;
    std::vector<std::int32_t> writes;  ///< in this walk so far
  };

  [[nodiscard]] std::span<const Need> needs(std::size_t task) const;
  /// The task that made it; -1: it was there.
  [[nodiscard]] std::int32_t writer(const Need& need) const;

  std::int64_t tasks_max_;
  NodeId node_{-1};
  std::int64_t count_ = 0;
  std::vector<std::int64_t> first_of_node_;
  std::vector<Task> tasks_;
  std::vector<Need> needs_;
  std::unordered_map<std::int32_t, Tiles> matrices_;
};

/// Of each value its rank among the different ones, 0 the lowest; spread evenly over `levels` where
/// there are more. What differs by rounding alone is alike.
[[nodiscard]] std::vector<std::int16_t> ranks_of(const std::vector<double>& values,
                                                 std::int32_t levels);

}  // namespace heddle::protocol
