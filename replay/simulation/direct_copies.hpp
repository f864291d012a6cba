#pragma once

#include <cstdint>
#include <vector>

#include "replay/simulation/progress_thread.hpp"
#include "replay/simulation/simulated_memory.hpp"
#include "replay/simulation/simulated_world.hpp"

namespace heddle::replay {

/// Versions that a node's devices copy from devices of other nodes of the host, over mapped memory
/// (decision 020, path `get`). The receiver's progress thread only has the copy begin, and notices
/// its end. A device's copies share its links, one in each direction, and have no part in the lanes
/// of copies within a node. What has left a device's memory is copied from or to page-locked host
/// memory, at the rate between host and device.
class DirectCopies {
 public:
  /// World and thread outlive it.
  DirectCopies(SimulatedWorld& world, NodeId node, ProgressThread& thread);

  /// Blocks move by `memory`, which outlives it; null: they stay. Before the first message.
  void use(SimulatedMemory* memory) { memory_ = memory; }

  /// Whether its receiver's device copies the message.
  [[nodiscard]] static bool takes(const SimulatedMachine& machine, const SimulatedMessage& message);

  /// Event: the progress thread has the copy of a message record begin. Where the block is in
  /// transfer, this waits for retry().
  void begins(std::int32_t number);
  /// A device's transfer has ended.
  void retry();
  /// The flow of the copy has ended.
  void copied(std::int32_t number);
  /// Event: the copy has ended.
  void ends(std::int32_t number);

 private:
  /// What a device sends to those of other nodes, and what it receives.
  struct Link {
    ResourceId out;
    ResourceId in;
  };
  [[nodiscard]] const Link& link(PlaceId device) const {
    return links_[static_cast<std::size_t>(device.value()) - 1];
  }
  [[nodiscard]] const Way& way(const SimulatedMessage& message) const;
  [[nodiscard]] static bool is_read_on_device(const SimulatedMessage& message);
  [[nodiscard]] bool is_written_on_device(const SimulatedMessage& message) const;

  SimulatedWorld& world_;
  NodeId node_;
  ProgressThread& thread_;
  SimulatedMemory* memory_ = nullptr;
  std::vector<Link> links_;              ///< by device
  std::vector<std::int32_t> unreached_;  ///< message records whose block is in transfer
};

}  // namespace heddle::replay
