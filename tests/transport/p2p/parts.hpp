#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/device/emulated/emulated_device.hpp"
#include "node-runtime/transport/p2p/neighbourhood.hpp"
#include "node-runtime/transport/p2p/receive.hpp"
#include "node-runtime/transport/p2p/send.hpp"
#include "node-runtime/transport/p2p/shared_parts.hpp"
#include "node-runtime/transport/p2p/side.hpp"

namespace heddle::p2p {

inline constexpr NodeId peer{1};

inline std::vector<std::byte> counted(std::size_t bytes) {
  std::vector<std::byte> memory(bytes);
  for (std::size_t i = 0; i < bytes; ++i) memory[i] = static_cast<std::byte>(i * 7 + 1);
  return memory;
}

/// A wire that keeps what it is given, so that a test plays the other nodes.
class FakeWire final : public Wire {
 public:
  struct SentNote {
    NodeId to;
    NoteHeader header;
    std::vector<std::byte> payload;
  };
  struct Transfer {
    NodeId peer;
    FlowId flow;
    std::span<std::byte> bytes;
    OperationId id;
  };

  explicit FakeWire(std::int32_t nodes) : nodes_(nodes) {}

  [[nodiscard]] NodeId node() const override { return NodeId{0}; }
  [[nodiscard]] std::int32_t nodes() const override { return nodes_; }
  [[nodiscard]] bool shares_host(NodeId) const override { return is_one_host; }
  [[nodiscard]] std::span<std::byte> window() const override { return {}; }
  [[nodiscard]] std::span<std::byte> window_of(NodeId) const override { return {}; }
  [[nodiscard]] bool reads(NodeId) const override { return is_one_host; }
  void read(NodeId, std::uint64_t address, std::span<std::byte> into) override {
    if (reads_left == 0) throw Error(ErrorCode::communication, "reading is refused here");
    --reads_left;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): memory of this process
    std::memcpy(into.data(), reinterpret_cast<const void*>(address), into.size());
  }
  [[nodiscard]] std::span<std::byte> begin_note(NodeId to, std::size_t bytes) override {
    to_ = to;
    note_.assign(bytes, std::byte{0});
    return note_;
  }
  void send_note() override {
    SentNote note{to_, {}, {}};
    std::memcpy(&note.header.kind, note_.data(), sizeof note.header.kind);
    const std::size_t header_bytes = NoteHeader::size_of(note.header.kind);
    std::memcpy(static_cast<void*>(&note.header), note_.data(), header_bytes);
    note.payload.assign(note_.begin() + static_cast<std::ptrdiff_t>(header_bytes), note_.end());
    notes.push_back(std::move(note));
  }
  [[nodiscard]] bool is_behind(NodeId) const override { return has_late_readers; }
  void send_bytes(NodeId to, FlowId flow, std::span<const std::byte> bytes,
                  OperationId id) override {
    // NOLINTNEXTLINE(*-const-cast): only read
    sent.push_back({to, flow, {const_cast<std::byte*>(bytes.data()), bytes.size()}, id});
  }
  void receive_bytes(NodeId from, FlowId flow, std::span<std::byte> into, OperationId id) override {
    received.push_back({from, flow, into, id});
  }
  void poll(Events&) override {}

  /// The notes since the last call.
  [[nodiscard]] std::vector<SentNote> take_notes() { return std::exchange(notes, {}); }

  std::vector<SentNote> notes;
  std::vector<Transfer> sent;
  std::vector<Transfer> received;
  bool is_one_host = false;
  bool has_late_readers = false;
  std::int64_t reads_left = 1000;

 private:
  std::int32_t nodes_;
  NodeId to_;
  std::vector<std::byte> note_;
};

/// What a sender or a receiver needs, on node 0 of three, and nothing else of an endpoint.
class Parts {
 public:
  static EndpointOptions small() {
    EndpointOptions options;
    options.eager_bytes_max = 100;
    options.eager_memory_bytes = 640;
    options.out_slots = 2;
    options.in_slots = 3;
    options.requests_max = 100;
    options.sizes.piece_bytes = 128;
    options.sizes.read_piece_bytes = 200;
    options.sizes.pieces_ahead = 2;
    options.sizes.ring_piece_bytes = 256;
    options.sizes.ring_slots = 2;
    options.ring_slots = 3;
    return options;
  }

  explicit Parts(std::vector<Device*> own_devices = {}, EndpointOptions chosen = small())
      : devices(std::move(own_devices)),
        options(std::move(chosen)),
        credits(wire.nodes(), static_cast<std::int32_t>(options.eager_memory_bytes / credit_bytes)),
        notes(wire, credits),
        lanes(devices, options.lanes, silent),
        sides(lanes),
        slots(wire, lanes, devices, options),
        pieces(options.fragment),
        requests(options.requests_max),
        neighbours(wire, notes, lanes, slots, requests, nullptr, options.mappings_max),
        shared{options, wire, notes, lanes, slots, neighbours, pieces, requests} {}

  [[nodiscard]] std::shared_ptr<Send> send(const Outgoing& message, NodeId to, std::int32_t tag) {
    auto send = std::make_shared<Send>(true);
    send->side = sides.of(message);
    if (send->side.lane) send->via = *send->side.lane;
    send->to = to;
    send->tag = tag;
    send->id = requests.begin(false);
    return send;
  }
  [[nodiscard]] std::shared_ptr<Receive> receive(const Incoming& room, const Pattern& pattern) {
    auto receive = std::make_shared<Receive>(true);
    receive->side = sides.of(room);
    if (receive->side.lane) receive->via = *receive->side.lane;
    receive->pattern = pattern;
    receive->id = requests.begin(false);
    return receive;
  }
  /// Hands the ends of devices' operations to `end(piece, failure)` until none is under way.
  template <class End>
  void finish_devices(const End& end) {
    while (!lanes.is_idle()) {
      std::vector<Lanes::Ended> all;
      lanes.poll(all);
      for (const Lanes::Ended& one : all) end(pieces.take(one.id), one.failure);
    }
  }

  class Silent final : public Notifier {
   public:
    void notify() noexcept override {}
  };

  FakeWire wire{3};
  std::vector<Device*> devices;
  EndpointOptions options;
  Credits credits;
  Notes notes;
  Silent silent;
  Lanes lanes;
  Sides sides;
  Slots slots;
  Pieces pieces;
  Requests requests;
  Neighbourhood neighbours;
  SharedParts shared;
};

template <class Started>
std::string failure_of(const Started& started) {
  try {
    static_cast<void>(started->wait());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace heddle::p2p
