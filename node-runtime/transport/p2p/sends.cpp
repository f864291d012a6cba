#include "node-runtime/transport/p2p/sends.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "node-runtime/transport/datatype/pack.hpp"

namespace heddle::p2p {

Send& Sends::add(std::shared_ptr<Send> send) {
  const std::int64_t id = send->id;
  return *sends_.emplace(id, std::move(send));
}

std::shared_ptr<Send> Sends::find(std::int64_t id) const {
  const auto* const found = sends_.find(id);
  return found == nullptr ? nullptr : *found;
}

void Sends::begin(Send& send) {
  if (send.side.bytes == 0) return end(send);
  const bool by_out_slots = send.path == Path::message && !send.side.is_host_run();
  if (by_out_slots) waiting_.push_back(send.id);
  post_pieces(send);
}

void Sends::more_is_there(std::int64_t id, std::int64_t bytes) {
  Send& send = *sends_.at(id);
  const std::int64_t missing = send.side.bytes - bytes;
  HEDDLE_CHECK(0 <= missing && missing <= send.missing, "{} bytes are missing after {} were",
               missing, send.missing);
  send.missing = missing;
  post_pieces(send);
}

void Sends::send_blanks(NodeId to, const Room& room) {
  for (std::int32_t i = 0; i < room.posted_pieces(); ++i) {
    Piece piece{Piece::Kind::send, 0, {}, std::nullopt};
    piece.blank_to = to;
    shared_.wire.send_bytes(to, FlowId{room.header.flow}, {}, shared_.pieces.add(piece));
  }
}

void Sends::slot_is_free(const NoteHeader& header) {
  const auto* const found = sends_.find(header.send);
  if (found == nullptr) return;  // it has failed
  Send& send = **found;
  send.slots.push_back(header.slot);
  post_pieces(send);
}

/// Posts as many pieces as there are places for.
void Sends::post_pieces(Send& send) {
  if (shared_.neighbours.is_lost(send.to)) return;
  const std::shared_ptr<Send> kept = sends_.at(send.id);
  // A broken send goes on over the wire: the receiver has posted the receives of its pieces.
  const bool is_over_wire = send.path == Path::message;
  while (send.posted < send.side.bytes && (is_over_wire || !send.broken)) {
    if (!(is_over_wire ? post_piece(send) : post_fill(send))) return;
    if (!sends_.contains(send.id)) return;
  }
}

/// Over the wire: from contiguous host memory as it lies, otherwise by way of out slots. False: not
/// now.
bool Sends::post_piece(Send& send) {
  const std::int64_t bytes = std::min(send.piece_bytes, send.side.bytes - send.posted);
  Piece piece{Piece::Kind::send, send.id, {send.posted, bytes}, std::nullopt};
  if (send.side.is_host_run()) {
    if (send.in_flight >= direct_pieces || send.posted + bytes > send.side.bytes - send.missing)
      return false;
    send.posted += bytes;
    ++send.in_flight;
    shared_.wire.send_bytes(
        send.to, send.flow,
        {send.side.contiguous + piece.range.begin, static_cast<std::size_t>(bytes)},
        shared_.pieces.add(piece));
    return true;
  }
  const bool is_its_turn = waiting_.front() == send.id;
  if (send.in_flight >= shared_.options.sizes.pieces_ahead || !is_its_turn) return false;
  piece.slot = shared_.slots.out().take();
  if (!piece.slot) return false;
  // To the end of the queue, or out of it.
  waiting_.pop_front();
  send.posted += bytes;
  ++send.in_flight;
  if (send.posted < send.side.bytes) waiting_.push_back(send.id);
  piece.kind = Piece::Kind::pack;
  send.packing.push_back({piece.range, *piece.slot, false});
  const bool is_packed =
      send.broken || fill(send, piece, {shared_.slots.out().at(*piece.slot), nullptr});
  if (is_packed) packed(send, *piece.slot);
  return true;
}

/// A packed piece goes to the wire after all earlier ones. A piece that could not be packed goes
/// too: the receiver waits for its bytes, and was informed that they are invalid.
void Sends::packed(Send& send, Staging::Slot slot) {
  std::ranges::find(send.packing, slot, &Packing::slot)->is_packed = true;
  while (!send.packing.empty() && send.packing.front().is_packed) {
    const Packing piece = send.packing.front();
    send.packing.erase(send.packing.begin());
    const bool is_blank = send.is_posted && send.broken;
    const auto bytes = is_blank ? 0 : static_cast<std::size_t>(piece.range.bytes);
    shared_.wire.send_bytes(
        send.to, send.flow, {shared_.slots.out().at(piece.slot), bytes},
        shared_.pieces.add({Piece::Kind::send, send.id, piece.range, piece.slot}));
  }
}

/// Into the receiver's slots, or its memory. False: there is no slot.
bool Sends::post_fill(Send& send) {
  const std::int64_t bytes = std::min(send.piece_bytes, send.side.bytes - send.posted);
  Piece piece{Piece::Kind::fill, send.id, {send.posted, bytes}, std::nullopt};
  Spot to = send.target;
  if (send.path == Path::put) {
    to.address += piece.range.begin;
  } else {
    if (send.slots.empty()) return false;
    piece.slot = send.slots.back();
    send.slots.pop_back();
    to.address += static_cast<std::int64_t>(*piece.slot) * send.slot_bytes;
    // Between devices, kernels and copy engines take turns; without a free slot on this node's
    // device a kernel writes to the receiver's.
    const bool fits =
        send.piece_bytes <= shared_.options.sizes.ring_piece_bytes && shared_.slots.has_rings();
    const bool is_copys_turn = 2 * send.copies <= send.in_flight;
    const bool is_between_devices = send.path == Path::ring && send.side.lane.has_value();
    if (is_between_devices && !send.target.is_near && fits && is_copys_turn) {
      piece.between = shared_.slots.out_ring(send.via).take();
      if (piece.between) ++send.copies;
    }
  }
  send.posted += bytes;
  ++send.in_flight;
  if (fill(send, piece, to)) ended(piece, std::nullopt);
  return true;
}

/// Packs a piece. True: it is done; otherwise ended() is called when a device has done it, or at
/// once where the device refuses.
bool Sends::fill(Send& send, const Piece& piece, const Spot& to) {
  const Side& side = send.side;
  if (!side.lane && to.device == nullptr) {
    pack(*side.shape->plan, side.shape->count, side.memory, piece.range, to.address);
    return true;
  }
  const OperationId id = shared_.pieces.add(piece);
  Lanes& lanes = shared_.lanes;
  try {
    if (piece.between) {
      std::byte* const between = shared_.slots.out_ring(send.via).at(*piece.between);
      lanes.pack_and_copy(send.via, side.elements(), piece.range, between, to, id);
    } else if (send.target_loops) {
      lanes.transfer(send.via, Lanes::Direction::out, loops_of(lanes, side),
                     {*send.target_loops, to}, id);
    } else {
      lanes.pack(send.via, side.elements(), piece.range, to, id);
    }
  } catch (const Error& error) {
    ended(shared_.pieces.take(id), error.what());
  }
  return false;
}

void Sends::piece_failed(Send& send, const std::string& failure) {
  if (send.broken) return;
  send.broken =
      Error(ErrorCode::internal,
            fmt::format("sending {} bytes with tag {} from node {} to node {}: {}", send.side.bytes,
                        send.tag, shared_.wire.node().value(), send.to.value(), failure));
  if (send.path == Path::message && !shared_.neighbours.is_lost(send.to)) {
    tell_broken(send.to, send.peer_receive, *send.broken);
  }
}

void Sends::ended(const Piece& piece, const std::optional<std::string>& failure) {
  if (piece.blank_to) return;
  const auto* const found = sends_.find(piece.request);
  HEDDLE_CHECK(found != nullptr, "a piece of send {}, which is over", piece.request);
  const std::shared_ptr<Send> kept = *found;
  Send& send = *kept;
  const bool is_lost = shared_.neighbours.is_lost(send.to);
  const bool is_over_wire = send.path == Path::message;
  if (failure) piece_failed(send, *failure);
  if (piece.kind == Piece::Kind::pack) {
    if (!is_lost) return packed(send, *piece.slot);
    std::erase_if(send.packing, [&](const Packing& one) { return one.slot == *piece.slot; });
  }
  if (piece.kind != Piece::Kind::fill && piece.slot) shared_.slots.out().give_back(*piece.slot);
  if (piece.between) {
    shared_.slots.out_ring(send.via).give_back(*piece.between);
    --send.copies;
  }
  --send.in_flight;
  send.done += piece.range.bytes;
  if (send.broken && (is_lost || !is_over_wire || send.done == send.side.bytes)) {
    return fail(send, *send.broken);
  }
  if (piece.kind == Piece::Kind::fill) tell_filled(send, piece);
  if (send.done < send.side.bytes) return post_pieces(send);
  if (is_over_wire && send.side.lane && !send.is_posted)
    tell_filled(send, {});  // all was packed well
  end(send);
}

void Sends::serve_waiting() {
  // Each in turn, as long as there are slots and some send may take one.
  for (std::size_t idle = 0; idle < waiting_.size() && shared_.slots.out().available() > 0;) {
    const auto* const found = sends_.find(waiting_.front());
    if (found == nullptr) {
      waiting_.pop_front();
      continue;
    }
    const std::shared_ptr<Send> send = *found;
    const std::int64_t before = send->posted;
    post_pieces(*send);
    if (send->posted != before) {
      idle = 0;
      continue;
    }
    waiting_.push_back(waiting_.front());
    waiting_.pop_front();
    ++idle;
  }
}

// ---- ends ------------------------------------------------------------------------------------

/// Tells the receiver that a piece is in its place; with an empty piece: that all pieces sent over
/// the wire are valid.
void Sends::tell_filled(const Send& send, const Piece& piece) {
  NoteHeader header;
  header.kind = NoteHeader::Kind::filled;
  header.receive = send.peer_receive;
  header.begin = piece.range.begin;
  header.bytes = piece.range.bytes;
  header.slot = piece.slot.value_or(-1);
  shared_.notes.send(send.to, header);
}

void Sends::tell_broken(NodeId to, std::int64_t peer_receive, const Error& why) {
  NoteHeader header;
  header.kind = NoteHeader::Kind::broken;
  header.receive = peer_receive;
  // A device that fails is the sender's matter: here it is another node that has failed.
  const bool is_usage = why.code() == ErrorCode::usage;
  header.slot = static_cast<std::int32_t>(is_usage ? ErrorCode::usage : ErrorCode::communication);
  shared_.notes.send(to, header, bytes_of(std::string_view(why.what())));
}

/// Fails a send once none of its pieces is in flight: its memory is not read any more, and the
/// receiver's is not written. Informs the receiver, unless the receiver knows.
void Sends::fail(Send& send, Error why) {
  if (!send.broken) send.broken = std::move(why);
  if (send.in_flight > 0) return;
  const bool knows = shared_.neighbours.is_lost(send.to) || send.path == Path::message;
  if (!knows) tell_broken(send.to, send.peer_receive, *send.broken);
  send.RequestState::fail(*send.broken);
  forget(send);
}

void Sends::end(Send& send) {
  send.complete({shared_.wire.node(), send.tag, send.side.bytes, false, send.path});
  // A refusal is found again, and told to the receiver, when it grants `put`.
  if (send.next) {
    static_cast<void>(shared_.neighbours.map_for_the_next(send.to, send.via, *send.next));
  }
  forget(send);
}

void Sends::refused(Send& send, const Error& why) {
  send.RequestState::fail(why);
  forget(send);
}

void Sends::withdrawn(Send& send) {
  send.complete({shared_.wire.node(), send.tag, 0, true});
  forget(send);
}

/// Handles may outlive the endpoint, so their references into it are dropped.
void Sends::forget(Send& send) {
  send.mapping.reset();
  shared_.requests.end(sends_.extract(send.id));
}

void Sends::lost(NodeId node, const Error& why) {
  // Operations of the wire do not complete any more; those of devices do.
  std::map<std::int64_t, std::int32_t> dropped;  // pieces by send
  std::vector<OperationId> orphans;
  shared_.pieces.for_each([&](OperationId id, const Piece& piece) {
    if (piece.kind != Piece::Kind::send) return;
    const NodeId to = piece.blank_to ? *piece.blank_to : sends_.at(piece.request)->to;
    if (to != node) return;
    if (piece.slot) shared_.slots.out().give_back(*piece.slot);
    ++dropped[piece.request];
    orphans.push_back(id);
  });
  for (const OperationId id : orphans) shared_.pieces.drop(id);
  std::vector<std::shared_ptr<Send>> sends;
  sends_.for_each([&](std::int64_t, const auto& send) {
    if (send->to == node) sends.push_back(send);
  });
  for (const auto& send : sends) {
    send->in_flight -= dropped[send->id];
    // Packed pieces that wait behind one that is not.
    send->in_flight -=
        static_cast<std::int32_t>(std::erase_if(send->packing, [&](const Packing& piece) {
          if (piece.is_packed) shared_.slots.out().give_back(piece.slot);
          return piece.is_packed;
        }));
    fail(*send, why);
  }
}

void Sends::abandon(const Error& why) {
  sends_.for_each([&](std::int64_t, const auto& send) {
    send->mapping.reset();
    send->fail(why);
  });
  sends_.clear();
}

// ---- questions -------------------------------------------------------------------------------

void Sends::taken_back(NodeId node, const ReleasedMemory& memory) {
  sends_.for_each([&](std::int64_t, const auto& send) {
    if (!send->next || send->to != node) return;
    const IpcMemoryHandle& next = send->next->handle;
    if (next.allocation == memory.allocation && next.device == memory.device) send->next.reset();
  });
}

std::string Sends::user_of(const Release& memory) const {
  std::string user;
  sends_.for_each([&](std::int64_t, const auto& send) {
    if (!memory.is_of(send->side)) return;
    user = fmt::format("a message of {} bytes with tag {} is being sent from it to node {}",
                       send->side.bytes, send->tag, send->to.value());
  });
  return user;
}

bool Sends::is_valid() const {
  bool is_right = true;
  std::map<std::int64_t, std::int32_t> under_way;  // pieces by send
  std::size_t slots = 0;
  shared_.pieces.for_each([&](OperationId, const Piece& piece) {
    if (!piece.is_of_send() || piece.blank_to) return;
    ++under_way[piece.request];
    if (piece.kind == Piece::Kind::send && piece.slot) ++slots;
    if (!sends_.contains(piece.request)) is_right = false;
  });
  sends_.for_each([&](std::int64_t id, const auto& send) {
    const auto behind = std::ranges::count_if(send->packing, &Packing::is_packed);
    slots += send->packing.size();
    const bool is_counted = send->in_flight == under_way[id] + behind;
    const bool is_in_order = 0 <= send->done && send->done <= send->posted && send->missing >= 0 &&
                             send->posted <= send->side.bytes - send->missing;
    const bool may_have_pieces = send->is_granted || send->in_flight == 0;
    if (!is_counted || !is_in_order || !may_have_pieces) is_right = false;
  });
  return is_right && slots == shared_.slots.out().used();
}

}  // namespace heddle::p2p
