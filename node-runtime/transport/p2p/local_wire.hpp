#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "node-runtime/transport/p2p/wire.hpp"

namespace heddle::p2p {

/// The wire of a node that has no other ones: messages to itself.
///
/// Invariant (`is_valid()`): a flow has sends or receives that wait for the other side, never both.
///
/// Thread: one at a time.
class LocalWire final : public Wire {
 public:
  [[nodiscard]] NodeId node() const override { return NodeId{0}; }
  [[nodiscard]] std::int32_t nodes() const override { return 1; }
  [[nodiscard]] bool shares_host(NodeId) const override { return true; }
  [[nodiscard]] std::span<std::byte> window() const override { return {}; }
  [[nodiscard]] std::span<std::byte> window_of(NodeId) const override { return {}; }
  [[nodiscard]] bool reads(NodeId) const override { return true; }
  void read(NodeId from, std::uint64_t address, std::span<std::byte> into) override;
  [[nodiscard]] std::span<std::byte> begin_note(NodeId to, std::size_t bytes) override;
  void send_note() override;
  [[nodiscard]] bool is_behind(NodeId) const override { return false; }
  void send_bytes(NodeId to, FlowId flow, std::span<const std::byte> bytes,
                  OperationId id) override;
  void receive_bytes(NodeId from, FlowId flow, std::span<std::byte> into, OperationId id) override;
  void poll(Events& events) override;

  [[nodiscard]] bool is_valid() const;

 private:
  struct Outgoing {
    std::span<const std::byte> bytes;
    OperationId id;
  };
  struct Incoming {
    std::span<std::byte> bytes;
    OperationId id;
  };
  struct Flow {
    std::deque<Outgoing> sends;
    std::deque<Incoming> receives;
  };

  void move(Flow& flow);

  std::vector<std::byte> note_;  ///< is being written
  std::vector<std::vector<std::byte>> notes_;
  std::vector<std::vector<std::byte>> polled_notes_;  ///< valid until the next poll()
  std::map<FlowId, Flow> flows_;
  std::vector<OperationId> complete_;
  std::vector<OperationId> blank_;
};

}  // namespace heddle::p2p
