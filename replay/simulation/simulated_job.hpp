#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/fine/fine_graph.hpp"
#include "node-runtime/protocol/types.hpp"

/// The simulated job: its program as nodes walk it, without computation.
namespace heddle::replay {

/// A kernel on operands of given shapes at a kind of place: determines a task's time.
using TaskKindId = Index<struct TaskKindTag, std::int32_t>;
/// Fine tasks of a divided task.
struct FineKind {
  FineGraph graph;
  std::vector<double> seconds;  ///< per fine task, on a worker
};
struct TaskKind {
  std::string kernel;
  std::int64_t rows = 0;  ///< of the main output
  std::int64_t columns = 0;
  /// On a worker while all of them compute; divided: the longest path. 0: workers do not run it.
  double seconds_host = 0;
  double seconds_device = 0;  ///< on an otherwise idle device; 0: not on devices
  double flops = 0;
  std::shared_ptr<const FineKind> fine{};  ///< null: not divided
};

/// A tile matrix without elements.
struct SimulatedMatrixSpec {
  std::string name;
  std::int32_t tile_rows = 0;  ///< tile number = row + column * tile_rows
  std::int32_t tile_columns = 0;
  bool temporary = false;
  std::int32_t spare_count = 0;
  protocol::ClassTable classes;  ///< class of each tile by its bytes; null: one class
  std::int32_t class_count = 1;
};

/// Receives the items of a walk.
class WalkSink {
 public:
  WalkSink() = default;
  WalkSink(const WalkSink&) = delete;
  WalkSink& operator=(const WalkSink&) = delete;
  virtual ~WalkSink() = default;

  virtual void append(TaskKindId kind, std::int32_t priority,
                      std::span<const protocol::Access> accesses) = 0;
  virtual void announce(const protocol::Access& /*access*/, NodeId /*reader*/,
                        std::int32_t /*priority*/) {}
  virtual void publish(const protocol::Access& /*access*/,
                       std::span<const protocol::Reader> /*readers*/) {}
  virtual void release(const protocol::Access& access) = 0;
  /// For another item.
  [[nodiscard]] virtual bool has_room() const = 0;
};

/// One node's walk through the program.
class NodeWalk {
 public:
  NodeWalk() = default;
  NodeWalk(const NodeWalk&) = delete;
  NodeWalk& operator=(const NodeWalk&) = delete;
  virtual ~NodeWalk() = default;

  /// Walks until the sink is full, at least one item. False at the end.
  virtual bool advance() = 0;
};

/// A job as all nodes submit it.
class SimulatedJob {
 public:
  SimulatedJob() = default;
  SimulatedJob(const SimulatedJob&) = delete;
  SimulatedJob& operator=(const SimulatedJob&) = delete;
  virtual ~SimulatedJob() = default;

  /// By the numbers in accesses.
  [[nodiscard]] virtual std::span<const SimulatedMatrixSpec> matrices() const = 0;
  /// From the start, into `sink`, which must outlive the walk.
  [[nodiscard]] virtual std::unique_ptr<NodeWalk> walk(NodeId node, WalkSink& sink) = 0;
  /// Kinds that walks have met so far.
  [[nodiscard]] virtual std::span<const TaskKind> kinds() const = 0;
  [[nodiscard]] virtual std::uint64_t tile_bytes(protocol::TileId tile) const = 0;
  /// Bytes of a version that other nodes need.
  [[nodiscard]] virtual std::uint64_t message_bytes(protocol::TileId tile,
                                                    Version version) const = 0;
  /// As JobSpec::readers; nothing: all are announced.
  [[nodiscard]] virtual std::function<std::vector<protocol::Reader>(protocol::TileId, Version)>
  readers() const {
    return {};
  }
  /// Tasks whose priority is lower by more than this than a device's present work wait before their
  /// tiles are fetched; as JobSpec::priority_span.
  [[nodiscard]] virtual std::int32_t priority_span() const {
    return std::numeric_limits<std::int32_t>::max();
  }
  /// A task's time relative to its kind's: 1, unless times are random or recorded.
  [[nodiscard]] virtual double share(TaskKindId /*kind*/, NodeId /*node*/,
                                     std::int64_t /*order*/) const {
    return 1;
  }
  /// Time from ready to start on a waiting worker, also for the worker that just ended a task.
  /// Empty: as the machine says.
  [[nodiscard]] virtual std::optional<double> waking_seconds(NodeId /*node*/,
                                                             std::int64_t /*order*/) const {
    return std::nullopt;
  }
  /// The worker of its node that runs a task; empty: any.
  [[nodiscard]] virtual std::optional<std::int32_t> worker_of(NodeId /*node*/,
                                                              std::int64_t /*order*/) const {
    return std::nullopt;
  }
  /// Time until generation continues after a full window has room beyond that item; empty: as the
  /// machine says.
  [[nodiscard]] virtual std::optional<double> refill_seconds(NodeId /*node*/,
                                                             std::int64_t /*order*/) const {
    return std::nullopt;
  }
  /// Time of a message between nodes of a host once its version and a block are present; 0: as the
  /// machine says.
  [[nodiscard]] virtual double message_seconds(NodeId /*from*/, NodeId /*to*/,
                                               protocol::TileId /*tile*/,
                                               Version /*version*/) const {
    return 0;
  }
};

}  // namespace heddle::replay
