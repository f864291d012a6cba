/// How an endpoint receives: from the message that a receive takes to its last piece.

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "node-runtime/transport/datatype/pack.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"

namespace heddle::p2p {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

void Endpoint::start(const std::shared_ptr<Receive>& started) {
  Receive& receive = *started;
  receives_.emplace(receive.id, started);
  const auto found = matching_.post(ReceiveId{receive.id}, receive.pattern);
  if (found.has_value()) {
    const auto node = arrivals_.extract(found->value());
    const Arrival& arrival = node.mapped();
    take(receive, arrival.envelope, arrival.header, arrival.payload);
    return;
  }
  const NodeId source = receive.pattern.source;
  if (source == Pattern::any_source || !lost_[static_cast<std::size_t>(source.value())]) return;
  matching_.cancel(ReceiveId{receive.id});
  receive.fail(Error(ErrorCode::communication,
                     fmt::format("receiving from node {}, which is lost", source.value())));
  receives_.erase(receive.id);
  forget_request();
}

void Endpoint::cancel_receive(std::int64_t id) {
  if (!matching_.cancel(ReceiveId{id})) return;
  const auto found = receives_.find(id);
  found->second->complete({NodeId{-1}, -1, 0, true});
  receives_.erase(found);
  forget_request();
}

void Endpoint::message_arrived(NodeId from, const NoteHeader& header,
                               std::span<const std::byte> payload) {
  const Envelope envelope{from, header.tag, ChannelId{header.channel}};
  const std::int64_t id = next_arrival_++;
  const auto found = matching_.arrive(ArrivalId{id}, envelope);
  if (found.has_value()) {
    take(*receives_.at(found->value()), envelope, header, payload);
    return;
  }
  ++statistics_.unexpected;
  arrivals_.emplace(id, Arrival{envelope, header, {payload.begin(), payload.end()}});
}

/// An announcement that no receive has taken yet is forgotten; otherwise the sender hears of the
/// receive, and its wish came too late.
void Endpoint::withdraw(NodeId from, const NoteHeader& header) {
  const auto found = std::ranges::find_if(arrivals_, [&](const auto& entry) {
    const Arrival& arrival = entry.second;
    return arrival.envelope.source == from && arrival.header.send == header.send &&
           arrival.header.kind == NoteHeader::Kind::announce;
  });
  if (found == arrivals_.end()) return;
  matching_.withdraw(ArrivalId{found->first});
  arrivals_.erase(found);
  NoteHeader answer;
  answer.kind = NoteHeader::Kind::withdrawn;
  answer.send = header.send;
  send_note(from, answer);
}

std::optional<std::string> Endpoint::mismatch(const Receive& receive,
                                              const NoteHeader& header) const {
  const std::string which =
      fmt::format("the message of {} bytes with tag {} from node {} to node {}", header.bytes,
                  header.tag, receive.envelope.source.value(), wire_.node().value());
  if (header.bytes > receive.signature.bytes()) {
    return fmt::format(
        "{} would be truncated: it is received where {} bytes fit; receive into a "
        "larger type or more elements",
        which, receive.signature.bytes());
  }
  if (!receive.signature.ends_scalar_at(header.bytes) ||
      receive.signature.digest(header.bytes) != header.digest) {
    return fmt::format(
        "the signatures of {} differ; both sides must describe the same scalars in "
        "the same order",
        which);
  }
  return std::nullopt;
}

void Endpoint::free_eager_slot(NodeId peer) {
  if (credits_.slot_freed(peer) && !lost_[static_cast<std::size_t>(peer.value())]) {
    send_note(peer, NoteHeader{});
  }
}

/// A message goes to a receive.
void Endpoint::take(Receive& receive, const Envelope& envelope, const NoteHeader& header,
                    std::span<const std::byte> payload) {
  const NodeId from = envelope.source;
  const bool is_eager = header.kind == NoteHeader::Kind::eager;
  receive.envelope = envelope;
  receive.bytes = header.bytes;
  receive.peer_send = header.send;
  receive.is_taken = true;
  if (const auto why = mismatch(receive, header)) {
    if (is_eager) {
      free_eager_slot(from);
    } else {
      NoteHeader answer;
      answer.kind = NoteHeader::Kind::refuse;
      answer.send = header.send;
      const auto text = begin_note(from, answer, why->size());
      std::ranges::copy(bytes_of(*why), text.begin());
      wire_.send_note(from);
    }
    receive.fail(Error(ErrorCode::usage, *why));
    receives_.erase(receive.id);
    forget_request();
    return;
  }
  if (is_eager) {
    unpack(*receive.side.plan, receive.side.count, {0, receive.bytes}, payload.data(),
           receive.side.memory);
    free_eager_slot(from);
    end(receive);
    return;
  }
  if (lost_[static_cast<std::size_t>(from.value())]) {
    receive.fail(
        Error(ErrorCode::communication,
              fmt::format("node {} was lost before it could send its message of {} bytes with tag "
                          "{}",
                          from.value(), header.bytes, header.tag)));
    receives_.erase(receive.id);
    forget_request();
    return;
  }
  grant(receive, header.is_contiguous != 0);
}

/// Direct where both sides are contiguous, otherwise in pieces that a slot has room for. What needs
/// slots and finds none waits for those before it.
void Endpoint::grant(Receive& receive, bool sender_is_contiguous) {
  const bool is_direct = sender_is_contiguous && receive.side.contiguous != nullptr;
  receive.piece_bytes = is_direct ? Wire::piece_bytes_max : options_.piece_bytes;
  if (receive.side.contiguous == nullptr && receive.bytes > 0) {
    receives_waiting_.push_back(receive.id);
    serve_waiting();
    return;
  }
  post_pieces(receive);
}

/// Tells the sender to begin when the first pieces have places, and posts them as places come.
void Endpoint::post_pieces(Receive& receive) {
  if (!receive.is_granted) {
    receive.is_granted = true;
    if (free_flows_.empty()) free_flows_.emplace_back(next_flow_++);
    receive.flow = free_flows_.back();
    free_flows_.pop_back();
    NoteHeader header;
    header.kind = NoteHeader::Kind::grant;
    header.send = receive.peer_send;
    header.flow = receive.flow.value();
    header.piece_bytes = receive.piece_bytes;
    send_note(receive.envelope.source, header);
  }
  const bool by_slots = receive.side.contiguous == nullptr;
  while (receive.posted < receive.bytes) {
    const std::int64_t bytes = std::min(receive.piece_bytes, receive.bytes - receive.posted);
    Operation piece{false, receive.id, receive.posted, bytes, std::nullopt};
    std::span<std::byte> into;
    if (by_slots) {
      if (receive.slots.empty()) return;
      piece.slot = receive.slots.back();
      receive.slots.pop_back();
      into = in_.bytes(*piece.slot).first(static_cast<std::size_t>(bytes));
    } else {
      if (receive.in_flight >= direct_pieces) return;
      into = {receive.side.contiguous + receive.posted, static_cast<std::size_t>(bytes)};
    }
    receive.posted += bytes;
    ++receive.in_flight;
    wire_.receive_bytes(receive.envelope.source, receive.flow, into, add(piece));
  }
  if (receive.bytes == 0) end(receive);
}

void Endpoint::end(Receive& receive) {
  if (receive.is_granted) free_flows_.push_back(receive.flow);
  for (const Staging::Slot slot : receive.slots) in_.give_back(slot);
  receive.complete({receive.envelope.source, receive.envelope.tag, receive.bytes, false});
  receives_.erase(receive.id);
  forget_request();
}

}  // namespace heddle::p2p
