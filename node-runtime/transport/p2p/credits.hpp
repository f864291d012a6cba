#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/index.hpp"

namespace heddle::p2p {

/// Flow control of eager messages between one node and its peers. Each node has room of `credits`
/// for each peer, for that peer's small messages that arrive before their receives; a message takes
/// one credit per unit of its bytes. A sender without the credits for a message announces it, as it
/// does with large ones, and its bytes follow when a receive takes it. So no message waits for a
/// credit, and a message with a receive arrives even if earlier ones have none.
///
/// Credits return with the next message to that peer, or by a message of their own when half of
/// them are owed. At most two such messages are in flight between two nodes: the next is due only
/// when half of the credits have been used again, for which the first must have arrived.
///
/// Invariant for each peer, over both nodes: available there + under way to here + held here
/// + owed here + under way back = credits.
///
/// Not thread-safe: the progress thread's.
class Credits {
 public:
  Credits(std::int32_t nodes, std::int32_t credits);

  [[nodiscard]] std::int32_t all() const { return credits_; }

  // ---- as a sender ----------------------------------------------------------------------------
  /// Takes credits for a message to `peer`; false: there are not as many now.
  [[nodiscard]] bool take(NodeId peer, std::int32_t count);
  /// `peer` has given `count` credits back.
  void came_back(NodeId peer, std::int32_t count);
  [[nodiscard]] std::int32_t available(NodeId peer) const { return at(peer).available; }

  // ---- as a receiver --------------------------------------------------------------------------
  /// A message of `peer` has taken room here.
  void room_taken(NodeId peer, std::int32_t count);
  /// The room is free again. True: enough are owed to send them by themselves.
  [[nodiscard]] bool room_freed(NodeId peer, std::int32_t count);
  /// What goes back to `peer` with the next message; nothing is owed then.
  [[nodiscard]] std::int32_t take_owed(NodeId peer);
  [[nodiscard]] std::int32_t held(NodeId peer) const { return at(peer).held; }

 private:
  struct Peer {
    std::int32_t available = 0;
    std::int32_t held = 0;  ///< room here
    std::int32_t owed = 0;
  };
  [[nodiscard]] Peer& at(NodeId peer) { return peers_.at(static_cast<std::size_t>(peer.value())); }
  [[nodiscard]] const Peer& at(NodeId peer) const {
    return peers_.at(static_cast<std::size_t>(peer.value()));
  }

  std::int32_t credits_;
  std::vector<Peer> peers_;
};

}  // namespace heddle::p2p
