#include "replay/simulation/node_needs.hpp"

#include <algorithm>
#include <fmt/core.h>

#include "base/error.hpp"
#include "base/units.hpp"
#include "node-runtime/protocol/pool_plan.hpp"
#include "node-runtime/residency/least_memory.hpp"
#include "node-runtime/scheduling/pool_size.hpp"

namespace heddle::replay {
namespace {

/// Plans as the runtime does before a job.
class PlanSink final : public WalkSink {
 public:
  PlanSink(protocol::PoolPlan& plan, MemoryNeeds* needs) : plan_(plan), needs_(needs) {}
  void append(TaskKindId /*kind*/, std::int32_t /*priority*/,
              std::span<const protocol::Access> accesses) override {
    plan_.append(accesses);
    if (needs_ != nullptr) needs_->meet(accesses);
  }
  void release(const protocol::Access& access) override { plan_.release(access); }
  [[nodiscard]] bool has_room() const override { return true; }

 private:
  protocol::PoolPlan& plan_;
  MemoryNeeds* needs_;
};

}  // namespace

NodeNeeds::NodeNeeds(const SimulatedMachine& machine, SimulatedJob& job, NodeId node)
    : machine_(machine) {
  protocol::PoolPlan plan(node, machine.devices + 1);
  std::int32_t number = 0;
  for (const SimulatedMatrixSpec& spec : job.matrices()) {
    const protocol::MatrixId matrix{number++};
    if (spec.temporary) plan.set_temporary(matrix);
    has_temporaries_ |= spec.temporary;
  }
  if (machine.device_memory_bytes > 0 && machine.devices > 0) {
    memory_ = std::make_unique<MemoryNeeds>(job, node, machine.devices + 1);
  }
  PlanSink sink(plan, memory_.get());
  const auto walk = job.walk(node, sink);
  while (walk->advance()) {
  }
  blocks_ = plan.minimum();
  for (PlaceId place{0}; place.value() <= machine.devices; ++place) {
    std::uint64_t& bytes = block_bytes_.emplace_back(0);
    // A matrix's first tile is its largest.
    for (const protocol::MatrixId matrix : plan.takers(place)) {
      bytes = std::max(bytes, job.tile_bytes({matrix, 0}));
    }
  }
  if (memory_) compare_with_memory(node);
}

/// As JobMemory's.
std::int32_t NodeNeeds::capacity(PlaceId place) const {
  const bool hands_on = has_temporaries_ && machine_.devices == 0;
  const std::int32_t useful =
      useful_blocks(place, minimum(place), machine_.cpu_workers, hands_on, block_bytes(place));
  if (!memory_ || place == host_place) return minimum(place) + useful;
  const std::uint64_t bytes = machine_.device_memory_bytes;
  const std::uint64_t left = bytes - std::min(bytes, memory_->bytes(place));
  const std::uint64_t block = std::max<std::uint64_t>(1, block_bytes(place));
  const std::int64_t room = static_cast<std::int64_t>(left / block) - minimum(place);
  return minimum(place) + affordable_blocks(useful, room);
}

/// Checks whether all blocks fit; if not, tasks must still be able to advance, as in a run.
void NodeNeeds::compare_with_memory(NodeId node) {
  const std::uint64_t bytes = machine_.device_memory_bytes;
  for (PlaceId place{1}; place.value() <= machine_.devices; ++place) {
    const auto blocks = static_cast<std::uint64_t>(minimum(place));
    fit_ &= memory_->bytes(place) + blocks * block_bytes(place) <= bytes;
  }
  const auto devices = static_cast<std::size_t>(machine_.devices);
  const std::uint64_t least = least_device_bytes(memory_->largest_tile_bytes(), devices);
  if (fit_ || least <= bytes) return;
  throw Error(ErrorCode::usage,
              fmt::format("node {}: each device has {} (machine.device_memory), and the tiles of "
                          "one task and of copies under way may take {}: give more, or take "
                          "smaller tiles",
                          node.value(), format_bytes(bytes), format_bytes(least)));
}

}  // namespace heddle::replay
