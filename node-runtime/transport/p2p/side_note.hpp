#pragma once

#include <cstddef>
#include <span>

#include "node-runtime/transport/p2p/note.hpp"
#include "node-runtime/transport/p2p/shared_parts.hpp"
#include "node-runtime/transport/p2p/side.hpp"

namespace heddle::p2p {

/// Sends a note that describes the memory of one side (NoteHeader::Kind::announce, expect), after
/// this node's devices have been introduced: adds what `header` says of the memory, its reference
/// and its loops where the other node's devices may access it, and `word`. Throws Error when the
/// memory is gone.
void send_side_note(const SharedParts& shared, NodeId to, NoteHeader header, const Side& side,
                    std::span<const std::byte> word = {});

}  // namespace heddle::p2p
