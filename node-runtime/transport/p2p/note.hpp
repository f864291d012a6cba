#pragma once

#include <cstdint>
#include <type_traits>

namespace heddle::p2p {

/// What endpoints say to each other: a header of this form and, in some notes, bytes behind it.
/// Nodes are alike (one binary, little-endian), so it travels as it lies in memory.
struct NoteHeader {
  enum class Kind : std::uint8_t {
    eager,      ///< a whole message; its packed bytes follow
    announce,   ///< a message whose bytes the receiver is to ask for
    grant,      ///< send the bytes of `send` to `flow`, in pieces of `piece_bytes`
    refuse,     ///< `send` cannot be received; why follows as text
    withdraw,   ///< forget the announcement of `send`, unless a receive has taken it
    withdrawn,  ///< it is forgotten
    credits,    ///< only what `credits` says
  };

  Kind kind = Kind::credits;
  std::uint8_t is_contiguous = 0;  ///< announce: 1: the sender's memory needs no packing
  std::uint16_t reserved = 0;
  std::int32_t credits = 0;  ///< given back with this note
  std::int32_t tag = 0;
  std::int32_t channel = 0;
  std::int64_t send = 0;         ///< the sender's number for the message
  std::int64_t bytes = 0;        ///< of the message
  std::uint64_t digest = 0;      ///< of its signature
  std::int64_t piece_bytes = 0;  ///< all pieces but the last one
  std::int32_t flow = 0;
  std::int32_t reserved_2 = 0;
};
static_assert(std::is_trivially_copyable_v<NoteHeader> && sizeof(NoteHeader) == 56 &&
              std::has_unique_object_representations_v<NoteHeader>);

}  // namespace heddle::p2p
