/// How an endpoint sends: a message's way from its request to its last piece.

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/core.h>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "node-runtime/transport/datatype/pack.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"

namespace heddle::p2p {

void Endpoint::start(std::shared_ptr<Send> started) {
  Send& send = *started;
  if (peer(send.to).is_lost) {
    send.RequestState::fail(
        Error(ErrorCode::communication,
              fmt::format("sending to node {}, which is lost", send.to.value())));
    requests_.end();
    return;
  }
  if (send_eagerly(send.side, send.to, send.tag, send.channel)) {
    send.complete({wire_.node(), send.tag, send.side.bytes, false, Path::eager});
    requests_.end();
    return;
  }
  statistics_.bytes_sent += send.side.bytes;
  NoteHeader header;
  header.kind = NoteHeader::Kind::announce;
  header.tag = send.tag;
  header.channel = send.channel.value();
  header.send = send.id;
  header.bytes = send.side.bytes;
  header.digest = send.side.shape->digest;
  header.is_contiguous = send.side.contiguous != nullptr ? 1 : 0;
  if (send.side.is_host_run()) header.begin = std::bit_cast<std::int64_t>(send.side.contiguous);
  sends_.emplace(send.id, std::move(started));
  std::optional<MemoryReference> reference;
  try {
    if (lanes_.count() > 0) introduce(send.to);
    if (send.side.lane) {
      header.device = send.side.lane->value();
      reference = reference_to(send.side, send.to);
    } else {
      header.is_locked = is_locked(send.side) ? 1 : 0;
    }
  } catch (const Error& error) {
    send.RequestState::fail(error);
    forget(send);
    return;
  }
  // What can be neither mapped nor reached by a device is packed, whatever its loops are.
  const bool is_reached = reference.has_value() || header.is_locked != 0;
  const auto& loops = send.side.shape->loops;
  header.has_reference = reference ? 1 : 0;
  header.has_loops = is_reached && header.is_contiguous == 0 && loops ? 1 : 0;
  const std::size_t loops_at = reference ? sizeof *reference : 0;
  const std::size_t loops_bytes = header.has_loops != 0 ? sizeof *loops : 0;
  const auto room = begin_note(send.to, header, loops_at + loops_bytes);
  if (reference) std::ranges::copy(bytes_of(*reference), room.begin());
  if (loops_bytes > 0) std::ranges::copy(bytes_of(*loops), room.subspan(loops_at).begin());
  wire_.send_note();
}

/// With its note, if it is small and the receiver has a slot for it.
bool Endpoint::send_eagerly(const Side& side, NodeId to, std::int32_t tag, ChannelId channel) {
  if (side.bytes > options_.eager_bytes_max || side.lane) return false;
  if (!credits_.take(to, credits_for(side.bytes))) return false;
  const auto bytes = static_cast<std::size_t>(side.bytes);
  const std::span<std::byte> note = wire_.begin_note(to, sizeof(NoteBegin) + bytes);
  // Written where it travels from: a copy of what was put together just before would wait for it.
  auto* const header = std::construct_at(reinterpret_cast<NoteBegin*>(note.data()));
  header->kind = NoteHeader::Kind::eager;
  header->credits = credits_.take_owed(to);
  header->tag = tag;
  header->channel = channel.value();
  header->bytes = side.bytes;
  header->digest = side.shape->digest;
  const auto payload = note.subspan(sizeof(NoteBegin));
  if (side.contiguous != nullptr && bytes > 0) {
    std::memcpy(payload.data(), side.contiguous, bytes);
  } else {
    pack(*side.shape->plan, side.shape->count, side.memory, {0, side.bytes}, payload.data());
  }
  wire_.send_note();
  statistics_.bytes_sent += side.bytes;
  ++statistics_.sent[static_cast<std::size_t>(Path::eager)];
  return true;
}

void Endpoint::cancel_send(std::int64_t id) {
  const auto* const found = sends_.find(id);
  if (found == nullptr) return;
  Send& send = **found;
  if (send.is_granted || std::exchange(send.is_withdrawn, true)) return;
  NoteHeader header;
  header.kind = NoteHeader::Kind::withdraw;
  header.send = id;
  send_note(send.to, header);
}

/// The last word on a send that was announced.
void Endpoint::answered(const NoteHeader& header, std::span<const std::byte> payload) {
  const auto* const found = sends_.find(header.send);
  HEDDLE_CHECK(found != nullptr, "send {} is answered, but is not under way", header.send);
  Send& send = **found;
  if (header.kind == NoteHeader::Kind::fetched) {
    send.path = Path::get;
    ++statistics_.sent[static_cast<std::size_t>(Path::get)];
    return end(send);
  }
  if (header.kind == NoteHeader::Kind::refuse) {
    send.RequestState::fail(
        Error(static_cast<ErrorCode>(header.slot), std::string(text_of(payload))));
  } else {
    send.complete({wire_.node(), send.tag, 0, true});
  }
  forget(send);
}

// ---- pieces ----------------------------------------------------------------------------------

void Endpoint::granted(NodeId from, const NoteHeader& header, std::span<const std::byte> payload) {
  const auto* const found = sends_.find(header.send);
  HEDDLE_CHECK(found != nullptr, "send {} is granted, but is not under way", header.send);
  Send& send = **found;
  send.is_granted = true;
  send.path = header.path;
  send.peer_receive = header.receive;
  send.flow = FlowId{header.flow};
  send.piece_bytes = header.piece_bytes;
  send.slot_bytes = header.begin;
  if (!reach(send, header, payload)) return;
  ++statistics_.sent[static_cast<std::size_t>(send.path)];
  if (send.side.bytes == 0) return end(send);
  const bool by_out_slots = send.path == Path::message && !send.side.is_host_run();
  if (by_out_slots) sends_waiting_.push_back(send.id);
  HEDDLE_CHECK(from == send.to);
  post_pieces(send);
}

/// Finds the places that a grant names. False: they are out of reach, and the receiver knows.
bool Endpoint::reach(Send& send, const NoteHeader& header, std::span<const std::byte> payload) {
  std::size_t at = 0;
  send.slots.clear();
  for (; at < static_cast<std::size_t>(header.slot) * sizeof(std::int32_t);
       at += sizeof(std::int32_t)) {
    send.slots.push_back(read<std::int32_t>(payload, at));
  }
  send.target_loops.reset();
  if (header.has_reference != 0) {
    send.next = read<MemoryReference>(payload, at);
    if (header.has_loops != 0) {
      send.target_loops = read<LoopShape>(payload, at + sizeof(MemoryReference));
    }
    send.via = lane_for(send.side, send.next->handle.device);
  }
  try {
    switch (send.path) {
      case Path::shared:
        send.target = {wire_.window_of(send.to).data(), nullptr};
        if (send.side.lane) reach_window(send.to);
        break;
      case Path::ring: {
        const auto& ring = peer(send.to).devices.at(static_cast<std::size_t>(header.device)).ring;
        send.via = lane_for(send.side, ring.handle.device);
        send.target = map(send.to, send.via, ring, send.mapping);
        break;
      }
      case Path::put:
        send.target = map(send.to, send.via, *std::exchange(send.next, std::nullopt), send.mapping);
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
    send_note(send.to, answer, bytes_of(std::string_view(error.what())));
    return false;
  }
}

void Endpoint::slot_is_free(const NoteHeader& header) {
  const auto* const found = sends_.find(header.send);
  if (found == nullptr) return;  // it has failed
  Send& send = **found;
  send.slots.push_back(header.slot);
  post_pieces(send);
}

/// As many as there are places for.
void Endpoint::post_pieces(Send& send) {
  if (peer(send.to).is_lost) return;
  const std::shared_ptr<Send> kept = sends_.at(send.id);
  // The wire's flow is kept up although what is sent is of no use any more: the receiver has posted
  // the receives.
  const bool is_over_wire = send.path == Path::message;
  while (send.posted < send.side.bytes && (is_over_wire || !send.broken)) {
    if (!(is_over_wire ? post_piece(send) : post_fill(send))) return;
    if (!sends_.contains(send.id)) return;
  }
}

/// Over the wire: straight from contiguous memory of the host, otherwise by way of out slots.
bool Endpoint::post_piece(Send& send) {
  const std::int64_t bytes = std::min(send.piece_bytes, send.side.bytes - send.posted);
  Operation piece{Operation::Kind::send, send.id, {send.posted, bytes}, std::nullopt};
  if (send.side.is_host_run()) {
    if (send.in_flight >= direct_pieces) return false;
    send.posted += bytes;
    ++send.in_flight;
    wire_.send_bytes(send.to, send.flow,
                     {send.side.contiguous + piece.range.begin, static_cast<std::size_t>(bytes)},
                     add(piece));
    return true;
  }
  // Who waits longer goes first.
  if (send.in_flight >= options_.sizes.pieces_ahead || sends_waiting_.front() != send.id) {
    return false;
  }
  piece.slot = out_.take();
  if (!piece.slot) return false;
  // To the end of the queue, or out of it.
  sends_waiting_.pop_front();
  send.posted += bytes;
  ++send.in_flight;
  if (send.posted < send.side.bytes) sends_waiting_.push_back(send.id);
  piece.kind = Operation::Kind::pack;
  send.packing.push_back({piece.range, *piece.slot, false});
  if (send.broken || fill(send, piece, {out_.at(*piece.slot), nullptr})) packed(send, *piece.slot);
  return true;
}

/// A piece can go, behind those before it. One that could not be packed goes too, since the
/// receiver waits for it, and knows.
void Endpoint::packed(Send& send, Staging::Slot slot) {
  std::ranges::find(send.packing, slot, &Packing::slot)->is_packed = true;
  while (!send.packing.empty() && send.packing.front().is_packed) {
    const Packing piece = send.packing.front();
    send.packing.erase(send.packing.begin());
    wire_.send_bytes(send.to, send.flow,
                     {out_.at(piece.slot), static_cast<std::size_t>(piece.range.bytes)},
                     add({Operation::Kind::send, send.id, piece.range, piece.slot}));
  }
}

/// Into the receiver's slots, or its memory.
bool Endpoint::post_fill(Send& send) {
  const std::int64_t bytes = std::min(send.piece_bytes, send.side.bytes - send.posted);
  Operation piece{Operation::Kind::fill, send.id, {send.posted, bytes}, std::nullopt};
  Spot to = send.target;
  if (send.path == Path::put) {
    to.address += piece.range.begin;
  } else {
    if (send.slots.empty()) return false;
    piece.slot = send.slots.back();
    send.slots.pop_back();
    to.address += static_cast<std::int64_t>(*piece.slot) * send.slot_bytes;
    // To another device in both ways at a time; without a slot straight to the piece's place.
    const bool fits = send.piece_bytes <= options_.sizes.ring_piece_bytes && !out_rings_.empty();
    const bool is_copys_turn = 2 * send.copies <= send.in_flight;
    const bool is_between_devices = send.path == Path::ring && send.side.lane.has_value();
    if (is_between_devices && !send.target.is_near && fits && is_copys_turn) {
      piece.between = out_rings_[static_cast<std::size_t>(send.via.value())].take();
      if (piece.between) ++send.copies;
    }
  }
  send.posted += bytes;
  ++send.in_flight;
  if (fill(send, piece, to)) sent(piece, std::nullopt);
  return true;
}

/// True: it is done. What a device is to do is told of later; what cannot be done at all is told
/// of as a failure.
bool Endpoint::fill(Send& send, const Operation& piece, const Spot& to) {
  const Side& side = send.side;
  if (!side.lane && to.device == nullptr) {
    pack(*side.shape->plan, side.shape->count, side.memory, piece.range, to.address);
    return true;
  }
  const OperationId id = add(piece);
  try {
    if (piece.between) {
      std::byte* const between =
          out_rings_[static_cast<std::size_t>(send.via.value())].at(*piece.between);
      lanes_.pack_and_copy(send.via, side.elements(), piece.range, between, to, id);
    } else if (send.target_loops) {
      lanes_.transfer(send.via, Lanes::Direction::out, loops_of(side), {*send.target_loops, to},
                      id);
    } else {
      lanes_.pack(send.via, side.elements(), piece.range, to, id);
    }
  } catch (const Error& error) {
    completed(id, error.what());
  }
  return false;
}

void Endpoint::sent(const Operation& piece, const std::optional<std::string>& failure) {
  const auto* const found = sends_.find(piece.request);
  HEDDLE_CHECK(found != nullptr, "a piece of send {}, which is over", piece.request);
  const std::shared_ptr<Send> kept = *found;
  Send& send = *kept;
  const bool is_lost = peer(send.to).is_lost;
  const bool is_over_wire = send.path == Path::message;
  if (failure && !send.broken) {
    send.broken = Error(
        ErrorCode::internal,
        fmt::format("sending {} bytes with tag {} from node {} to node {}: {}", send.side.bytes,
                    send.tag, wire_.node().value(), send.to.value(), *failure));
    if (is_over_wire && !is_lost) tell_broken(send);
  }
  if (piece.kind == Operation::Kind::pack && !is_lost) return packed(send, *piece.slot);
  if (piece.kind != Operation::Kind::fill && piece.slot) out_.give_back(*piece.slot);
  if (piece.between) {
    out_rings_[static_cast<std::size_t>(send.via.value())].give_back(*piece.between);
    --send.copies;
  }
  --send.in_flight;
  send.done += piece.range.bytes;
  if (send.broken && (is_lost || !is_over_wire || send.done == send.side.bytes)) {
    return fail(send, *send.broken);
  }
  if (piece.kind == Operation::Kind::fill) {
    NoteHeader header;
    header.kind = NoteHeader::Kind::filled;
    header.receive = send.peer_receive;
    header.begin = piece.range.begin;
    header.bytes = piece.range.bytes;
    header.slot = piece.slot.value_or(-1);
    send_note(send.to, header);
  }
  if (send.done < send.side.bytes) return post_pieces(send);
  if (is_over_wire && send.side.lane) {  // all of it was packed well
    NoteHeader header;
    header.kind = NoteHeader::Kind::filled;
    header.receive = send.peer_receive;
    send_note(send.to, header);
  }
  end(send);
}

// ---- ends ------------------------------------------------------------------------------------

void Endpoint::tell_broken(const Send& send) {
  NoteHeader header;
  header.kind = NoteHeader::Kind::broken;
  header.receive = send.peer_receive;
  send_note(send.to, header, bytes_of(std::string_view(send.broken->what())));
}

/// It fails when nothing of it is on its way any more, so that nobody reads its memory, and nobody
/// writes to the receiver's. The receiver hears of it then, if it has not.
void Endpoint::fail(Send& send, Error why) {
  if (!send.broken) send.broken = std::move(why);
  if (send.in_flight > 0) return;
  const bool knows = peer(send.to).is_lost || send.path == Path::message;
  if (!knows) tell_broken(send);
  send.RequestState::fail(*send.broken);
  forget(send);
}

void Endpoint::end(Send& send) {
  send.complete({wire_.node(), send.tag, send.side.bytes, false, send.path});
  // If it cannot be, the receiver hears of it when it asks for that.
  if (send.next) static_cast<void>(map_for_the_next(send.to, send.via, *send.next));
  forget(send);
}

}  // namespace heddle::p2p
