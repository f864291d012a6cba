#include "node-runtime/transport/p2p/side_note.hpp"

#include <algorithm>
#include <optional>

namespace heddle::p2p {

void send_side_note(const SharedParts& shared, NodeId to, NoteHeader header, const Side& side,
                    std::span<const std::byte> word) {
  header.bytes = side.bytes;
  header.digest = side.digest();
  header.is_contiguous = side.contiguous != nullptr ? 1 : 0;
  if (shared.lanes.count() > 0) shared.neighbours.introduce(to);
  std::optional<MemoryReference> reference;
  if (side.lane) {
    header.device = side.lane->value();
    reference = shared.neighbours.reference_to(side, to);
  } else {
    header.is_locked = is_locked(shared.lanes, side) ? 1 : 0;
  }
  // Memory that can be neither mapped nor accessed by a device is packed, whatever its loops are.
  const bool is_accessed = reference.has_value() || header.is_locked != 0;
  const auto& loops = side.shape->loops;
  header.has_reference = reference ? 1 : 0;
  header.has_loops = is_accessed && header.is_contiguous == 0 && loops ? 1 : 0;
  const std::size_t loops_at = reference ? sizeof *reference : 0;
  const std::size_t word_at = loops_at + (header.has_loops != 0 ? sizeof *loops : 0);
  const auto room = shared.notes.begin(to, header, word_at + word.size());
  if (reference) std::ranges::copy(bytes_of(*reference), room.begin());
  if (header.has_loops != 0) {
    std::ranges::copy(bytes_of(*loops), room.subspan(loops_at).begin());
  }
  std::ranges::copy(word, room.subspan(word_at).begin());
  shared.notes.finish();
}

}  // namespace heddle::p2p
