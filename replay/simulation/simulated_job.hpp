#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/fine/fine_graph.hpp"
#include "node-runtime/protocol/types.hpp"

/// What is simulated: a job's program as nodes walk it, without what it computes.
namespace heddle::replay {

/// A kernel on operands of one shape, at one kind of place: what tells how long a task takes.
using TaskKindId = Index<struct TaskKindTag, std::int32_t>;
/// What workers make of a task that they divide.
struct FineKind {
  FineGraph graph;
  std::vector<double> seconds;  ///< of each fine task, on a worker
};
struct TaskKind {
  std::string kernel;
  std::int64_t rows = 0;  ///< of the main output
  std::int64_t columns = 0;
  /// On a worker, all of them at work; divided: the longest way. 0: workers do not run it.
  double seconds_host = 0;
  double seconds_device = 0;  ///< on a device that does nothing else; 0: no device can
  double flops = 0;
  std::shared_ptr<const FineKind> fine{};  ///< null: workers run it whole
};

/// A tile matrix, of which the simulation needs no element.
struct SimulatedMatrixSpec {
  std::string name;
  std::int32_t tile_rows = 0;  ///< tile number = row + column * tile_rows
  std::int32_t tile_columns = 0;
  bool temporary = false;
  std::int32_t spare_count = 0;
  protocol::ClassTable classes;  ///< of each tile, by its bytes; null: all are alike
  std::int32_t class_count = 1;
};

/// Where a walk puts what it meets.
class WalkSink {
 public:
  WalkSink() = default;
  WalkSink(const WalkSink&) = delete;
  WalkSink& operator=(const WalkSink&) = delete;
  virtual ~WalkSink() = default;

  virtual void append(TaskKindId kind, std::int32_t priority,
                      std::span<const protocol::Access> accesses) = 0;
  virtual void announce(const protocol::Access& access, NodeId reader, std::int32_t priority) = 0;
  virtual void release(const protocol::Access& access) = 0;
  /// For another item, now.
  [[nodiscard]] virtual bool has_room() const = 0;
};

/// One node's walk through a program.
class NodeWalk {
 public:
  NodeWalk() = default;
  NodeWalk(const NodeWalk&) = delete;
  NodeWalk& operator=(const NodeWalk&) = delete;
  virtual ~NodeWalk() = default;

  /// Walks on until its sink has no room, an item at least. False: that was the end.
  virtual bool advance() = 0;
};

/// A job as all nodes submit it.
class SimulatedJob {
 public:
  SimulatedJob() = default;
  SimulatedJob(const SimulatedJob&) = delete;
  SimulatedJob& operator=(const SimulatedJob&) = delete;
  virtual ~SimulatedJob() = default;

  /// By the numbers that accesses have.
  [[nodiscard]] virtual std::span<const SimulatedMatrixSpec> matrices() const = 0;
  /// From the beginning, into `sink`, which outlives it.
  [[nodiscard]] virtual std::unique_ptr<NodeWalk> walk(NodeId node, WalkSink& sink) = 0;
  /// Those that walks have met so far.
  [[nodiscard]] virtual std::span<const TaskKind> kinds() const = 0;
  [[nodiscard]] virtual std::uint64_t tile_bytes(protocol::TileId tile) const = 0;
  /// Of a version, what other nodes need.
  [[nodiscard]] virtual std::uint64_t message_bytes(protocol::TileId tile,
                                                    Version version) const = 0;
  /// Tasks that are less urgent by more than that than what a device computes let it wait rather
  /// than have their tiles brought, as JobSpec::priority_span.
  [[nodiscard]] virtual std::int32_t priority_span() const {
    return std::numeric_limits<std::int32_t>::max();
  }
  /// What a task takes of its kind's time, the item of its node's walk with that number: 1, unless
  /// times are drawn, or those of a run.
  [[nodiscard]] virtual double share(TaskKindId /*kind*/, NodeId /*node*/,
                                     std::int64_t /*order*/) const {
    return 1;
  }
  /// Until a worker that waits begins a task, from when it is ready; the task's own worker, from
  /// when it has ended the one before, too. Nothing: what the machine says.
  [[nodiscard]] virtual std::optional<double> waking_seconds(NodeId /*node*/,
                                                             std::int64_t /*order*/) const {
    return std::nullopt;
  }
  /// The worker of its node that runs a task; nothing: any.
  [[nodiscard]] virtual std::optional<std::int32_t> worker_of(NodeId /*node*/,
                                                              std::int64_t /*order*/) const {
    return std::nullopt;
  }
  /// Until the generation thread goes on, from when a full window has room for more than that item;
  /// nothing: what the machine says.
  [[nodiscard]] virtual std::optional<double> refill_seconds(NodeId /*node*/,
                                                             std::int64_t /*order*/) const {
    return std::nullopt;
  }
  /// What a message between nodes of one host takes once its version and a block are there; 0: what
  /// the machine makes of it.
  [[nodiscard]] virtual double message_seconds(NodeId /*from*/, NodeId /*to*/,
                                               protocol::TileId /*tile*/,
                                               Version /*version*/) const {
    return 0;
  }
};

}  // namespace heddle::replay
