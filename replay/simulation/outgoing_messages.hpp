#pragma once

#include <cstdint>
#include <vector>

#include "base/flat_map.hpp"
#include "node-runtime/protocol/actions.hpp"
#include "replay/simulation/progress_thread.hpp"
#include "replay/simulation/simulated_memory.hpp"
#include "replay/simulation/simulated_world.hpp"

namespace heddle::replay {

/// Hash of a small number; the upper bits are mixed best.
struct NodeHash {
  std::size_t operator()(std::int32_t node) const {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(node)) * 0x9E3779B97F4A7C15U) >>
           32;
  }
};

/// The messages that a node sends: asks, offers, grants and versions, from the protocol's action to
/// the event at their receiver. Their records are in SimulatedWorld::messages. Versions to one node
/// on another host leave one after the other, as on one connection.
class OutgoingMessages {
 public:
  /// World and thread outlive it.
  OutgoingMessages(SimulatedWorld& world, NodeId node, ProgressThread& thread)
      : world_(world), node_(node), thread_(thread) {}

  /// Versions on devices are read by `memory`, which outlives it; null: nothing moves there. Before
  /// the first message.
  void use(SimulatedMemory* memory) { memory_ = memory; }

  void ask(const protocol::AskAction& wanted);
  void offer(const protocol::OfferAction& offered);
  void grant(const protocol::GrantAction& wanted);
  void send(const protocol::SendAction& wanted);

  /// Event: the progress thread has posted the version. A version whose block is in transfer starts
  /// in retry().
  void starts(std::int32_t number);
  /// A device's transfer has ended.
  void retry();
  /// Event: the version has left the node.
  void left(std::int32_t number);

 private:
  void tell(Event::Kind kind, NodeId to, const SimulatedMessage& message);
  void begin_flow(std::int32_t number);

  SimulatedWorld& world_;
  NodeId node_;
  ProgressThread& thread_;
  SimulatedMemory* memory_ = nullptr;
  std::vector<std::int32_t> unreached_;  ///< message records whose block is in transfer
  /// The last started message to each node; the first is in transfer.
  FlatMap<std::int32_t, std::int32_t, NodeHash> leaving_;
};

}  // namespace heddle::replay
