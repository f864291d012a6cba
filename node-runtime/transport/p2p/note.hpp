#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/assert.hpp"
#include "node-runtime/transport/p2p/path.hpp"

namespace heddle::p2p {

/// The beginning of every note of endpoints, and the whole header of an eager one: with a message
/// of one number it fits a cache line. Nodes are alike (one binary, little-endian), so it travels
/// as it lies in memory.
struct NoteBegin {
  enum class Kind : std::uint8_t {
    introduce,  ///< the sender's devices follow (DeviceIntroduction); before anything else
    eager,      ///< a whole message; its packed bytes follow
    announce,   ///< a message, for the room `receive` if it is not 0; where its memory may be
                ///< mapped, a MemoryReference follows, and its LoopShape where it is not contiguous
                ///< and devices reach it
    expect,    ///< room for one message: its `tag`, `channel`, `bytes` and `digest`, the receiver's
               ///< memory, `receive`, and the `flow` with `slot` posted pieces of `piece_bytes`; a
               ///< MemoryReference and a LoopShape follow as behind `announce`, then a word for the
               ///< sender's program. `receive` 0: the room comes when it is announced
    deliver,   ///< a whole message into the room `receive`; its packed bytes follow
    word,      ///< a word of the sender's program for the receiver's follows
    grant,     ///< bring the bytes of `send` by `path`, in pieces of `piece_bytes`. `shared` and
               ///< `ring`: slots follow; `put`: a MemoryReference, which `has_reference` also
               ///< announces behind slots, for the next message, and the receiver's LoopShape
               ///< where it is not contiguous; `ring`: `device` is where the slots are
    decline,   ///< the grant to `receive` cannot be followed; why follows as text
    filled,    ///< `bytes` from `begin` on have been written for `receive`, into `slot`; `message`:
               ///< all pieces that were sent are valid
    slot,      ///< `slot` may be filled with the next piece of `send`
    fetched,   ///< the bytes of `send` have been read
    refuse,    ///< `send` cannot be received; an ErrorCode in `slot`, why follows as text
    broken,    ///< the sender of `receive` has failed; an ErrorCode in `slot`, why follows as text
    withdraw,  ///< forget the announcement of `send`, unless a receive has taken it
    withdrawn,  ///< it is forgotten
    release,    ///< the allocation named behind it (ReleasedMemory) is to be closed
    released,   ///< it is; the same follows
    goodbye,    ///< all mappings of the receiver's memory are closed
    credits,    ///< only what `credits` says
  };

  Kind kind = Kind::credits;
  Path path = Path::message;
  /// announce, expect: the memory of the note's sender needs no packing
  std::uint8_t is_contiguous = 0;
  std::uint8_t is_locked = 0;  ///< likewise: it is host memory that devices access
  std::int32_t credits = 0;    ///< given back with this note
  std::int32_t tag = 0;
  std::int32_t channel = 0;
  std::int64_t bytes = 0;    ///< of the message, or of a piece
  std::uint64_t digest = 0;  ///< of its signature, and its seal
};

/// A note's header; in some notes bytes follow it.
struct NoteHeader : NoteBegin {
  std::int64_t send = 0;         ///< the sender's number for the message
  std::int64_t receive = 0;      ///< the receiver's
  std::int64_t piece_bytes = 0;  ///< all pieces but the last one
  /// First byte of a piece; grant: bytes from slot to slot; announce: where contiguous host memory
  /// of the sender's is.
  std::int64_t begin = 0;
  std::int32_t flow = 0;
  std::int32_t slot = 0;     ///< expect: number of pieces that are posted
  std::int32_t device = -1;  ///< of the memory of the note's sender; -1: on the host
  std::int16_t has_reference = 0;
  std::int16_t has_loops = 0;  ///< a LoopShape follows, behind the reference

  /// Bytes of it that travel.
  [[nodiscard]] static constexpr std::size_t size_of(Kind kind) {
    return kind == Kind::eager ? sizeof(NoteBegin) : sizeof(NoteHeader);
  }
};
static_assert(std::is_trivially_copyable_v<NoteHeader> && sizeof(NoteBegin) == 32 &&
              sizeof(NoteHeader) == 80 && std::has_unique_object_representations_v<NoteHeader>);

// ---- what follows the header -----------------------------------------------------------------

[[nodiscard]] inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
[[nodiscard]] inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
template <class Plain>
requires std::is_trivially_copyable_v<Plain>
[[nodiscard]] std::span<const std::byte> bytes_of(const Plain& value) {
  return std::as_bytes(std::span(&value, 1));
}
/// The value at `bytes`, from byte `at` on.
template <class Plain>
requires std::is_trivially_copyable_v<Plain>
[[nodiscard]] Plain read(std::span<const std::byte> bytes, std::size_t at = 0) {
  HEDDLE_CHECK(at <= bytes.size() && sizeof(Plain) <= bytes.size() - at,
               "a note of {} bytes lacks {} from byte {} on", bytes.size(), sizeof(Plain), at);
  Plain value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace heddle::p2p
