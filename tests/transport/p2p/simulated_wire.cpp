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
    return other == node_ || net_.options_.is_one_host;
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
    net_.end(to).notes[static_cast<std::size_t>(node_.value())].push_back(std::move(note_));
  }
  void send_bytes(NodeId to, FlowId flow, std::span<const std::byte> bytes,
                  OperationId id) override {
    if (net_.end(to).is_lost || net_.end(node_).is_lost) return;
    if (bytes.empty()) ++net_.defects_;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): only read
    auto* const memory = const_cast<std::byte*>(bytes.data());
    net_.flows_[{node_.value(), to.value(), flow.value()}].sends.push_back(
        {memory, bytes.size(), id});
  }
  void receive_bytes(NodeId from, FlowId flow, std::span<std::byte> into, OperationId id) override {
    if (net_.end(from).is_lost || net_.end(node_).is_lost) return;
    net_.flows_[{from.value(), node_.value(), flow.value()}].receives.push_back(
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
    End& added = ends_.emplace_back(HostPages(options.window_bytes));
    added.notes.resize(static_cast<std::size_t>(nodes));
  }
  for (std::int32_t node = 0; node < nodes; ++node) {
    wires_.push_back(std::make_unique<SimulatedWire>(*this, NodeId{node}));
  }
}

void SimulatedNet::step() {
  if (flows_.empty()) return;
  auto at = std::next(flows_.begin(), static_cast<std::ptrdiff_t>(below(flows_.size())));
  Flow& flow = at->second;
  if (!flow.sends.empty() && !flow.receives.empty()) {
    const Piece from = flow.sends.front();
    const Piece to = flow.receives.front();
    flow.sends.pop_front();
    flow.receives.pop_front();
    if (from.bytes != to.bytes) {
      ++defects_;
    } else {
      std::memcpy(to.memory, from.memory, from.bytes);
    }
    const NodeId sender{std::get<0>(at->first)};
    const NodeId receiver{std::get<1>(at->first)};
    end(sender).complete.push_back({receiver, from.id});
    end(receiver).complete.push_back({sender, to.id});
  }
  if (flow.sends.empty() && flow.receives.empty()) flows_.erase(at);
}

void SimulatedNet::poll(NodeId node, Wire::Events& events) {
  End& e = end(node);
  e.read.clear();
  e.read.reserve(2 * ends_.size());
  for (std::size_t tries = below(2 * ends_.size() + 1); tries > 0; --tries) {
    const std::size_t from = below(ends_.size());
    if (e.notes[from].empty()) continue;
    const auto& note = e.read.emplace_back(std::move(e.notes[from].front()));
    events.notes.push_back({NodeId{static_cast<std::int32_t>(from)}, note});
    e.notes[from].pop_front();
  }
  for (std::size_t tries = below(4); tries > 0 && !e.complete.empty(); --tries) {
    std::swap(e.complete[below(e.complete.size())], e.complete.back());
    events.complete.push_back(e.complete.back().id);
    e.complete.pop_back();
  }
  // What was sent before comes before.
  bool is_drained = true;
  for (const NodeId lost : e.lost) {
    is_drained = is_drained && e.notes[static_cast<std::size_t>(lost.value())].empty();
  }
  if (!is_drained) return;
  for (const NodeId lost : e.lost) {
    events.lost.push_back(lost);
    std::erase_if(e.complete, [&](const Completion& c) { return c.peer == lost; });
  }
  e.lost.clear();
}

void SimulatedNet::lose(NodeId node) {
  end(node).is_lost = true;
  for (End& other : ends_) {
    if (!other.is_lost) other.lost.push_back(node);
  }
  std::erase_if(flows_, [&](const auto& flow) {
    return std::get<0>(flow.first) == node.value() || std::get<1>(flow.first) == node.value();
  });
}

bool SimulatedNet::is_quiet() const {
  for (const End& e : ends_) {
    if (e.is_lost) continue;
    if (!e.complete.empty()) return false;
    for (const auto& notes : e.notes) {
      if (!notes.empty()) return false;
    }
  }
  return flows_.empty();
}

}  // namespace heddle::p2p
