#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "node-runtime/transport/datatype/pack_plan.hpp"
#include "node-runtime/transport/p2p/mappings.hpp"
#include "node-runtime/transport/p2p/note.hpp"
#include "node-runtime/transport/p2p/wire.hpp"

namespace heddle::p2p {

/// NoteHeader::Kind::announce, read.
struct Announcement {
  NoteHeader header;
  std::optional<MemoryReference> source;  ///< the sender's memory
  std::optional<LoopShape> loops;         ///< of memory that is not contiguous
};
[[nodiscard]] Announcement read_announcement(const NoteHeader& header,
                                             std::span<const std::byte> payload);

/// NoteHeader::Kind::expect, read: room of another node for one message of this one.
struct Room {
  NoteHeader header;
  std::optional<MemoryReference> memory;  ///< the receiver's
  std::optional<LoopShape> loops;         ///< of memory that is not contiguous

  /// Its memory is known already; otherwise the message is announced first.
  [[nodiscard]] bool has_memory() const { return header.receive != 0; }
  /// Pieces of `header.piece_bytes` that the receiver has posted under `header.flow`.
  [[nodiscard]] std::int32_t posted_pieces() const { return header.slot; }
};
struct ReadRoom {
  Room room;
  std::span<const std::byte> word;  ///< of the sender's program
};
[[nodiscard]] ReadRoom read_room(const NoteHeader& header, std::span<const std::byte> payload);

/// What follows the header of NoteHeader::Kind::grant.
struct GrantPlaces {
  std::vector<std::int32_t> slots;        ///< of the receiver, to be filled
  std::optional<MemoryReference> target;  ///< put: the receiver's memory; else for the next message
  std::optional<LoopShape> loops;         ///< put: of memory that is not contiguous
};
/// Writes the places behind `header`, and their numbers into it.
[[nodiscard]] std::vector<std::byte> write_places(const GrantPlaces& places, NoteHeader& header);
[[nodiscard]] GrantPlaces read_places(const NoteHeader& header, std::span<const std::byte> payload);

/// One device in NoteHeader::Kind::introduce.
struct DeviceIntroduction {
  DeviceUuid device;
  MemoryReference ring;  ///< its slots; meaningless where there are none, as none are granted
};

/// What follows the header of NoteHeader::Kind::release and released: an allocation.
struct ReleasedMemory {
  DeviceUuid device;
  std::uint64_t allocation = 0;
};

}  // namespace heddle::p2p
