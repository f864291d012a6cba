/// How an endpoint receives: from the message that a receive takes to its last piece.

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "node-runtime/transport/datatype/pack.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"

namespace heddle::p2p {

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
  if (source == Pattern::any_source || !peer(source).is_lost) return;
  matching_.cancel(ReceiveId{receive.id});
  fail(receive, Error(ErrorCode::communication,
                      fmt::format("receiving from node {}, which is lost", source.value())));
}

void Endpoint::cancel_receive(std::int64_t id) {
  if (!matching_.cancel(ReceiveId{id})) return;
  const auto found = receives_.find(id);
  found->second->complete({NodeId{-1}, -1, 0, true});
  forget(*found->second);
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
  if (options_.unexpected) options_.unexpected(envelope);
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

void Endpoint::free_eager_slot(NodeId from) {
  if (credits_.slot_freed(from) && !peer(from).is_lost) send_note(from, NoteHeader{});
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
      free_eager_slot(from);
    } else {
      refuse(receive, Error(ErrorCode::usage, *why));
    }
    return fail(receive, Error(ErrorCode::usage, *why));
  }
  if (is_eager) {
    receive.path = Path::eager;
    if (receive.side.lane && receive.bytes > 0) {
      receive.payload.assign(payload.begin(), payload.end());
      free_eager_slot(from);
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
    free_eager_slot(from);
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
  if (header.has_reference != 0) {
    receive.source = read<MemoryReference>(payload);
    if (header.is_contiguous == 0) {
      receive.source_loops = read<LoopShape>(payload, sizeof(MemoryReference));
    }
  }
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

// ---- the path --------------------------------------------------------------------------------

/// Why no kernel copies from the sender's elements to the receiver's; empty if one does.
std::string Endpoint::why_not_between(const Receive& receive) const {
  if (!receive.source_loops) return "the sender's elements are a list of blocks";
  if (!receive.side.lane) return "the receiver's memory is not on a device";
  const auto& here = receive.side.shape->loops;
  if (!here) return "the receiver's elements are a list of blocks";
  return here->goes_with(*receive.source_loops)
             ? ""
             : "the sender's and the receiver's elements are not alike";
}

Situation Endpoint::situation_of(const Receive& receive) {
  const NodeId from = receive.envelope.source;
  const NoteHeader& announced = receive.announcement;
  const Side& side = receive.side;
  const Peer& other = peer(from);
  Situation s;
  s.bytes = receive.bytes;
  s.is_self = from == wire_.node();
  s.sender = {announced.device >= 0, announced.is_contiguous != 0, announced.is_locked != 0};
  s.receiver = {side.lane.has_value(), side.contiguous != nullptr, false};
  if (!side.lane && side.contiguous != nullptr && lanes_.count() > 0) {
    s.receiver.is_locked = lanes_.device(LaneId{0}).reaches_host(
        side.contiguous, static_cast<std::size_t>(side.bytes));
  }
  if (!in_memory_.span().empty() || wire_.window_of(from).empty()) {
    s.no_shared = "the nodes do not share host memory";
  } else if (s.sender.on_device) {
    s.no_shared = other.no_shared_there;
  }
  if (!wire_.shares_host(from)) {
    s.no_get = s.no_put = s.no_ring = s.no_read = "the nodes are on different hosts";
    return s;
  }
  const std::int32_t theirs = announced.device;
  const std::int32_t here = side.lane ? side.lane->value() : -1;
  if (announced.is_contiguous == 0 && announced.device >= 0)
    s.no_between = why_not_between(receive);
  if (receive.source) {
    const LaneId via = lane_for(side, receive.source->handle.device);
    s.maps_get = s.is_self || mappings_.has(from, lanes_.device(via), *receive.source);
    const auto refused = other.not_mapped_here.find({theirs, here});
    if (refused != other.not_mapped_here.end()) s.no_get = refused->second;
  } else {
    s.no_get = "the sender's memory cannot be mapped";
  }
  if (lanes_.count() == 0) s.no_get = "this node has no device";
  s.no_read = wire_.reads(from) ? other.not_read_here : "the system does not let this node read it";
  if (!side.lane) return s;
  const DeviceUuid& device = lanes_.device(*side.lane).info().uuid;
  s.works_here = wire_.node() > from;
  s.same_device = theirs >= 0 && static_cast<std::size_t>(theirs) < other.devices.size() &&
                  other.devices[static_cast<std::size_t>(theirs)].device == device;
  s.takes_turns = s.same_device && !s.is_self && options_.processes_take_turns;
  if (const auto refused = other.not_mapped_there.find({theirs, here});
      refused != other.not_mapped_there.end()) {
    s.no_put = s.no_ring = refused->second;
  }
  if (rings_.empty()) s.no_ring = "rings are switched off";
  if (side.contiguous != nullptr && !s.is_self) {
    const auto handle = lanes_.device(*side.lane).export_memory(side.contiguous);
    const auto told = told_.find({here, handle.allocation});
    s.maps_put = told != told_.end() && told->second.contains(from);
  }
  return s;
}

void Endpoint::decide(Receive& receive) {
  // The sender has to know this node's devices before a grant names one.
  if (receive.side.lane) introduce(receive.envelope.source);
  try {
    receive.choice = choose_path(situation_of(receive), options_.rates, options_.sizes,
                                 receive.bytes == 0 ? Path::message : options_.path);
  } catch (const Error& error) {  // the memory is gone
    refuse(receive, error);
    return fail(receive, error);
  }
  receive.path = receive.bytes == 0 ? Path::message : receive.choice.path();
  switch (receive.path) {
    case Path::get:
      if (receive.announcement.device >= 0) return fetch(receive);
      receive.piece_bytes =
          receive.side.is_host_run() ? options_.sizes.read_piece_bytes : options_.sizes.piece_bytes;
      if (receive.side.is_host_run()) return reading_.push_back(receive.id);
      break;
    case Path::put:
      receive.piece_bytes = Wire::piece_bytes_max;
      return grant(receive);
    case Path::message: {
      const NoteHeader& announced = receive.announcement;
      const bool sender_is_host_run = announced.is_contiguous != 0 && announced.device < 0;
      const bool is_direct = sender_is_host_run && receive.side.is_host_run();
      receive.piece_bytes = is_direct ? Wire::piece_bytes_max : options_.sizes.piece_bytes;
      if (receive.side.is_host_run() || receive.bytes == 0) return grant(receive);
      break;
    }
    case Path::ring:
      receive.piece_bytes = options_.sizes.ring_piece(receive.bytes);
      break;
    case Path::shared:
      receive.piece_bytes = options_.sizes.shared_piece(
          receive.bytes, receive.side.lane.has_value() || receive.announcement.device >= 0);
      break;
    case Path::eager:
      receive.piece_bytes = options_.sizes.piece_bytes;
      break;
  }
  receives_waiting_.push_back(receive.id);
  serve_waiting();
}

std::int64_t Endpoint::slot_bytes(Path path) const {
  return path == Path::ring ? options_.sizes.ring_piece_bytes : options_.sizes.piece_bytes;
}

Staging& Endpoint::slots_of(const Receive& receive) {
  if (receive.path != Path::ring) return in_;
  return rings_[static_cast<std::size_t>(receive.side.lane->value())];
}

/// It has the slots that it asked for.
void Endpoint::give_slots(Receive& receive) {
  if (receive.path == Path::get) return reading_.push_back(receive.id);
  if (receive.path != Path::eager) return grant(receive);
  const Staging::Slot slot = receive.slots.back();
  receive.slots.pop_back();
  std::ranges::copy(receive.payload, in_.at(slot));
  const Operation piece{
      Operation::Kind::unpack, receive.id, {0, receive.bytes}, std::optional(slot)};
  receive.posted = receive.bytes;
  ++receive.in_flight;
  if (drain(receive, piece, {in_.at(slot), nullptr})) piece_is_in(receive, piece);
}

/// Tells the sender how, and to begin.
void Endpoint::grant(Receive& receive) {
  NoteHeader header;
  header.kind = NoteHeader::Kind::grant;
  header.path = receive.path;
  header.send = receive.announcement.send;
  header.receive = receive.id;
  header.piece_bytes = receive.piece_bytes;
  header.begin = slot_bytes(receive.path);
  header.device = receive.side.lane ? receive.side.lane->value() : -1;
  std::vector<std::byte> payload;
  const auto append = [&](const auto& value) {
    const auto bytes = bytes_of(value);
    payload.insert(payload.end(), bytes.begin(), bytes.end());
  };
  const bool by_message = receive.path == Path::message;
  if (by_message) {
    if (free_flows_.empty()) free_flows_.emplace_back(next_flow_++);
    receive.flow = free_flows_.back();
    receive.has_flow = true;
    free_flows_.pop_back();
    header.flow = receive.flow.value();
  } else if (receive.path != Path::put) {
    header.slot = static_cast<std::int32_t>(receive.slots.size());
    for (const Staging::Slot slot : receive.slots) append(slot);
    receive.given.swap(receive.slots);
    receive.posted = std::min(receive.bytes, header.slot * receive.piece_bytes);
  }
  const bool maps_later =
      std::ranges::any_of(receive.choice.estimates, [](const PathEstimate& estimate) {
        return estimate.path == Path::put && estimate.lacks == not_mapped_yet;
      });
  if (receive.path == Path::put || (maps_later && !by_message)) {
    if (const auto reference = reference_to(receive.side, receive.envelope.source)) {
      header.has_reference = 1;
      append(*reference);
    }
  }
  send_note(receive.envelope.source, header, payload);
  if (by_message) post_pieces(receive);
}

/// The sender's device, or this node's, cannot do it that way: another one.
void Endpoint::declined(NodeId from, const NoteHeader& header, std::string_view why) {
  const auto found = receives_.find(header.receive);
  HEDDLE_CHECK(found != receives_.end(), "receive {} is declined, but is not under way",
               header.receive);
  Receive& receive = *found->second;
  if (receive.path == Path::shared) {
    // Its window is of no use to the sender's device.
    peer(from).no_shared_there = why;
  } else {
    const std::int32_t here = receive.side.lane ? receive.side.lane->value() : -1;
    peer(from).not_mapped_there[{header.device, here}] = why;
  }
  for (const Staging::Slot slot : receive.given) slots_of(receive).give_back(slot);
  receive.given.clear();
  receive.posted = 0;
  decide(receive);
}

/// Reads the sender's memory.
void Endpoint::fetch(Receive& receive) {
  const NodeId from = receive.envelope.source;
  receive.via = lane_for(receive.side, receive.source->handle.device);
  try {
    receive.from = map(from, receive.via, *receive.source, receive.mapping);
  } catch (const Error& error) {
    const std::int32_t here = receive.side.lane ? receive.side.lane->value() : -1;
    peer(from).not_mapped_here[{receive.announcement.device, here}] = error.what();
    return decide(receive);
  }
  // Between loops all at once.
  receive.piece_bytes = receive.source_loops ? receive.bytes : Wire::piece_bytes_max;
  const std::shared_ptr<Receive> kept = receives_.at(receive.id);
  // All at once; the count is raised first so that none of them is the last before all are posted.
  const std::int64_t pieces = (receive.bytes + receive.piece_bytes - 1) / receive.piece_bytes;
  receive.in_flight += static_cast<std::int32_t>(pieces);
  while (receive.posted < receive.bytes) {
    const std::int64_t bytes = std::min(receive.piece_bytes, receive.bytes - receive.posted);
    const Operation piece{
        Operation::Kind::fetch, receive.id, {receive.posted, bytes}, std::nullopt};
    Spot spot = receive.from;
    spot.address += receive.posted;
    receive.posted += bytes;
    static_cast<void>(drain(receive, piece, spot));
  }
}

/// Reads a piece of the first of those messages that this node's processor reads.
bool Endpoint::read_on() {
  if (reading_.empty()) return false;
  const std::int64_t id = reading_.front();
  const auto found = receives_.find(id);
  const bool is_over = found == receives_.end() || !read_piece(*found->second);
  if (is_over) reading_.pop_front();
  return true;
}

/// Reads a piece, into the memory itself or by way of a slot, which the caches hold meanwhile.
/// False: there is no more to be read.
bool Endpoint::read_piece(Receive& receive) {
  const NodeId from = receive.envelope.source;
  const Side& side = receive.side;
  const StreamRange range{receive.done,
                          std::min(receive.piece_bytes, receive.bytes - receive.done)};
  const std::int64_t begun_ns = options_.fragment ? now_ns() : 0;
  std::byte* const place =
      side.is_host_run() ? side.contiguous + range.begin : in_.at(receive.slots.back());
  try {
    wire_.read(from, std::bit_cast<std::uint64_t>(receive.announcement.begin + range.begin),
               {place, static_cast<std::size_t>(range.bytes)});
  } catch (const Error& error) {
    if (receive.done > 0) {
      refuse(receive, error);
      fail(receive, error);
      return false;
    }
    peer(from).not_read_here = error.what();
    give_back(receive);
    decide(receive);
    return false;
  }
  if (!side.is_host_run()) unpack(*side.shape->plan, side.shape->count, range, place, side.memory);
  if (options_.fragment) {
    options_.fragment({FragmentReport::Kind::fetch, receive.id, range, begun_ns, now_ns()});
  }
  ++receive.pieces;
  receive.done += range.bytes;
  if (receive.done < receive.bytes) return true;
  end_if_all_is_here(receive);
  return false;
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
  const auto found = receives_.find(header.receive);
  HEDDLE_CHECK(found != receives_.end(), "node {} has filled receive {}, which is over",
               from.value(), header.receive);
  const std::shared_ptr<Receive> kept = found->second;
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
  const Device* device = receive.path == Path::ring ? &lanes_.device(*receive.side.lane) : nullptr;
  const Spot from_slot{slots_of(receive).at(header.slot), device};
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
      lanes_.transfer(*side.lane, *receive.source_loops, from, *side.shape->loops,
                      side.memory + side.shape->first, id);
    } else if (side.lane) {
      lanes_.unpack(*side.lane, side.elements(), piece.range, from, id);
    } else {
      lanes_.copy(receive.via, Lanes::Direction::in, {side.contiguous + piece.range.begin, nullptr},
                  from, static_cast<std::size_t>(piece.range.bytes), id);
    }
  } catch (const Error& error) {
    completed(id, error.what());
  }
  return false;
}

void Endpoint::came(const Operation& piece, const std::optional<std::string>& failure) {
  const auto found = receives_.find(piece.request);
  HEDDLE_CHECK(found != receives_.end(), "a piece of receive {}, which is over", piece.request);
  const std::shared_ptr<Receive> kept = found->second;
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
  const auto found = receives_.find(header.receive);
  if (found == receives_.end()) return;  // it is over, for this or another reason
  Receive& receive = *found->second;
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
  const bool is_wanted =
      std::ranges::any_of(receive.choice.estimates, [](const PathEstimate& estimate) {
        return estimate.path == Path::get && estimate.lacks == not_mapped_yet;
      });
  if (!is_wanted) return;
  const NodeId from = receive.envelope.source;
  const std::string refusal = map_for_the_next(
      from, lane_for(receive.side, receive.source->handle.device), *receive.source);
  if (refusal.empty()) return;
  const std::int32_t here = receive.side.lane ? receive.side.lane->value() : -1;
  peer(from).not_mapped_here[{receive.announcement.device, here}] = refusal;
}

void Endpoint::end(Receive& receive) {
  give_back(receive);
  ++statistics_.received[static_cast<std::size_t>(receive.path)];
  if (options_.report) {
    options_.report({receive.envelope.source, wire_.node(), receive.envelope.tag, receive.bytes,
                     receive.pieces, receive.path, receive.choice,
                     static_cast<double>(now_ns() - receive.begun_ns) * 1e-3});
  }
  receive.complete(
      {receive.envelope.source, receive.envelope.tag, receive.bytes, false, receive.path});
  map_source_for_the_next(receive);
  forget(receive);
}

}  // namespace heddle::p2p
