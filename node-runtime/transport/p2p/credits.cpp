#include "node-runtime/transport/p2p/credits.hpp"

#include <utility>

#include "base/assert.hpp"

namespace heddle::p2p {

Credits::Credits(std::int32_t nodes, std::int32_t credits)
    : credits_(credits), peers_(static_cast<std::size_t>(nodes), Peer{credits, 0, 0}) {
  HEDDLE_CHECK(nodes > 0 && credits > 0, "{} nodes, {} credits", nodes, credits);
}

bool Credits::take(NodeId peer) {
  std::int32_t& available = at(peer).available;
  if (available == 0) return false;
  --available;
  return true;
}

void Credits::came_back(NodeId peer, std::int32_t count) {
  std::int32_t& available = at(peer).available;
  HEDDLE_CHECK(count >= 0 && count <= credits_ - available,
               "node {} gives {} credits back, {} of {} are here", peer.value(), count, available,
               credits_);
  available += count;
}

void Credits::slot_taken(NodeId peer) {
  Peer& p = at(peer);
  HEDDLE_CHECK(p.held + p.owed < credits_, "node {} sends without a credit: {} slots held, {} owed",
               peer.value(), p.held, p.owed);
  ++p.held;
}

bool Credits::slot_freed(NodeId peer) {
  Peer& p = at(peer);
  HEDDLE_CHECK(p.held > 0, "node {} holds no slot", peer.value());
  --p.held;
  ++p.owed;
  return 2 * p.owed >= credits_;
}

std::int32_t Credits::take_owed(NodeId peer) {
  return std::exchange(at(peer).owed, 0);
}

}  // namespace heddle::p2p
