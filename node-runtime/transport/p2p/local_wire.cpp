#include "node-runtime/transport/p2p/local_wire.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"

namespace heddle::p2p {

void LocalWire::read(NodeId, std::uint64_t address, std::span<std::byte> into) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): memory of this very process
  std::memcpy(into.data(), reinterpret_cast<const void*>(address), into.size());
}

std::span<std::byte> LocalWire::begin_note(NodeId, std::size_t bytes) {
  note_.resize(bytes);
  return note_;
}

void LocalWire::send_note() {
  notes_.push_back(std::exchange(note_, {}));
}

void LocalWire::send_bytes(NodeId, FlowId flow, std::span<const std::byte> bytes, OperationId id) {
  Flow& to = flows_[flow];
  to.sends.push_back({bytes, id});
  move(to);
}

void LocalWire::receive_bytes(NodeId, FlowId flow, std::span<std::byte> into, OperationId id) {
  Flow& from = flows_[flow];
  from.receives.push_back({into, id});
  move(from);
}

void LocalWire::move(Flow& flow) {
  while (!flow.sends.empty() && !flow.receives.empty()) {
    const Outgoing& sent = flow.sends.front();
    const Incoming& received = flow.receives.front();
    HEDDLE_CHECK(sent.bytes.empty() || sent.bytes.size() == received.bytes.size(),
                 "{} bytes are sent, {} received", sent.bytes.size(), received.bytes.size());
    std::ranges::copy(sent.bytes, received.bytes.begin());
    complete_.push_back(sent.id);
    (sent.bytes.empty() ? blank_ : complete_).push_back(received.id);
    flow.sends.pop_front();
    flow.receives.pop_front();
  }
}

void LocalWire::poll(Events& events) {
  polled_notes_ = std::exchange(notes_, {});
  for (const auto& note : polled_notes_) events.notes.push_back({node(), note});
  events.complete.insert(events.complete.end(), complete_.begin(), complete_.end());
  complete_.clear();
  events.blank.insert(events.blank.end(), blank_.begin(), blank_.end());
  blank_.clear();
}

bool LocalWire::is_valid() const {
  return std::ranges::all_of(flows_, [](const auto& flow) {
    return flow.second.sends.empty() || flow.second.receives.empty();
  });
}

}  // namespace heddle::p2p
