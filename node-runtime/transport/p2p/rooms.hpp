#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/flat_map.hpp"
#include "base/index.hpp"
#include "node-runtime/transport/p2p/note_payloads.hpp"

namespace heddle::p2p {

/// Names an expected message between this node and `peer`, while it is expected.
struct RoomKey {
  NodeId peer;
  std::int32_t channel = 0;
  std::int32_t tag = 0;
  friend bool operator==(const RoomKey&, const RoomKey&) = default;

  struct Hash {
    std::size_t operator()(const RoomKey& key) const;
  };
};

/// The room that other nodes have for messages of this one, as they have told it; each serves one
/// message.
///
/// Bound: the receives that the other nodes have posted.
///
/// Thread: the progress thread only.
class Rooms {
 public:
  void add(const RoomKey& key, const Room& room);
  [[nodiscard]] bool has(const RoomKey& key) { return rooms_.find(key) != nullptr; }
  /// Null: there is none.
  [[nodiscard]] const Room* find(const RoomKey& key) { return rooms_.find(key); }
  /// There is one.
  [[nodiscard]] Room take(const RoomKey& key);
  /// The node is lost.
  void drop(NodeId peer);
  [[nodiscard]] std::size_t size() const { return rooms_.size(); }

 private:
  FlatMap<RoomKey, Room, RoomKey::Hash> rooms_;
};

}  // namespace heddle::p2p
