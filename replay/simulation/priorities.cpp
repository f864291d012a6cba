#include "replay/simulation/priorities.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "node-runtime/scheduling/ready_queue.hpp"
#include "replay/simulation/mixed.hpp"

namespace heddle::replay {
namespace {

constexpr std::int32_t highest = ReadyQueue::levels - 1;

double seconds_of(const Way& way, std::uint64_t bytes) {
  return way.latency_s + static_cast<double>(bytes) / way.bytes_per_s;
}

PriorityOf by_path(const TaskGraph& graph, SimulatedJob& job, const SimulatedMachine& machine) {
  const auto transfer = [&](Location from, Location to, protocol::TileId tile, Version version) {
    const bool travels = from.node != to.node;
    return seconds_of(machine.way(from, to),
                      travels ? job.message_bytes(tile, version) : job.tile_bytes(tile));
  };
  const std::span<const std::int64_t> first = graph.first_of_node();
  return [ranks = ranks_of(graph.levels(transfer), ReadyQueue::levels),
          first_of_node = std::vector<std::int64_t>(first.begin(), first.end())](
             NodeId node, std::int64_t order, std::int32_t /*given*/) -> std::int32_t {
    const std::int64_t task = first_of_node[static_cast<std::size_t>(node.value())] + order;
    return ranks[static_cast<std::size_t>(task)];
  };
}

}  // namespace

PriorityOf priority_of(PriorityRule rule, std::uint64_t seed, const TaskGraph* graph,
                       SimulatedJob& job, const SimulatedMachine& machine) {
  switch (rule) {
    case PriorityRule::program:
      break;
    case PriorityRule::fifo:
      return [](NodeId, std::int64_t, std::int32_t) { return 0; };
    case PriorityRule::reverse:
      return [](NodeId, std::int64_t, std::int32_t given) {
        return highest - std::clamp(given, 0, highest);
      };
    case PriorityRule::random:
      return [seed](NodeId node, std::int64_t order, std::int32_t) {
        return static_cast<std::int32_t>(mixed(seed, node, order) % ReadyQueue::levels);
      };
    case PriorityRule::path:
      HEDDLE_CHECK(graph != nullptr, "no graph");
      return by_path(*graph, job, machine);
  }
  return {};
}

/// A sink that replaces the priorities of a walk.
class PrioritizedJob::Walk final : public NodeWalk, private WalkSink {
 public:
  Walk(PrioritizedJob& job, NodeId node, WalkSink& sink)
      : job_(job), node_(node), sink_(sink), walk_(job.job().walk(node, *this)) {}

  bool advance() override { return walk_->advance(); }

 private:
  void append(TaskKindId kind, std::int32_t priority,
              std::span<const protocol::Access> accesses) override {
    const bool is_own = accesses.front().home.node == node_;
    sink_.append(kind, is_own ? job_.priority_(node_, order_++, priority) : priority, accesses);
  }
  void announce(const protocol::Access& access, NodeId reader, std::int32_t priority) override {
    sink_.announce(access, reader, priority);
  }
  void publish(const protocol::Access& access, std::span<const protocol::Reader> readers) override {
    sink_.publish(access, readers);
  }
  void release(const protocol::Access& access) override { sink_.release(access); }
  [[nodiscard]] bool has_room() const override { return sink_.has_room(); }

  PrioritizedJob& job_;
  NodeId node_;
  WalkSink& sink_;
  std::int64_t order_ = 0;
  std::unique_ptr<NodeWalk> walk_;
};

std::unique_ptr<NodeWalk> PrioritizedJob::walk(NodeId node, WalkSink& sink) {
  return std::make_unique<Walk>(*this, node, sink);
}

}  // namespace heddle::replay
