#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "node-runtime/transport/p2p/credits.hpp"
#include "node-runtime/transport/p2p/note.hpp"
#include "node-runtime/transport/p2p/wire.hpp"

namespace heddle::p2p {

/// Writes notes to other nodes; each takes along the credits that its receiver is owed.
///
/// Thread: the progress thread only.
class Notes {
 public:
  Notes(Wire& wire, Credits& credits) : wire_(wire), credits_(credits) {}

  /// Writes the header of a note; the room for what follows it. finish() comes next.
  [[nodiscard]] std::span<std::byte> begin(NodeId to, NoteHeader header,
                                           std::size_t payload_bytes) {
    header.credits = credits_.take_owed(to);
    const std::span<std::byte> note = wire_.begin_note(to, sizeof header + payload_bytes);
    std::memcpy(note.data(), &header, sizeof header);
    return note.subspan(sizeof header);
  }
  void finish() { wire_.send_note(); }

  void send(NodeId to, const NoteHeader& header, std::span<const std::byte> payload = {}) {
    const auto room = begin(to, header, payload.size());
    if (!payload.empty()) std::memcpy(room.data(), payload.data(), payload.size());
    finish();
  }

  [[nodiscard]] Credits& credits() { return credits_; }

 private:
  Wire& wire_;
  Credits& credits_;
};

/// Bytes that one credit stands for.
inline constexpr std::int64_t credit_bytes = 64;
/// The credits that an eager message of `bytes` takes, with what is kept of it beside them.
[[nodiscard]] inline std::int32_t credits_for(std::int64_t bytes) {
  return static_cast<std::int32_t>(1 + (bytes + credit_bytes - 1) / credit_bytes);
}

}  // namespace heddle::p2p
