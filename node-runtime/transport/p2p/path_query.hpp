#pragma once

#include <optional>

#include "node-runtime/transport/p2p/path_decision.hpp"
#include "node-runtime/transport/p2p/receive.hpp"
#include "node-runtime/transport/p2p/send.hpp"
#include "node-runtime/transport/p2p/shared_parts.hpp"

namespace heddle::p2p {

/// The query for a receive that has taken an announced message, from what this node knows of both
/// sides, of the sender's node and of mappings. Throws Error when the receive's memory is gone.
[[nodiscard]] PathQuery make_path_query(const SharedParts& shared, const Receive& receive);

/// The query for a message that is expected, as its sender sees it: what it knows of both sides. Of
/// this node's memory it takes for granted that the receiver can map it. Throws Error when the
/// memory is gone.
[[nodiscard]] PathQuery make_handover_query(const SharedParts& shared, const Send& send,
                                            const Room& room);

/// The GPU at which a message between a device and the host, or between devices, comes by a ring:
/// the receiver's, or the sender's where the receiver is on the host. Nothing while that is
/// unknown.
[[nodiscard]] std::optional<DeviceUuid> device_between(const SharedParts& shared,
                                                       const Receive& receive);

/// The devices of a message's two sides.
[[nodiscard]] inline DevicePair devices_of(const Receive& receive) {
  return {receive.announcement.header.device, receive.side.lane ? receive.side.lane->value() : -1};
}

}  // namespace heddle::p2p
