#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/transport/datatype/pack.hpp"
#include "node-runtime/transport/p2p/lanes.hpp"
#include "node-runtime/transport/p2p/mappings.hpp"
#include "node-runtime/transport/p2p/matching.hpp"
#include "node-runtime/transport/p2p/request.hpp"
#include "node-runtime/transport/p2p/side.hpp"
#include "node-runtime/transport/p2p/staging.hpp"
#include "node-runtime/transport/p2p/wire.hpp"

namespace heddle::p2p {

/// A piece in an out slot that is not on the wire yet.
struct Packing {
  StreamRange range;
  Staging::Slot slot = 0;
  bool is_packed = false;
};

/// A message that is being sent. Invariants: Sender.
struct Send : RequestState {
  using RequestState::RequestState;

  std::int64_t id = 0;
  Side side;
  NodeId to;
  std::int32_t tag = 0;
  ChannelId channel;
  bool is_granted = false;  ///< its places are known
  bool is_posted = false;   ///< its pieces were posted beforehand: an empty one says that it fails
  bool is_withdrawn = false;  ///< the receiver was asked to forget it
  Path path = Path::message;
  std::int64_t peer_receive = 0;
  FlowId flow;
  std::int64_t piece_bytes = 0;
  std::int64_t slot_bytes = 0;            ///< from one of the receiver's slots to the next
  std::int64_t missing = 0;               ///< last bytes that are not in memory yet
  std::int64_t posted = 0;                ///< bytes whose pieces have begun
  std::int64_t done = 0;                  ///< bytes whose pieces have ended
  std::int32_t in_flight = 0;             ///< pieces
  std::int32_t copies = 0;                ///< pieces in flight by way of this node's device
  std::vector<Packing> packing;           ///< in the order in which the wire takes them
  std::vector<std::int32_t> slots;        ///< free slots of the receiver
  LaneId via;                             ///< writes to `target`
  Spot target;                            ///< the receiver's slots, or memory
  std::optional<LoopShape> target_loops;  ///< put: of memory that is not contiguous
  std::shared_ptr<const Mappings::Use> mapping;
  std::optional<MemoryReference>
      next;                     ///< the receiver's memory, to be mapped for the next message
  std::optional<Error> broken;  ///< why it fails when no piece is in flight
};

}  // namespace heddle::p2p
