#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "replay/simulation/simulated_job.hpp"

namespace heddle::replay {

/// Decorator base: forwards to a job, which must outlive it.
class JobLayer : public SimulatedJob {
 public:
  explicit JobLayer(SimulatedJob& job) : job_(job) {}

  [[nodiscard]] std::span<const SimulatedMatrixSpec> matrices() const override {
    return job_.matrices();
  }
  [[nodiscard]] std::unique_ptr<NodeWalk> walk(NodeId node, WalkSink& sink) override {
    return job_.walk(node, sink);
  }
  [[nodiscard]] std::span<const TaskKind> kinds() const override { return job_.kinds(); }
  [[nodiscard]] std::uint64_t tile_bytes(protocol::TileId tile) const override {
    return job_.tile_bytes(tile);
  }
  [[nodiscard]] std::uint64_t message_bytes(protocol::TileId tile, Version version) const override {
    return job_.message_bytes(tile, version);
  }
  [[nodiscard]] double share(TaskKindId kind, NodeId node, std::int64_t order) const override {
    return job_.share(kind, node, order);
  }
  [[nodiscard]] std::optional<double> waking_seconds(NodeId node,
                                                     std::int64_t order) const override {
    return job_.waking_seconds(node, order);
  }
  [[nodiscard]] std::optional<std::int32_t> worker_of(NodeId node,
                                                      std::int64_t order) const override {
    return job_.worker_of(node, order);
  }
  [[nodiscard]] std::optional<double> refill_seconds(NodeId node,
                                                     std::int64_t order) const override {
    return job_.refill_seconds(node, order);
  }
  [[nodiscard]] double message_seconds(NodeId from, NodeId to, protocol::TileId tile,
                                       Version version) const override {
    return job_.message_seconds(from, to, tile, version);
  }
  [[nodiscard]] std::function<std::vector<protocol::Reader>(protocol::TileId, Version)> readers()
      const override {
    return job_.readers();
  }
  [[nodiscard]] std::int32_t priority_span() const override { return job_.priority_span(); }

 protected:
  [[nodiscard]] SimulatedJob& job() { return job_; }

 private:
  SimulatedJob& job_;
};

}  // namespace heddle::replay
