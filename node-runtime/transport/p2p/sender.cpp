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
#include "node-runtime/transport/p2p/path_query.hpp"
#include "node-runtime/transport/p2p/side_note.hpp"

namespace heddle::p2p {
namespace {

Error to_lost(NodeId node) {
  return {ErrorCode::communication, fmt::format("sending to node {}, which is lost", node.value())};
}

/// The bytes of a message, as they travel.
void pack_all(const Side& side, std::byte* into) {
  if (side.bytes == 0) return;
  if (side.contiguous != nullptr) {
    std::memcpy(into, side.contiguous, static_cast<std::size_t>(side.bytes));
  } else {
    pack(*side.shape->plan, side.shape->count, side.memory, {0, side.bytes}, into);
  }
}

}  // namespace

void Sender::start(std::shared_ptr<Send> started) {
  Send& send = *started;
  if (shared_.neighbours.is_lost(send.to)) return fail_at_once(send, to_lost(send.to));
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

void Sender::fail_at_once(Send& send, const Error& why) {
  send.RequestState::fail(why);
  shared_.requests.end();
}

// ---- expected messages -----------------------------------------------------------------------

std::span<const std::byte> Sender::expected(NodeId from, const NoteHeader& header,
                                            std::span<const std::byte> payload) {
  const auto [room, word] = read_room(header, payload);
  rooms_.add({from, header.channel, header.tag}, room);
  return word;
}

void Sender::start_expected(std::shared_ptr<Send> started) {
  Send& send = *started;
  if (shared_.neighbours.is_lost(send.to)) return fail_at_once(send, to_lost(send.to));
  const Room room = rooms_.take({send.to, send.channel.value(), send.tag});
  if (!room.has_memory()) return start(std::move(started));
  send.peer_receive = room.header.receive;
  if (const auto why = mismatch(send, room)) {
    const Error error(ErrorCode::usage, *why);
    sends_.send_blanks(send.to, room);
    sends_.tell_broken(send.to, send.peer_receive, error);
    return fail_at_once(send, error);
  }
  const Handover choice = handover(send, room);
  if (choice == Handover::deliver) return deliver(send, room);
  statistics_.bytes += send.side.bytes;
  sends_.add(std::move(started));
  if (choice == Handover::pieces) return send_pieces(send, room);
  try {
    if (choice == Handover::put && put(send, room)) return;
    announce(send);
  } catch (const Error& error) {  // its memory is gone
    sends_.tell_broken(send.to, send.peer_receive, error);
    sends_.refused(send, error);
  }
}

bool Sender::start_arriving(const std::shared_ptr<Send>& started) {
  Send& send = *started;
  const RoomKey key{send.to, send.channel.value(), send.tag};
  const Room* const room = rooms_.find(key);
  const bool is_there = room != nullptr && room->has_memory() &&
                        !shared_.neighbours.is_lost(send.to) && !mismatch(send, *room);
  if (!is_there || handover(send, *room) != Handover::pieces) return false;
  if (!send.side.is_host_run() || send.side.bytes == 0) return false;
  statistics_.bytes += send.side.bytes;
  sends_.add(started);
  send_pieces(send, rooms_.take(key));
  return true;
}

Handover Sender::handover(const Send& send, const Room& room) {
  // Messages to a node that reads late wait where they are, not as copies in notes.
  const bool is_behind = shared_.wire.is_behind(send.to);
  return decision_.hand_over(make_handover_query(shared_, send, room), room.posted_pieces() > 0,
                             is_behind ? 0 : shared_.options.eager_bytes_max);
}

/// Over the wire, into the receives that are posted for them.
void Sender::send_pieces(Send& send, const Room& room) {
  send.peer_receive = room.header.receive;
  send.is_granted = send.is_posted = true;
  send.path = Path::message;
  send.flow = FlowId{room.header.flow};
  send.piece_bytes = room.header.piece_bytes;
  ++statistics_.sent[static_cast<std::size_t>(send.path)];
  sends_.begin(send);
}

void Sender::deliver(Send& send, const Room& room) {
  const Side& side = send.side;
  sends_.send_blanks(send.to, room);
  NoteHeader header;
  header.kind = NoteHeader::Kind::deliver;
  header.receive = send.peer_receive;
  header.bytes = side.bytes;
  const auto payload = shared_.notes.begin(send.to, header, static_cast<std::size_t>(side.bytes));
  pack_all(side, payload.data());
  shared_.notes.finish();
  statistics_.bytes += side.bytes;
  ++statistics_.sent[static_cast<std::size_t>(Path::eager)];
  send.complete({shared_.wire.node(), send.tag, side.bytes, false, Path::eager});
  shared_.requests.end();
}

/// False: the system refuses the mapping, and the message is to be announced.
bool Sender::put(Send& send, const Room& room) {
  send.via = lane_for(shared_.lanes, send.side, room.memory->handle.device);
  try {
    send.target = shared_.neighbours.map(send.to, send.via, *room.memory, send.mapping);
  } catch (const Error& error) {
    const std::int32_t here = send.side.lane ? send.side.lane->value() : -1;
    shared_.neighbours.not_mapped_here(send.to, {room.header.device, here}, error.what());
    return false;
  }
  send.is_granted = true;
  send.path = Path::put;
  send.target_loops = room.loops;
  send.piece_bytes = room.header.is_contiguous != 0 ? Wire::piece_bytes_max : send.side.bytes;
  ++statistics_.sent[static_cast<std::size_t>(Path::put)];
  sends_.begin(send);
  return true;
}

/// Why the message does not fit its room; nullopt: it fits, or is empty.
std::optional<std::string> Sender::mismatch(const Send& send, const Room& room) const {
  const Side& side = send.side;
  if (side.bytes == 0) return std::nullopt;
  const bool is_alike = side.bytes == room.header.bytes && side.digest() == room.header.digest;
  if (is_alike) return std::nullopt;
  return fmt::format(
      "the message of {} bytes with tag {} from node {} does not fit the room of {} bytes that "
      "node {} has for it; both sides must describe the same scalars in the same order",
      side.bytes, send.tag, shared_.wire.node().value(), room.header.bytes, send.to.value());
}

void Sender::lost(NodeId node, const Error& why) {
  rooms_.drop(node);
  sends_.lost(node, why);
}

void Sender::announce(const Send& send) {
  const Side& side = send.side;
  NoteHeader header;
  header.kind = NoteHeader::Kind::announce;
  header.tag = send.tag;
  header.channel = send.channel.value();
  header.send = send.id;
  header.receive = send.peer_receive;
  if (side.is_host_run()) header.begin = std::bit_cast<std::int64_t>(side.contiguous);
  send_side_note(shared_, send.to, header, side);
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
  pack_all(side, payload.data());
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
