#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "replay/simulation/job_layer.hpp"

namespace heddle::replay {

/// What the tasks, messages and wakings of a run took, one by one: for who repeats just that run.
class Course {
 public:
  explicit Course(std::int32_t nodes)
      : shares_(static_cast<std::size_t>(nodes)),
        wakings_(static_cast<std::size_t>(nodes)),
        refills_(static_cast<std::size_t>(nodes)),
        workers_(static_cast<std::size_t>(nodes)) {}

  /// Of its kind's time, by the number of the item in its node's walk.
  void add_task(NodeId node, std::int64_t order, float share);
  /// Until a worker that waited began it, from when it was ready.
  void add_waking(NodeId node, std::int64_t order, double seconds);
  /// The worker of its node that ran it.
  void add_worker(NodeId node, std::int64_t order, std::int32_t worker);
  /// Until generation went on, from when the window had room for more than that item.
  void add_refill(NodeId node, std::int64_t order, double seconds);
  /// From when its version and a block for it were there.
  void add_message(NodeId from, NodeId to, protocol::TileId tile, Version version, double seconds);

  /// 1 where nothing is known.
  [[nodiscard]] double share(NodeId node, std::int64_t order) const;
  /// Nothing where nothing is known.
  [[nodiscard]] std::optional<double> waking_seconds(NodeId node, std::int64_t order) const;
  /// Nothing where nothing is known.
  [[nodiscard]] std::optional<double> refill_seconds(NodeId node, std::int64_t order) const;
  /// Nothing where nothing is known.
  [[nodiscard]] std::optional<std::int32_t> worker_of(NodeId node, std::int64_t order) const;
  /// 0 where nothing is known.
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

  std::vector<std::vector<float>> shares_;  ///< by node and order; 0: nothing is known
  using ByOrder = std::vector<std::unordered_map<std::int64_t, double>>;  ///< by node, then order
  [[nodiscard]] static std::optional<double> find(const ByOrder& times, NodeId node,
                                                  std::int64_t order);
  ByOrder wakings_;
  ByOrder refills_;
  std::vector<std::unordered_map<std::int64_t, std::int32_t>> workers_;  ///< likewise
  std::unordered_map<Key, double, KeyHash> messages_;
};

/// A job whose tasks, messages and wakings take what those of a run did.
class RepeatedJob final : public JobLayer {
 public:
  /// Both outlive it.
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
