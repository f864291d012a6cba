#include "node-runtime/transport/p2p/note_payloads.hpp"

namespace heddle::p2p {

Announcement read_announcement(const NoteHeader& header, std::span<const std::byte> payload) {
  Announcement announcement{header, std::nullopt, std::nullopt};
  const std::size_t loops_at = header.has_reference != 0 ? sizeof(MemoryReference) : 0;
  if (header.has_reference != 0) announcement.source = read<MemoryReference>(payload);
  if (header.has_loops != 0) announcement.loops = read<LoopShape>(payload, loops_at);
  return announcement;
}

ReadRoom read_room(const NoteHeader& header, std::span<const std::byte> payload) {
  Announcement said = read_announcement(header, payload);
  const std::size_t word_at =
      (said.source ? sizeof(MemoryReference) : 0) + (said.loops ? sizeof(LoopShape) : 0);
  return {{header, said.source, said.loops}, payload.subspan(word_at)};
}

std::vector<std::byte> write_places(const GrantPlaces& places, NoteHeader& header) {
  std::vector<std::byte> payload;
  const auto append = [&](const auto& value) {
    const auto bytes = bytes_of(value);
    payload.insert(payload.end(), bytes.begin(), bytes.end());
  };
  header.slot = static_cast<std::int32_t>(places.slots.size());
  for (const std::int32_t slot : places.slots) append(slot);
  if (places.target) {
    header.has_reference = 1;
    append(*places.target);
  }
  if (places.loops) {
    header.has_loops = 1;
    append(*places.loops);
  }
  return payload;
}

GrantPlaces read_places(const NoteHeader& header, std::span<const std::byte> payload) {
  GrantPlaces places;
  std::size_t at = 0;
  for (std::int32_t i = 0; i < header.slot; ++i, at += sizeof(std::int32_t)) {
    places.slots.push_back(read<std::int32_t>(payload, at));
  }
  if (header.has_reference != 0) {
    places.target = read<MemoryReference>(payload, at);
    at += sizeof(MemoryReference);
  }
  if (header.has_loops != 0) places.loops = read<LoopShape>(payload, at);
  return places;
}

}  // namespace heddle::p2p
