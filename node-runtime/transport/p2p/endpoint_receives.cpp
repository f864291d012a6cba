/// How an endpoint receives: from the message that a receive takes to its last piece.

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/core.h>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "node-runtime/transport/datatype/pack.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"

namespace heddle::p2p {

void Endpoint::start(std::shared_ptr<Receive> started) {
  Receive& receive = *started;
  receives_.emplace(receive.id, std::move(started));
  const auto found = matching_.post(ReceiveId{receive.id}, receive.pattern);
  if (found) {
    const Arrival arrival = arrivals_.extract(found->value());
    take(receive, arrival.envelope, arrival.header, arrival.payload);
    return;
  }
  const NodeId source = receive.pattern.source;
  if (source == Pattern::any_source || !peer(source).is_lost) return;
  matching_.cancel(ReceiveId{receive.id});
  fail(receive, Error(ErrorCode::communication,
                      fmt::format("receiving from node {}, which is lost", source.value())));
}

void Endpoint::cancel_receive(std::int64_t id) {
  if (!matching_.cancel(ReceiveId{id})) return;
  const std::shared_ptr<Receive> receive = receives_.at(id);
  receive->complete({NodeId{-1}, -1, 0, true});
  forget(*receive);
}

void Endpoint::message_arrived(NodeId from, const NoteHeader& header,
                               std::span<const std::byte> payload) {
  const Envelope envelope{from, header.tag, ChannelId{header.channel}};
  const std::int64_t id = next_arrival_++;
  const auto found = matching_.arrive(ArrivalId{id}, envelope);
  if (found) {
    take(*receives_.at(found->value()), envelope, header, payload);
    return;
  }
  ++statistics_.unexpected;
  arrivals_.emplace(id, {envelope, header, {payload.begin(), payload.end()}});
  if (options_.unexpected) options_.unexpected(envelope);
}

/// An announcement that no receive has taken yet is forgotten; otherwise the sender hears of the
/// receive, and its wish came too late.
void Endpoint::withdraw(NodeId from, const NoteHeader& header) {
  std::optional<std::int64_t> found;
  arrivals_.for_each([&](std::int64_t id, const Arrival& arrival) {
    const bool is_it = arrival.envelope.source == from && arrival.header.send == header.send &&
                       arrival.header.kind == NoteHeader::Kind::announce;
    if (is_it) found = id;
  });
  if (!found) return;
  matching_.withdraw(ArrivalId{*found});
  arrivals_.erase(*found);
  NoteHeader answer;
  answer.kind = NoteHeader::Kind::withdrawn;
  answer.send = header.send;
  send_note(from, answer);
}

std::optional<std::string> Endpoint::mismatch(const Receive& receive,
                                              const NoteHeader& header) const {
  const Shape& shape = *receive.side.shape;
  // As a rule all of it is used.
  if (header.bytes == shape.bytes && header.digest == shape.digest) return std::nullopt;
  const auto which = [&] {
    return fmt::format("the message of {} bytes with tag {} from node {} to node {}", header.bytes,
                       header.tag, receive.envelope.source.value(), wire_.node().value());
  };
  if (header.bytes > shape.bytes) {
    return fmt::format(
        "{} would be truncated: it is received where {} bytes fit; receive into a "
        "larger type or more elements",
        which(), shape.bytes);
  }
  if (!shape.signature.ends_scalar_at(header.bytes) ||
      shape.signature.digest(header.bytes) != header.digest) {
    return fmt::format(
        "the signatures of {} differ; both sides must describe the same scalars in "
        "the same order",
        which());
  }
  return std::nullopt;
}

void Endpoint::free_eager_room(const Receive& receive) {
  const NodeId from = receive.envelope.source;
  const bool are_due = credits_.room_freed(from, credits_for(receive.bytes));
  if (are_due && !peer(from).is_lost) send_note(from, NoteHeader{});
}

/// A message goes to a receive.
void Endpoint::take(Receive& receive, const Envelope& envelope, const NoteHeader& header,
                    std::span<const std::byte> payload) {
  const NodeId from = envelope.source;
  const bool is_eager = header.kind == NoteHeader::Kind::eager;
  if (options_.report) receive.begun_ns = now_ns();
  receive.envelope = envelope;
  receive.announcement = header;
  receive.bytes = header.bytes;
  receive.is_taken = true;
  if (const auto why = mismatch(receive, header)) {
    if (is_eager) {
      free_eager_room(receive);
    } else {
      refuse(receive, Error(ErrorCode::usage, *why));
    }
    return fail(receive, Error(ErrorCode::usage, *why));
  }
  if (is_eager) {
    receive.path = Path::eager;
    if (receive.side.lane && receive.bytes > 0) {
      receive.payload.assign(payload.begin(), payload.end());
      free_eager_room(receive);
      receive.piece_bytes = options_.sizes.piece_bytes;
      receives_waiting_.push_back(receive.id);
      return serve_waiting();
    }
    if (receive.side.contiguous != nullptr) {
      std::ranges::copy(payload.first(static_cast<std::size_t>(receive.bytes)),
                        receive.side.contiguous);
    } else {
      unpack(*receive.side.shape->plan, receive.side.shape->count, {0, receive.bytes},
             payload.data(), receive.side.memory);
    }
    free_eager_room(receive);
    return end(receive);
  }
  if (peer(from).is_lost) {
    return fail(
        receive,
        Error(ErrorCode::communication,
              fmt::format("node {} was lost before it could send its message of {} bytes with tag "
                          "{}",
                          from.value(), header.bytes, header.tag)));
  }
  const std::size_t loops_at = header.has_reference != 0 ? sizeof(MemoryReference) : 0;
  if (header.has_reference != 0) receive.source = read<MemoryReference>(payload);
  if (header.has_loops != 0) receive.source_loops = read<LoopShape>(payload, loops_at);
  decide(receive);
}

/// The sender hears why its message was not received.
void Endpoint::refuse(const Receive& receive, const Error& why) {
  NoteHeader answer;
  answer.kind = NoteHeader::Kind::refuse;
  answer.send = receive.announcement.send;
  answer.slot = static_cast<std::int32_t>(why.code());
  send_note(receive.envelope.source, answer, bytes_of(std::string_view(why.what())));
}

// ---- pieces ----------------------------------------------------------------------------------

/// Receives over the wire, as places come.
void Endpoint::post_pieces(Receive& receive) {
  const bool by_slots = !receive.side.is_host_run();
  while (receive.posted < receive.bytes) {
    const std::int64_t bytes = std::min(receive.piece_bytes, receive.bytes - receive.posted);
    Operation piece{Operation::Kind::receive, receive.id, {receive.posted, bytes}, std::nullopt};
    std::byte* into = nullptr;
    if (by_slots) {
      if (receive.slots.empty()) return;
      piece.slot = receive.slots.back();
      receive.slots.pop_back();
      into = in_.at(*piece.slot);
    } else {
      if (receive.in_flight >= direct_pieces) return;
      into = receive.side.contiguous + receive.posted;
    }
    receive.posted += bytes;
    ++receive.in_flight;
    wire_.receive_bytes(receive.envelope.source, receive.flow,
                        {into, static_cast<std::size_t>(bytes)}, add(piece));
  }
  if (receive.bytes == 0) end(receive);
}

/// The sender has written a piece into a slot, or into the memory itself.
void Endpoint::filled(NodeId from, const NoteHeader& header) {
  const auto* const found = receives_.find(header.receive);
  HEDDLE_CHECK(found != nullptr, "node {} has filled receive {}, which is over", from.value(),
               header.receive);
  const std::shared_ptr<Receive> kept = *found;
  Receive& receive = *kept;
  if (receive.path == Path::message) {
    receive.has_word = true;
    return end_if_all_is_here(receive);
  }
  Operation piece{Operation::Kind::unpack, receive.id, {header.begin, header.bytes}, std::nullopt};
  ++receive.in_flight;
  if (receive.path == Path::put) return piece_is_in(receive, piece);
  piece.slot = header.slot;
  std::erase(receive.given, header.slot);
  const Device* device = receive.path == Path::ring ? &lanes_.device(receive.via) : nullptr;
  const Spot from_slot{slots_of(receive).at(header.slot), device, device != nullptr};
  if (receive.broken || drain(receive, piece, from_slot)) piece_is_in(receive, piece);
}

/// As Endpoint::fill().
bool Endpoint::drain(Receive& receive, const Operation& piece, const Spot& from) {
  const Side& side = receive.side;
  if (!side.lane && from.device == nullptr) {
    unpack(*side.shape->plan, side.shape->count, piece.range, from.address, side.memory);
    return true;
  }
  const OperationId id = add(piece);
  try {
    if (piece.kind == Operation::Kind::fetch && receive.source_loops) {
      lanes_.transfer(receive.via, Lanes::Direction::in, {*receive.source_loops, from},
                      loops_of(side), id);
    } else {
      lanes_.unpack(receive.via, side.elements(), piece.range, from, id);
    }
  } catch (const Error& error) {
    completed(id, error.what());
  }
  return false;
}

void Endpoint::came(const Operation& piece, const std::optional<std::string>& failure) {
  const auto* const found = receives_.find(piece.request);
  HEDDLE_CHECK(found != nullptr, "a piece of receive {}, which is over", piece.request);
  const std::shared_ptr<Receive> kept = *found;
  Receive& receive = *kept;
  if (failure && !receive.broken) {
    receive.broken =
        Error(ErrorCode::internal,
              fmt::format("receiving {} bytes with tag {} from node {} on node {}: {}",
                          receive.bytes, receive.envelope.tag, receive.envelope.source.value(),
                          wire_.node().value(), *failure));
  }
  if (piece.kind == Operation::Kind::receive && piece.slot && !receive.broken) {
    Operation next = piece;
    next.kind = Operation::Kind::unpack;
    if (!drain(receive, next, {in_.at(*piece.slot), nullptr})) return;
  }
  piece_is_in(receive, piece);
}

void Endpoint::piece_is_in(Receive& receive, const Operation& piece) {
  --receive.in_flight;
  ++receive.pieces;
  receive.done += piece.range.bytes;
  if (receive.is_cut) {
    if (piece.slot) slots_of(receive).give_back(*piece.slot);
    return fail(receive, *receive.broken);
  }
  const bool by_slots_of_ours = receive.path == Path::shared || receive.path == Path::ring;
  if (piece.slot && by_slots_of_ours && receive.posted < receive.bytes) {
    NoteHeader header;
    header.kind = NoteHeader::Kind::slot;
    header.send = receive.announcement.send;
    header.slot = *piece.slot;
    receive.given.push_back(*piece.slot);
    receive.posted = std::min(receive.bytes, receive.posted + receive.piece_bytes);
    send_note(receive.envelope.source, header);
  } else if (piece.slot) {
    receive.slots.push_back(*piece.slot);
  }
  if (receive.done < receive.bytes && receive.path == Path::message) post_pieces(receive);
  end_if_all_is_here(receive);
}

/// All bytes have come and, where a device of the sender's has packed what came over the wire, the
/// word that nothing went wrong with it: pieces may overtake the note that something did.
void Endpoint::end_if_all_is_here(Receive& receive) {
  const bool needs_word = receive.path == Path::message && receive.announcement.device >= 0;
  if (receive.done < receive.bytes || (needs_word && !receive.has_word)) return;
  if (receive.broken) {
    if (receive.path == Path::get) refuse(receive, *receive.broken);
    return fail(receive, *receive.broken);
  }
  if (receive.path == Path::get) {
    NoteHeader header;
    header.kind = NoteHeader::Kind::fetched;
    header.send = receive.announcement.send;
    send_note(receive.envelope.source, header);
  }
  end(receive);
}

/// Over the wire all pieces come nevertheless; otherwise none does any more.
void Endpoint::sender_broke(const NoteHeader& header, std::string_view why) {
  const auto* const found = receives_.find(header.receive);
  if (found == nullptr) return;  // it is over, for this or another reason
  Receive& receive = **found;
  if (!receive.broken) receive.broken = Error(ErrorCode::communication, std::string(why));
  if (receive.path != Path::message) return fail(receive, *receive.broken);
  receive.has_word = true;
  end_if_all_is_here(receive);
}

// ---- ends ------------------------------------------------------------------------------------

/// It fails when nothing of it is on its way any more: nobody writes to its memory then. Nothing
/// more comes from the sender.
void Endpoint::fail(Receive& receive, Error why) {
  if (!receive.broken) receive.broken = std::move(why);
  receive.is_cut = true;
  if (receive.in_flight > 0) return;
  give_back(receive);
  receive.RequestState::fail(*receive.broken);
  forget(receive);
}

void Endpoint::give_back(Receive& receive) {
  if (receive.has_flow) free_flows_.push_back(receive.flow);
  for (const Staging::Slot slot : receive.slots) slots_of(receive).give_back(slot);
  for (const Staging::Slot slot : receive.given) slots_of(receive).give_back(slot);
  receive.slots.clear();
  receive.given.clear();
}

void Endpoint::map_source_for_the_next(const Receive& receive) {
  if (!receive.maps_source) return;
  const NodeId from = receive.envelope.source;
  const std::string refusal = map_for_the_next(
      from, lane_for(receive.side, receive.source->handle.device), *receive.source);
  if (refusal.empty()) return;
  const std::int32_t here = receive.side.lane ? receive.side.lane->value() : -1;
  peer(from).not_mapped_here[{receive.announcement.device, here}] = keep(refusal);
}

void Endpoint::end(Receive& receive) {
  give_back(receive);
  ++statistics_.received[static_cast<std::size_t>(receive.path)];
  if (options_.report) {
    options_.report({receive.envelope.source, wire_.node(), receive.envelope.tag, receive.bytes,
                     receive.pieces, receive.path,
                     receive.choice ? std::optional(*receive.choice) : std::nullopt,
                     static_cast<double>(now_ns() - receive.begun_ns) * 1e-3});
  }
  receive.complete(
      {receive.envelope.source, receive.envelope.tag, receive.bytes, false, receive.path});
  map_source_for_the_next(receive);
  forget(receive);
}

}  // namespace heddle::p2p
