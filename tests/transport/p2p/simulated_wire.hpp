#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "node-runtime/transport/p2p/host_pages.hpp"
#include "node-runtime/transport/p2p/wire.hpp"

namespace heddle::p2p {

/// Nodes in one process whose wires deliver when a seed says so: notes of one node in order, those
/// of different nodes in any; pieces when both sides have posted them, told to each side at any
/// time later.
class SimulatedNet {
 public:
  /// A node with as many unread notes of another one is behind it (Wire::is_behind).
  static constexpr std::size_t unread_notes_max = 6;

  struct Options {
    std::size_t window_bytes = 0;  ///< of each node; 0: they share no host memory
    bool is_one_host = false;
    /// The host of each node; empty: all nodes are on one, or each on its own.
    std::vector<std::int32_t> hosts{};
    bool reads = false;  ///< nodes of a host read each other's memory
    std::int64_t reads_max = std::numeric_limits<std::int64_t>::max();  ///< then it is refused
    /// Called when poll() of a node has something to tell; may be null.
    std::function<void(NodeId)> news{};
  };
  SimulatedNet(std::int32_t nodes, std::uint64_t seed, const Options& options);

  [[nodiscard]] Wire& wire(NodeId node) { return *wires_[static_cast<std::size_t>(node.value())]; }
  /// Moves a piece, if there is one that can be.
  void step();
  /// The node's program ends: nothing is copied to or from its memory any more.
  void leave(NodeId node);
  /// It leaves, and the others hear of it.
  void lose(NodeId node);
  /// Of one node's memory by another; those behind are refused.
  void allow_reads(std::int64_t count) { reads_left_ = count; }
  /// Nothing is under way.
  [[nodiscard]] bool is_quiet() const;
  /// step() moves a piece.
  [[nodiscard]] bool can_step() const { return !movable_.empty(); }
  /// poll() of the node has something to tell, now or when it is asked again.
  [[nodiscard]] bool has_news(NodeId node) const {
    const End& e = ends_[static_cast<std::size_t>(node.value())];
    return !e.senders.empty() || !e.complete.empty() || !e.lost.empty();
  }
  /// Pieces whose sizes differed, or that were sent to nobody.
  [[nodiscard]] int defects() const { return defects_; }

 private:
  friend class SimulatedWire;
  struct Piece {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    OperationId id;
  };
  struct Flow {
    std::deque<Piece> sends;
    std::deque<Piece> receives;
    bool is_movable = false;  ///< it is in movable_
  };
  using FlowKey = std::tuple<std::int32_t, std::int32_t, std::int32_t>;  ///< from, to, flow
  struct Completion {
    NodeId peer;
    OperationId id;
    bool is_blank = false;
  };
  struct End {
    explicit End(HostPages pages) : window(std::move(pages)) {}
    std::map<std::int32_t, std::deque<std::vector<std::byte>>> notes;  ///< by sender, who has some
    std::vector<std::int32_t> senders;         ///< those of notes, in any order
    std::vector<std::vector<std::byte>> read;  ///< notes that were handed out
    std::vector<Completion> complete;
    std::vector<NodeId> lost;
    bool is_lost = false;
    HostPages window;
  };

  [[nodiscard]] End& end(NodeId node) { return ends_[static_cast<std::size_t>(node.value())]; }
  [[nodiscard]] std::size_t below(std::size_t bound) { return random_() % bound; }
  [[nodiscard]] bool are_on_one_host(NodeId a, NodeId b) const;
  [[nodiscard]] std::size_t unread_notes(NodeId from, NodeId to) const;
  void poll(NodeId node, Wire::Events& events);
  void add_note(NodeId from, NodeId to, std::vector<std::byte> note);
  void add_piece(const FlowKey& key, bool is_send, const Piece& piece);
  void tell_news(NodeId node) const {
    if (options_.news) options_.news(node);
  }

  Options options_;
  std::mt19937_64 random_;
  std::int64_t reads_left_;
  std::vector<End> ends_;
  std::map<FlowKey, Flow> flows_;
  std::vector<FlowKey> movable_;  ///< both sides have posted a piece
  std::vector<std::unique_ptr<Wire>> wires_;
  int defects_ = 0;
};

}  // namespace heddle::p2p
