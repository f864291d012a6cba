#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "replay/simulation/memory_needs.hpp"
#include "replay/simulation/simulated_job.hpp"
#include "replay/simulation/simulated_machine.hpp"

namespace heddle::replay {

/// What a job needs on one node, known before it begins: blocks of its pools, and memory of the
/// node's devices. The counterpart of JobMemory.
class NodeNeeds {
 public:
  /// Walks the job once, as the runtime plans. Throws Error(usage) where a device has no room for
  /// one task. The machine outlives it.
  NodeNeeds(const SimulatedMachine& machine, SimulatedJob& job, NodeId node);

  /// Blocks of the job's pool at a place: at least, and as many as are useful and affordable.
  [[nodiscard]] std::int32_t minimum(PlaceId place) const {
    return blocks_[static_cast<std::size_t>(place.value())];
  }
  [[nodiscard]] std::int32_t capacity(PlaceId place) const;
  /// Bytes of a block of that pool: the largest tile that takes one.
  [[nodiscard]] std::uint64_t block_bytes(PlaceId place) const {
    return block_bytes_[static_cast<std::size_t>(place.value())];
  }
  /// All tiles and blocks fit into the devices' memory.
  [[nodiscard]] bool fit() const { return fit_; }
  /// Null: unlimited memory.
  [[nodiscard]] const MemoryNeeds* memory() const { return memory_.get(); }

 private:
  void compare_with_memory(NodeId node);

  const SimulatedMachine& machine_;
  std::vector<std::int32_t> blocks_;        ///< minimum of the job's pools, by place
  std::vector<std::uint64_t> block_bytes_;  ///< of each of them
  bool has_temporaries_ = false;
  std::unique_ptr<MemoryNeeds> memory_;
  bool fit_ = true;
};

}  // namespace heddle::replay
