#include "node-runtime/transport/p2p/sender.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/core.h>
#include <memory>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "node-runtime/transport/datatype/pack.hpp"

namespace heddle::p2p {

void Sender::start(std::shared_ptr<Send> started) {
  Send& send = *started;
  if (shared_.neighbours.is_lost(send.to)) {
    send.RequestState::fail(
        Error(ErrorCode::communication,
              fmt::format("sending to node {}, which is lost", send.to.value())));
    shared_.requests.end();
    return;
  }
  if (send_eagerly(send.side, send.to, send.tag, send.channel)) {
    send.complete({shared_.wire.node(), send.tag, send.side.bytes, false, Path::eager});
    shared_.requests.end();
    return;
  }
  statistics_.bytes += send.side.bytes;
  sends_.add(std::move(started));
  try {
    announce(send);
  } catch (const Error& error) {  // its memory is gone
    sends_.refused(send, error);
  }
}

void Sender::announce(const Send& send) {
  const Side& side = send.side;
  NoteHeader header;
  header.kind = NoteHeader::Kind::announce;
  header.tag = send.tag;
  header.channel = send.channel.value();
  header.send = send.id;
  header.bytes = side.bytes;
  header.digest = side.digest();
  header.is_contiguous = side.contiguous != nullptr ? 1 : 0;
  if (side.is_host_run()) header.begin = std::bit_cast<std::int64_t>(side.contiguous);
  if (shared_.lanes.count() > 0) shared_.neighbours.introduce(send.to);
  std::optional<MemoryReference> reference;
  if (side.lane) {
    header.device = side.lane->value();
    reference = shared_.neighbours.reference_to(side, send.to);
  } else {
    header.is_locked = is_locked(shared_.lanes, side) ? 1 : 0;
  }
  // Memory that can be neither mapped nor accessed by a device is packed, whatever its loops are.
  const bool is_accessed = reference.has_value() || header.is_locked != 0;
  const auto& loops = side.shape->loops;
  header.has_reference = reference ? 1 : 0;
  header.has_loops = is_accessed && header.is_contiguous == 0 && loops ? 1 : 0;
  const std::size_t loops_at = reference ? sizeof *reference : 0;
  const std::size_t loops_bytes = header.has_loops != 0 ? sizeof *loops : 0;
  const auto room = shared_.notes.begin(send.to, header, loops_at + loops_bytes);
  if (reference) std::ranges::copy(bytes_of(*reference), room.begin());
  if (loops_bytes > 0) std::ranges::copy(bytes_of(*loops), room.subspan(loops_at).begin());
  shared_.notes.finish();
}

bool Sender::send_eagerly(const Side& side, NodeId to, std::int32_t tag, ChannelId channel) {
  if (side.bytes > shared_.options.eager_bytes_max || side.lane) return false;
  Credits& credits = shared_.notes.credits();
  if (!credits.take(to, credits_for(side.bytes))) return false;
  const auto bytes = static_cast<std::size_t>(side.bytes);
  const std::span<std::byte> note = shared_.wire.begin_note(to, sizeof(NoteBegin) + bytes);
  // Written in place: a copy of a header that was just assembled would wait for its stores.
  auto* const header = std::construct_at(reinterpret_cast<NoteBegin*>(note.data()));
  header->kind = NoteHeader::Kind::eager;
  header->credits = credits.take_owed(to);
  header->tag = tag;
  header->channel = channel.value();
  header->bytes = side.bytes;
  header->digest = side.digest();
  const auto payload = note.subspan(sizeof(NoteBegin));
  if (side.contiguous != nullptr && bytes > 0) {
    std::memcpy(payload.data(), side.contiguous, bytes);
  } else {
    pack(*side.shape->plan, side.shape->count, side.memory, {0, side.bytes}, payload.data());
  }
  shared_.wire.send_note();
  statistics_.bytes += side.bytes;
  ++statistics_.sent[static_cast<std::size_t>(Path::eager)];
  return true;
}

void Sender::cancel(std::int64_t id) {
  const std::shared_ptr<Send> found = sends_.find(id);
  if (found == nullptr) return;
  Send& send = *found;
  if (send.is_granted || std::exchange(send.is_withdrawn, true)) return;
  NoteHeader header;
  header.kind = NoteHeader::Kind::withdraw;
  header.send = id;
  shared_.notes.send(send.to, header);
}

void Sender::answered(const NoteHeader& header, std::span<const std::byte> payload) {
  const std::shared_ptr<Send> found = sends_.find(header.send);
  HEDDLE_CHECK(found != nullptr, "send {} is answered, but is not under way", header.send);
  Send& send = *found;
  if (header.kind == NoteHeader::Kind::fetched) {
    send.path = Path::get;
    ++statistics_.sent[static_cast<std::size_t>(Path::get)];
    return sends_.end(send);
  }
  if (header.kind == NoteHeader::Kind::refuse) {
    return sends_.refused(
        send, Error(static_cast<ErrorCode>(header.slot), std::string(text_of(payload))));
  }
  sends_.withdrawn(send);
}

// ---- pieces ----------------------------------------------------------------------------------

void Sender::granted(const NoteHeader& header, std::span<const std::byte> payload) {
  const std::shared_ptr<Send> found = sends_.find(header.send);
  HEDDLE_CHECK(found != nullptr, "send {} is granted, but is not under way", header.send);
  Send& send = *found;
  send.is_granted = true;
  send.path = header.path;
  send.peer_receive = header.receive;
  send.flow = FlowId{header.flow};
  send.piece_bytes = header.piece_bytes;
  send.slot_bytes = header.begin;
  if (!reach(send, header, payload)) return;
  ++statistics_.sent[static_cast<std::size_t>(send.path)];
  sends_.begin(send);
}

/// Finds the places that a grant names. False: this node cannot access them, and the receiver has
/// been told to grant another path.
bool Sender::reach(Send& send, const NoteHeader& header, std::span<const std::byte> payload) {
  GrantPlaces places = read_places(header, payload);
  send.slots = std::move(places.slots);
  send.target_loops = places.loops;
  if (places.target) {
    send.next = places.target;
    send.via = lane_for(shared_.lanes, send.side, send.next->handle.device);
  }
  Neighbourhood& neighbours = shared_.neighbours;
  try {
    switch (send.path) {
      case Path::shared:
        send.target = {shared_.wire.window_of(send.to).data(), nullptr};
        if (send.side.lane) shared_.slots.reach_window(send.to);
        break;
      case Path::ring: {
        const auto device = static_cast<std::size_t>(header.device);
        const MemoryReference& ring = neighbours.of(send.to).devices.at(device).ring;
        send.via = lane_for(shared_.lanes, send.side, ring.handle.device);
        send.target = neighbours.map(send.to, send.via, ring, send.mapping);
        break;
      }
      case Path::put:
        send.target = neighbours.map(send.to, send.via, *std::exchange(send.next, std::nullopt),
                                     send.mapping);
        break;
      case Path::message:
        break;
      case Path::eager:
      case Path::get:
        HEDDLE_CHECK(false, "a grant of path {}", name_of(send.path));
    }
    return true;
  } catch (const Error& error) {
    send.is_granted = false;
    send.next.reset();
    NoteHeader answer;
    answer.kind = NoteHeader::Kind::decline;
    answer.receive = send.peer_receive;
    answer.device = send.side.lane ? send.side.lane->value() : -1;
    shared_.notes.send(send.to, answer, bytes_of(std::string_view(error.what())));
    return false;
  }
}

}  // namespace heddle::p2p
