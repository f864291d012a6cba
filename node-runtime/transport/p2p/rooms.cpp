#include "node-runtime/transport/p2p/rooms.hpp"

#include <utility>
#include <vector>

#include "base/assert.hpp"

namespace heddle::p2p {

std::size_t RoomKey::Hash::operator()(const RoomKey& key) const {
  std::uint64_t h = std::uint64_t{static_cast<std::uint32_t>(key.tag)} |
                    std::uint64_t{static_cast<std::uint32_t>(key.peer.value())} << 32;
  h = (h ^ static_cast<std::uint32_t>(key.channel)) * 0x9E3779B97F4A7C15ULL;
  h = (h ^ (h >> 29)) * 0xD6E8FEB86659FD93ULL;
  return static_cast<std::size_t>(h ^ (h >> 32));
}

void Rooms::add(const RoomKey& key, const Room& room) {
  HEDDLE_CHECK(!has(key), "node {} expects two messages with tag {} at a time", key.peer.value(),
               key.tag);
  rooms_[key] = room;
}

Room Rooms::take(const RoomKey& key) {
  Room* const found = rooms_.find(key);
  HEDDLE_CHECK(found != nullptr, "node {} expects no message with tag {}", key.peer.value(),
               key.tag);
  Room room = std::move(*found);
  rooms_.erase(key);
  return room;
}

void Rooms::drop(NodeId peer) {
  std::vector<RoomKey> dropped;
  rooms_.for_each([&](const RoomKey& key, const Room&) {
    if (key.peer == peer) dropped.push_back(key);
  });
  for (const RoomKey& key : dropped) rooms_.erase(key);
}

}  // namespace heddle::p2p
