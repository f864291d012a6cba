#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "node-runtime/protocol/actions.hpp"
#include "node-runtime/protocol/records.hpp"
#include "node-runtime/scheduling/reader_tree.hpp"
#include "replay/simulation/event_queue.hpp"
#include "replay/simulation/shared_rates.hpp"
#include "replay/simulation/simulated_memory.hpp"
#include "replay/simulation/simulated_records.hpp"
#include "replay/simulation/simulator.hpp"

/// Internal to the simulator's files.
namespace heddle::replay {

[[nodiscard]] inline std::int64_t ns_of(double seconds) {
  return std::llround(seconds * 1e9);
}

/// A simulated event; `number` depends on the kind.
struct Event {
  enum class Kind : std::uint8_t {
    generate,         ///< a node's generation thread continues
    task_ends,        ///< on worker `number`
    kernel_launched,  ///< kernel record `number`
    kernel_noticed,   ///< kernel record `number`
    manager_looks,    ///< device `number`, by itself after a pause
    lane_is_free,     ///< lane `number`: the next copy
    copy_ends,        ///< copy record `number`
    flow_ends,        ///< predicted end of a flow with first resource `number`
    ask_arrives,      ///< message record `number`, at the version's sender
    ask_seen,         ///< by its progress thread
    offer_arrives,    ///< message record `number`, at the receiver
    offer_seen,       ///< by its progress thread
    grant_arrives,    ///< message record `number`, at the version's sender
    grant_seen,       ///< by its progress thread
    message_starts,   ///< message record `number`, after its sender's progress thread
    message_arrives,  ///< at the receiver
    direct_begins,    ///< message record `number`, which a device copies: begun by its thread
    direct_ends,      ///< the device has copied it
    message_seen,     ///< by its progress thread
    progress_looks,   ///< by itself after a pause
  };
  Kind kind = Kind::generate;
  NodeId node;
  std::int32_t number = 0;
};

/// A version in transfer, from its grant on.
struct SimulatedMessage {
  protocol::GrantAction grant;
  NodeId to;
  protocol::SendAction send;
  std::uint64_t bytes = 0;
  std::int64_t granted_ns = 0;
  std::int64_t grant_seen_ns = 0;  ///< by the sender
  std::int64_t begin_ns = 0;       ///< time from which it was possible (message_begins())
  std::int64_t posted_ns = 0;
  std::int64_t start_ns = 0;
  std::int32_t next = -1;  ///< next message to the same node
  SimulatedMemory::Reach read_from = SimulatedMemory::Reach::device;
  SimulatedMemory::Reach written_to = SimulatedMemory::Reach::nowhere;
};

/// User of a flow.
struct FlowUser {
  enum class Kind : std::uint8_t { kernel, message, direct };
  Kind kind = Kind::kernel;
  NodeId node;
  std::int32_t number = 0;
};

/// A network interface, in both directions.
struct NetworkInterface {
  ResourceId out;
  ResourceId in;
};

struct SimulatedNode;

/// Shared by all nodes: time, events and links.
struct SimulatedWorld {
  const SimulatedMachine& machine;
  SimulatedJob& job;
  const SimulationOptions& options;
  ReaderTree reader_tree{{0}, {}};
  std::int64_t now_ns = 0;
  EventQueue<Event> events{};
  SharedRates rates{};
  std::vector<NetworkInterface> interfaces{};  ///< by SimulatedMachine::interface_of()
  std::vector<FlowUser> flow_users{};          ///< by flow
  std::vector<SharedRates::Foreseen> foreseen{};
  Records<SimulatedMessage> messages{};
  std::vector<std::unique_ptr<SimulatedNode>> nodes{};
  SimulationResult result{};

  [[nodiscard]] SimulatedNode& at(NodeId node) {
    return *nodes[static_cast<std::size_t>(node.value())];
  }
  [[nodiscard]] const NetworkInterface& interface_of(NodeId node) const {
    return interfaces[static_cast<std::size_t>(machine.interface_of(node))];
  }
  [[nodiscard]] const TaskKind& kind_of(const protocol::Task& task) const {
    return job.kinds()[task.work.parameters[0]];
  }
  /// A task's time relative to its kind's.
  [[nodiscard]] double share_of(const protocol::Task& task, NodeId node) const {
    const TaskKindId kind{static_cast<std::int32_t>(task.work.parameters[0])};
    return job.share(kind, node, static_cast<std::int64_t>(task.order));
  }
  void post(Event::Kind kind, std::int64_t time_ns, std::int32_t number, NodeId node) {
    events.push(time_ns, {kind, node, number});
  }
  void begin_flow(const FlowUser& user, double amount, ResourceId first, ResourceId second);
  void end_flow(FlowId flow);
  void push_foreseen();
  /// Prefetches the records of these events.
  void fetch_ahead(std::span<const EventQueue<Event>::Entry> soon);
};

}  // namespace heddle::replay
