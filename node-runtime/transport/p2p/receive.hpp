#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/transport/p2p/lanes.hpp"
#include "node-runtime/transport/p2p/mappings.hpp"
#include "node-runtime/transport/p2p/matching.hpp"
#include "node-runtime/transport/p2p/note_payloads.hpp"
#include "node-runtime/transport/p2p/path_decision.hpp"
#include "node-runtime/transport/p2p/request.hpp"
#include "node-runtime/transport/p2p/side.hpp"
#include "node-runtime/transport/p2p/staging.hpp"
#include "node-runtime/transport/p2p/wire.hpp"

namespace heddle::p2p {

/// A note about an expected message that came before the wire's last piece.
struct EarlyNote {
  NoteHeader header;
  std::vector<std::byte> payload;
};

/// A message that is being received, or room for one. Invariants: Receives.
struct Receive : RequestState {
  using RequestState::RequestState;

  std::int64_t id = 0;
  Side side;
  Pattern pattern;
  bool is_expected = false;  ///< its sender knows of it; `envelope` and `bytes` are set
  std::optional<EarlyNote> early;
  bool is_taken = false;  ///< it has a message; the members below describe it
  Envelope envelope;
  Announcement announcement;       ///< of an eager message, only the header
  std::vector<std::byte> payload;  ///< of an eager message that waits for a slot
  std::int64_t bytes = 0;
  std::unique_ptr<const PathChoice> choice;  ///< only where messages are reported
  bool maps_source = false;  ///< for the next message: only a mapping was missing for get
  bool maps_target = false;  ///< likewise for put
  Path path = Path::message;
  PathPlan plan;
  FlowId flow;
  bool has_flow = false;
  std::int64_t posted = 0;  ///< bytes that have places: memory, or slots that the sender may fill
  std::int64_t done = 0;    ///< bytes that have come
  std::int64_t prefix = 0;  ///< expected: of these the first ones without a gap
  std::vector<StreamRange> beyond_gap;  ///< pieces behind those
  std::int64_t pieces = 0;              ///< that have come
  std::int32_t in_flight = 0;
  std::vector<Staging::Slot> slots;  ///< free ones that it holds
  std::vector<Staging::Slot> given;  ///< those that the sender may fill
  std::shared_ptr<const Mappings::Use> mapping;
  LaneId via;                   ///< reads `from`, or has the ring's slots
  Spot from;                    ///< get: the sender's memory
  std::optional<Error> broken;  ///< why it fails in the end
  bool is_cut = false;          ///< no further piece arrives from the sender
  bool has_word = false;        ///< the sender has reported whether packing succeeded
  std::int64_t begun_ns = 0;    ///< only where messages are reported
};

}  // namespace heddle::p2p
