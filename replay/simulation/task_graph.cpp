#include "replay/simulation/task_graph.hpp"

#include <algorithm>

namespace heddle::replay {
namespace {

/// Records the tasks of one node's walk.
class Listener final : public WalkSink {
 public:
  explicit Listener(PlannedGraph& graph) : graph_(graph) {}

  void append(TaskKindId kind, std::int32_t /*priority*/,
              std::span<const protocol::Access> accesses) override {
    graph_.append(kind.value(), accesses);
  }
  void release(const protocol::Access& /*access*/) override {}
  /// Once tasks are dropped the walk may end.
  [[nodiscard]] bool has_room() const override { return graph_.is_complete(); }

 private:
  PlannedGraph& graph_;
};

/// Receives tasks and drops them.
class Audience final : public WalkSink {
 public:
  void append(TaskKindId /*kind*/, std::int32_t /*priority*/,
              std::span<const protocol::Access> /*accesses*/) override {}
  void release(const protocol::Access& /*access*/) override {}
  [[nodiscard]] bool has_room() const override { return true; }
};

}  // namespace

TaskGraph::TaskGraph(SimulatedJob& job, std::int32_t nodes, std::int64_t tasks_max)
    : job_(job), graph_(tasks_max) {
  Listener listener(graph_);
  for (NodeId node{0}; node.value() < nodes && graph_.is_complete(); ++node) {
    graph_.begin_node();
    const auto walk = job.walk(node, listener);
    while (graph_.is_complete() && walk->advance()) {
    }
  }
  graph_.end();
}

std::vector<double> TaskGraph::levels(const PlannedGraph::Transfer& transfer, bool lends) const {
  const auto seconds = [&](std::int32_t kind, PlaceId place) {
    const TaskKind& what = job_.kinds()[static_cast<std::size_t>(kind)];
    if (place == host_place) return what.seconds_host;
    if (!lends || what.seconds_host <= 0) return what.seconds_device;
    return std::min(what.seconds_host, what.seconds_device);
  };
  return graph_.levels(seconds, transfer);
}

double TaskGraph::critical_path_s(bool lends) const {
  const std::vector<double> all = levels({}, lends);
  return all.empty() ? 0 : *std::ranges::max_element(all);
}

void meet_all_kinds(SimulatedJob& job, std::int32_t nodes) {
  Audience audience;
  for (NodeId node{0}; node.value() < nodes; ++node) {
    const auto walk = job.walk(node, audience);
    while (walk->advance()) {
    }
  }
}

}  // namespace heddle::replay
