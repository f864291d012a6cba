#include "tests/transport/p2p/simulated_wire.hpp"

#include <cstring>

#include "base/error.hpp"

namespace heddle::p2p {

class SimulatedWire final : public Wire {
 public:
  SimulatedWire(SimulatedNet& net, NodeId node) : net_(net), node_(node) {}

  [[nodiscard]] NodeId node() const override { return node_; }
  [[nodiscard]] std::int32_t nodes() const override {
    return static_cast<std::int32_t>(net_.ends_.size());
  }
  [[nodiscard]] bool shares_host(NodeId other) const override {
    return net_.are_on_one_host(node_, other);
  }
  [[nodiscard]] std::span<std::byte> window() const override { return window_of(node_); }
  [[nodiscard]] std::span<std::byte> window_of(NodeId node) const override {
    return net_.end(node).window.span();
  }
  [[nodiscard]] bool reads(NodeId node) const override {
    return net_.options_.reads && shares_host(node);
  }
  void read(NodeId from, std::uint64_t address, std::span<std::byte> into) override {
    if (net_.reads_left_ == 0 || net_.end(from).is_lost) {
      throw Error(ErrorCode::communication, "the memory is not read");
    }
    --net_.reads_left_;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it was one, in this process
    std::memcpy(into.data(), reinterpret_cast<const void*>(address), into.size());
  }
  [[nodiscard]] std::span<std::byte> begin_note(NodeId to, std::size_t bytes) override {
    note_to_ = to;
    if (bytes > note_bytes_max) ++net_.defects_;
    note_.assign(bytes, std::byte{0xEE});
    return note_;
  }
  void send_note() override {
    const NodeId to = note_to_;
    if (net_.end(to).is_lost || net_.end(node_).is_lost) return;
    net_.add_note(node_, to, std::move(note_));
  }
  [[nodiscard]] bool is_behind(NodeId to) const override {
    return net_.unread_notes(node_, to) >= SimulatedNet::unread_notes_max;
  }
  void send_bytes(NodeId to, FlowId flow, std::span<const std::byte> bytes,
                  OperationId id) override {
    if (net_.end(to).is_lost || net_.end(node_).is_lost) return;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): only read
    auto* const memory = const_cast<std::byte*>(bytes.data());
    net_.add_piece({node_.value(), to.value(), flow.value()}, true, {memory, bytes.size(), id});
  }
  void receive_bytes(NodeId from, FlowId flow, std::span<std::byte> into, OperationId id) override {
    if (net_.end(from).is_lost || net_.end(node_).is_lost) return;
    net_.add_piece({from.value(), node_.value(), flow.value()}, false,
                   {into.data(), into.size(), id});
  }
  void poll(Events& events) override { net_.poll(node_, events); }

 private:
  SimulatedNet& net_;
  NodeId node_;
  std::vector<std::byte> note_;
  NodeId note_to_;
};

SimulatedNet::SimulatedNet(std::int32_t nodes, std::uint64_t seed, const Options& options)
    : options_(options), random_(seed), reads_left_(options.reads_max) {
  for (std::int32_t node = 0; node < nodes; ++node) {
    ends_.emplace_back(HostPages(options.window_bytes));
  }
  for (std::int32_t node = 0; node < nodes; ++node) {
    wires_.push_back(std::make_unique<SimulatedWire>(*this, NodeId{node}));
  }
}

bool SimulatedNet::are_on_one_host(NodeId a, NodeId b) const {
  if (a == b || options_.is_one_host) return true;
  const auto host = [this](NodeId node) {
    return options_.hosts[static_cast<std::size_t>(node.value())];
  };
  return !options_.hosts.empty() && host(a) == host(b);
}

std::size_t SimulatedNet::unread_notes(NodeId from, NodeId to) const {
  const End& e = ends_[static_cast<std::size_t>(to.value())];
  const auto found = e.notes.find(from.value());
  return found == e.notes.end() ? 0 : found->second.size();
}

void SimulatedNet::add_note(NodeId from, NodeId to, std::vector<std::byte> note) {
  End& e = end(to);
  auto& queue = e.notes[from.value()];
  if (queue.empty()) e.senders.push_back(from.value());
  queue.push_back(std::move(note));
  tell_news(to);
}

void SimulatedNet::add_piece(const FlowKey& key, bool is_send, const Piece& piece) {
  Flow& flow = flows_[key];
  (is_send ? flow.sends : flow.receives).push_back(piece);
  if (flow.sends.empty() || flow.receives.empty() || flow.is_movable) return;
  flow.is_movable = true;
  movable_.push_back(key);
}

void SimulatedNet::step() {
  if (movable_.empty()) return;
  const std::size_t chosen = below(movable_.size());
  const FlowKey key = movable_[chosen];
  Flow& flow = flows_.at(key);
  const Piece from = flow.sends.front();
  const Piece to = flow.receives.front();
  flow.sends.pop_front();
  flow.receives.pop_front();
  if (from.bytes != to.bytes && from.bytes != 0) {
    ++defects_;
  } else if (from.bytes != 0) {
    std::memcpy(to.memory, from.memory, from.bytes);
  }
  if (flow.sends.empty() || flow.receives.empty()) {
    flow.is_movable = false;
    movable_[chosen] = movable_.back();
    movable_.pop_back();
  }
  if (flow.sends.empty() && flow.receives.empty()) flows_.erase(key);
  const NodeId sender{std::get<0>(key)};
  const NodeId receiver{std::get<1>(key)};
  end(sender).complete.push_back({receiver, from.id, false});
  end(receiver).complete.push_back({sender, to.id, from.bytes == 0});
  tell_news(sender);
  tell_news(receiver);
}

void SimulatedNet::poll(NodeId node, Wire::Events& events) {
  End& e = end(node);
  e.read.clear();
  e.read.reserve(2 * e.senders.size());
  std::size_t notes = below(2 * e.senders.size() + 1);
  for (; notes > 0 && !e.senders.empty(); --notes) {
    std::int32_t& from = e.senders[below(e.senders.size())];
    const auto queue = e.notes.find(from);
    const auto& note = e.read.emplace_back(std::move(queue->second.front()));
    events.notes.push_back({NodeId{from}, note});
    queue->second.pop_front();
    if (!queue->second.empty()) continue;
    e.notes.erase(queue);
    from = e.senders.back();
    e.senders.pop_back();
  }
  for (std::size_t tries = below(4); tries > 0 && !e.complete.empty(); --tries) {
    std::swap(e.complete[below(e.complete.size())], e.complete.back());
    const Completion& told = e.complete.back();
    (told.is_blank ? events.blank : events.complete).push_back(told.id);
    e.complete.pop_back();
  }
  // What was sent before comes before.
  bool is_drained = true;
  for (const NodeId lost : e.lost) {
    is_drained = is_drained && !e.notes.contains(lost.value());
  }
  if (!is_drained) return;
  for (const NodeId lost : e.lost) {
    events.lost.push_back(lost);
    std::erase_if(e.complete, [&](const Completion& c) { return c.peer == lost; });
  }
  e.lost.clear();
}

void SimulatedNet::leave(NodeId node) {
  end(node).is_lost = true;
  const auto is_of_it = [&](const FlowKey& key) {
    return std::get<0>(key) == node.value() || std::get<1>(key) == node.value();
  };
  std::erase_if(flows_, [&](const auto& flow) { return is_of_it(flow.first); });
  std::erase_if(movable_, is_of_it);
}

void SimulatedNet::lose(NodeId node) {
  leave(node);
  for (std::size_t other = 0; other < ends_.size(); ++other) {
    if (ends_[other].is_lost) continue;
    ends_[other].lost.push_back(node);
    tell_news(NodeId{static_cast<std::int32_t>(other)});
  }
}

bool SimulatedNet::is_quiet() const {
  for (const End& e : ends_) {
    if (e.is_lost) continue;
    if (!e.complete.empty() || !e.notes.empty()) return false;
  }
  return flows_.empty();
}

}  // namespace heddle::p2p
