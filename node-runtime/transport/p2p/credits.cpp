#include "node-runtime/transport/p2p/credits.hpp"

#include <utility>

#include "base/assert.hpp"

namespace heddle::p2p {

Credits::Credits(std::int32_t nodes, std::int32_t credits)
    : credits_(credits), peers_(static_cast<std::size_t>(nodes), Peer{credits, 0, 0}) {
  HEDDLE_CHECK(nodes > 0 && credits > 0, "{} nodes, {} credits", nodes, credits);
}

bool Credits::take(NodeId peer, std::int32_t count) {
  std::int32_t& available = at(peer).available;
  if (available < count) return false;
  available -= count;
  return true;
}

void Credits::came_back(NodeId peer, std::int32_t count) {
  std::int32_t& available = at(peer).available;
  HEDDLE_CHECK(count >= 0 && count <= credits_ - available,
               "node {} gives {} credits back, {} of {} are here", peer.value(), count, available,
               credits_);
  available += count;
}

void Credits::room_taken(NodeId peer, std::int32_t count) {
  Peer& p = at(peer);
  HEDDLE_CHECK(count > 0 && count <= credits_ - p.held - p.owed,
               "node {} sends without credits: {} more where {} are held and {} owed of {}",
               peer.value(), count, p.held, p.owed, credits_);
  p.held += count;
}

bool Credits::room_freed(NodeId peer, std::int32_t count) {
  Peer& p = at(peer);
  HEDDLE_CHECK(count <= p.held, "node {} holds {}, not {}", peer.value(), p.held, count);
  p.held -= count;
  p.owed += count;
  return 2 * p.owed >= credits_;
}

std::int32_t Credits::take_owed(NodeId peer) {
  return std::exchange(at(peer).owed, 0);
}

}  // namespace heddle::p2p
