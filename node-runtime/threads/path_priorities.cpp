#include "node-runtime/threads/path_priorities.hpp"

#include <array>
#include <fmt/core.h>
#include <span>
#include <unordered_map>

#include "base/error.hpp"
#include "kernels/case_key.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {
namespace {

/// A kernel on tiles of some shapes at a place's kind, numbered; most of a job's tasks share a few.
class Kinds {
 public:
  Kinds(const std::function<OperandShape(protocol::TileId)>& shape_of, const TaskCosts& costs)
      : shape_of_(shape_of), costs_(costs) {}

  std::int32_t number(const Kernel& kernel, const TaskOptions& options,
                      std::span<const protocol::Access> accesses) {
    const auto shape = [&](const protocol::Access& access) { return shape_of_(access.tile); };
    const CaseKey key = CaseKey::of(kernel, options.parameters, accesses, shape);
    const auto next = static_cast<std::int32_t>(seconds_.size());
    const auto [entry, is_new] = numbers_.try_emplace(key, next);
    if (is_new) {
      seconds_.push_back({costs_.kernel(key.what(), false), costs_.kernel(key.what(), true)});
    }
    return entry->second;
  }
  [[nodiscard]] double seconds(std::int32_t kind, PlaceId place) const {
    return seconds_[static_cast<std::size_t>(kind)].at(place == host_place ? 0 : 1);
  }

 private:
  const std::function<OperandShape(protocol::TileId)>& shape_of_;
  const TaskCosts& costs_;
  std::unordered_map<CaseKey, std::int32_t, CaseKey::Hash> numbers_;
  std::vector<std::array<double, 2>> seconds_;  ///< on a worker, on a device
};

class GraphListener final : public ProgramListener {
 public:
  GraphListener(PlannedGraph& graph, Kinds& kinds) : graph_(graph), kinds_(kinds) {}

  void insert(const Kernel& kernel, const TaskOptions& options,
              std::span<const protocol::Access> accesses) override {
    graph_.append(kinds_.number(kernel, options, accesses), accesses);
  }
  void release(const protocol::Access& /*access*/) override {}

 private:
  PlannedGraph& graph_;
  Kinds& kinds_;
};

}  // namespace

std::vector<std::int16_t> path_priorities(
    const std::function<Program(TaskStream&)>& program, NodeId node, std::int32_t nodes,
    const std::function<OperandShape(protocol::TileId)>& shape_of, const TaskCosts& costs,
    std::int32_t levels) {
  PlannedGraph graph(path_tasks_max);
  Kinds kinds(shape_of, costs);
  GraphListener listener(graph, kinds);
  for (NodeId walker{0}; walker.value() < nodes && graph.is_complete(); ++walker) {
    graph.begin_node();
    TaskStream stream(listener, walker);
    Program walk = program(stream);
    while (graph.is_complete() && walk.resume()) {
    }
  }
  graph.end();
  if (!graph.is_complete()) {
    throw Error(
        ErrorCode::usage,
        fmt::format("runtime.priorities: path looks at all tasks of a job beforehand, at most "
                    "{}; this one has more: choose larger tiles, or 'program'",
                    path_tasks_max));
  }
  PlannedGraph::Transfer transfer;
  if (costs.transfer) {
    transfer = [&](Location from, Location to, protocol::TileId tile, Version /*version*/) {
      const OperandShape shape = shape_of(tile);
      return costs.transfer(
          from, to, static_cast<std::uint64_t>(shape.rows * shape.columns) * sizeof(double));
    };
  }
  const std::vector<std::int16_t> all = ranks_of(
      graph.levels([&](std::int32_t kind, PlaceId place) { return kinds.seconds(kind, place); },
                   transfer),
      levels);
  const auto first = graph.first_of_node()[static_cast<std::size_t>(node.value())];
  const auto last = graph.first_of_node()[static_cast<std::size_t>(node.value()) + 1];
  return {all.begin() + first, all.begin() + last};
}

}  // namespace heddle
