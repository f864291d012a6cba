#pragma once

#include "node-runtime/transport/p2p/endpoint_options.hpp"
#include "node-runtime/transport/p2p/lanes.hpp"
#include "node-runtime/transport/p2p/neighbourhood.hpp"
#include "node-runtime/transport/p2p/notes.hpp"
#include "node-runtime/transport/p2p/pieces.hpp"
#include "node-runtime/transport/p2p/requests.hpp"
#include "node-runtime/transport/p2p/slots.hpp"
#include "node-runtime/transport/p2p/wire.hpp"

namespace heddle::p2p {

/// What the sender and the receiver of an endpoint both work with. They own none of it.
struct SharedParts {
  const EndpointOptions& options;
  Wire& wire;
  Notes& notes;
  Lanes& lanes;
  Slots& slots;
  Neighbourhood& neighbours;
  Pieces& pieces;
  Requests& requests;
};

/// Pieces of a message between contiguous memories that are on the wire at a time.
inline constexpr std::int32_t direct_pieces = 4;

}  // namespace heddle::p2p
