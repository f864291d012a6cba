#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "replay/simulation/job_layer.hpp"

namespace heddle::replay {

/// Recorded times of a run's tasks, messages and wake-ups, to repeat exactly that run.
class Course {
 public:
  explicit Course(std::int32_t nodes)
      : shares_(static_cast<std::size_t>(nodes)),
        wakings_(static_cast<std::size_t>(nodes)),
        refills_(static_cast<std::size_t>(nodes)),
        workers_(static_cast<std::size_t>(nodes)) {}

  /// Fraction of the kind's mean time; `order`: of the item in its node's walk.
  void add_task(NodeId node, std::int64_t order, float share);
  /// Seconds from ready to start on a waiting worker.
  void add_waking(NodeId node, std::int64_t order, double seconds);
  /// The worker of its node that ran it.
  void add_worker(NodeId node, std::int64_t order, std::int32_t worker);
  /// Seconds until generation continued after the window had room beyond that item.
  void add_refill(NodeId node, std::int64_t order, double seconds);
  /// Seconds from when its version and a block for it were present.
  void add_message(NodeId from, NodeId to, protocol::TileId tile, Version version, double seconds);

  /// 1 if unknown.
  [[nodiscard]] double share(NodeId node, std::int64_t order) const;
  /// Empty if unknown.
  [[nodiscard]] std::optional<double> waking_seconds(NodeId node, std::int64_t order) const;
  /// Empty if unknown.
  [[nodiscard]] std::optional<double> refill_seconds(NodeId node, std::int64_t order) const;
  /// Empty if unknown.
  [[nodiscard]] std::optional<std::int32_t> worker_of(NodeId node, std::int64_t order) const;
  /// 0 if unknown.
  [[nodiscard]] double message_seconds(NodeId from, NodeId to, protocol::TileId tile,
                                       Version version) const;

 private:
  struct Key {
    NodeId from;
    NodeId to;
    protocol::TileId tile;
    Version version;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  std::vector<std::vector<float>> shares_;  ///< by node and order; 0: unknown
  using ByOrder = std::vector<std::unordered_map<std::int64_t, double>>;  ///< by node, then order
  [[nodiscard]] static std::optional<double> find(const ByOrder& times, NodeId node,
                                                  std::int64_t order);
  ByOrder wakings_;
  ByOrder refills_;
  std::vector<std::unordered_map<std::int64_t, std::int32_t>> workers_;  ///< by node, then order
  std::unordered_map<Key, double, KeyHash> messages_;
};

/// A job whose tasks, messages and wake-ups take the recorded times.
class RepeatedJob final : public JobLayer {
 public:
  /// Both must outlive it.
  RepeatedJob(SimulatedJob& job, const Course& course) : JobLayer(job), course_(course) {}

  [[nodiscard]] double share(TaskKindId /*kind*/, NodeId node, std::int64_t order) const override {
    return course_.share(node, order);
  }
  [[nodiscard]] std::optional<double> waking_seconds(NodeId node,
                                                     std::int64_t order) const override {
    return course_.waking_seconds(node, order);
  }
  [[nodiscard]] std::optional<std::int32_t> worker_of(NodeId node,
                                                      std::int64_t order) const override {
    return course_.worker_of(node, order);
  }
  [[nodiscard]] std::optional<double> refill_seconds(NodeId node,
                                                     std::int64_t order) const override {
    return course_.refill_seconds(node, order);
  }
  [[nodiscard]] double message_seconds(NodeId from, NodeId to, protocol::TileId tile,
                                       Version version) const override {
    return course_.message_seconds(from, to, tile, version);
  }

 private:
  const Course& course_;
};

}  // namespace heddle::replay
