#include "node-runtime/transport/p2p/receives.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "node-runtime/transport/datatype/pack.hpp"
#include "node-runtime/transport/p2p/path_query.hpp"

namespace heddle::p2p {

Receive& Receives::add(std::shared_ptr<Receive> receive) {
  const std::int64_t id = receive->id;
  return *receives_.emplace(id, std::move(receive));
}

std::shared_ptr<Receive> Receives::find(std::int64_t id) const {
  const auto* const found = receives_.find(id);
  return found == nullptr ? nullptr : *found;
}

std::int64_t Receives::arrived(std::int64_t id) const {
  const auto* const found = receives_.find(id);
  return found == nullptr || (*found)->is_taken ? 0 : (*found)->prefix;
}

/// Pieces may end in any order.
void Receives::count_prefix(Receive& receive, const StreamRange& range) {
  receive.beyond_gap.push_back(range);
  for (bool grows = true; grows;) {
    const auto next = std::ranges::find(receive.beyond_gap, receive.prefix, &StreamRange::begin);
    grows = next != receive.beyond_gap.end();
    if (!grows) return;
    receive.prefix += next->bytes;
    receive.beyond_gap.erase(next);
  }
}

// ---- places ----------------------------------------------------------------------------------

Staging& Receives::slots_of(const Receive& receive) const {
  return receive.path == Path::ring ? shared_.slots.ring(receive.via) : shared_.slots.in();
}

void Receives::take_flow(Receive& receive) {
  if (free_flows_.empty()) free_flows_.emplace_back(next_flow_++);
  receive.flow = free_flows_.back();
  receive.has_flow = true;
  free_flows_.pop_back();
}

void Receives::give_back(Receive& receive) {
  if (std::exchange(receive.has_flow, false)) free_flows_.push_back(receive.flow);
  for (const Staging::Slot slot : receive.slots) slots_of(receive).give_back(slot);
  for (const Staging::Slot slot : receive.given) slots_of(receive).give_back(slot);
  receive.slots.clear();
  receive.given.clear();
}

// ---- pieces ----------------------------------------------------------------------------------

void Receives::post_pieces(Receive& receive) {
  const bool by_slots = !receive.side.is_host_run();
  while (receive.posted < receive.bytes) {
    const std::int64_t bytes = std::min(receive.plan.piece_bytes, receive.bytes - receive.posted);
    Piece piece{Piece::Kind::receive, receive.id, {receive.posted, bytes}, std::nullopt};
    std::byte* into = nullptr;
    if (by_slots) {
      if (receive.slots.empty()) return;
      piece.slot = receive.slots.back();
      receive.slots.pop_back();
      into = shared_.slots.in().at(*piece.slot);
    } else {
      if (receive.in_flight >= direct_pieces) return;
      into = receive.side.contiguous + receive.posted;
    }
    receive.posted += bytes;
    ++receive.in_flight;
    shared_.wire.receive_bytes(receive.envelope.source, receive.flow,
                               {into, static_cast<std::size_t>(bytes)}, shared_.pieces.add(piece));
  }
  if (receive.bytes == 0) end(receive);
}

void Receives::post_expected(Receive& receive) {
  take_flow(receive);
  receive.path = Path::message;
  while (receive.posted < receive.bytes) {
    const std::int64_t bytes = std::min(receive.plan.piece_bytes, receive.bytes - receive.posted);
    const Piece piece{Piece::Kind::receive, receive.id, {receive.posted, bytes}, std::nullopt};
    std::byte* const into = receive.side.contiguous + receive.posted;
    receive.posted += bytes;
    ++receive.in_flight;
    ++posted_ahead_;
    shared_.wire.receive_bytes(receive.envelope.source, receive.flow,
                               {into, static_cast<std::size_t>(bytes)}, shared_.pieces.add(piece));
  }
}

void Receives::blank(const Piece& piece) {
  Receive& receive = *receives_.at(piece.request);
  HEDDLE_CHECK(receive.is_expected && !receive.is_taken,
               "a piece of receive {} is empty, but its message is under way", receive.id);
  --receive.in_flight;
  --posted_ahead_;
}

void Receives::unpack_payload(Receive& receive) {
  const Staging::Slot slot = receive.slots.back();
  receive.slots.pop_back();
  std::byte* const place = shared_.slots.in().at(slot);
  std::ranges::copy(receive.payload, place);
  const Piece piece{Piece::Kind::unpack, receive.id, {0, receive.bytes}, std::optional(slot)};
  receive.posted = receive.bytes;
  ++receive.in_flight;
  if (drain(receive, piece, {place, nullptr})) piece_is_in(receive, piece);
}

void Receives::fetch(Receive& receive) {
  const std::shared_ptr<Receive> kept = receives_.at(receive.id);
  const std::int64_t piece_bytes = receive.plan.piece_bytes;
  // All at once; the count is raised first so that no piece is the last before all are posted.
  const std::int64_t pieces = (receive.bytes + piece_bytes - 1) / piece_bytes;
  receive.in_flight += static_cast<std::int32_t>(pieces);
  while (receive.posted < receive.bytes) {
    const std::int64_t bytes = std::min(piece_bytes, receive.bytes - receive.posted);
    const Piece piece{Piece::Kind::fetch, receive.id, {receive.posted, bytes}, std::nullopt};
    Spot spot = receive.from;
    spot.address += receive.posted;
    receive.posted += bytes;
    static_cast<void>(drain(receive, piece, spot));
  }
}

void Receives::was_read(Receive& receive, std::int64_t bytes) {
  ++receive.pieces;
  receive.done += bytes;
  receive.posted = receive.done;
  end_if_all_is_here(receive);
}

void Receives::filled(NodeId from, const NoteHeader& header) {
  const auto* const found = receives_.find(header.receive);
  HEDDLE_CHECK(found != nullptr, "node {} has filled receive {}, which is over", from.value(),
               header.receive);
  const std::shared_ptr<Receive> kept = *found;
  Receive& receive = *kept;
  if (receive.is_expected && !receive.is_taken) {  // the sender has chosen
    receive.is_taken = true;
    receive.path = Path::put;
    receive.posted = receive.bytes;
  }
  if (receive.path == Path::message) {
    receive.has_word = true;
    return end_if_all_is_here(receive);
  }
  Piece piece{Piece::Kind::unpack, receive.id, {header.begin, header.bytes}, std::nullopt};
  ++receive.in_flight;
  if (receive.path == Path::put) return piece_is_in(receive, piece);
  piece.slot = header.slot;
  std::erase(receive.given, header.slot);
  const Device* device = receive.path == Path::ring ? &shared_.lanes.device(receive.via) : nullptr;
  const Spot from_slot{slots_of(receive).at(header.slot), device, device != nullptr};
  if (receive.broken || drain(receive, piece, from_slot)) piece_is_in(receive, piece);
}

/// Unpacks a piece. True: it is done; otherwise ended() is called when a device has done it, or at
/// once where the device refuses.
bool Receives::drain(Receive& receive, const Piece& piece, const Spot& from) {
  const Side& side = receive.side;
  if (!side.lane && from.device == nullptr) {
    unpack(*side.shape->plan, side.shape->count, piece.range, from.address, side.memory);
    return true;
  }
  const OperationId id = shared_.pieces.add(piece);
  Lanes& lanes = shared_.lanes;
  try {
    if (piece.kind == Piece::Kind::fetch && receive.announcement.loops) {
      lanes.transfer(receive.via, Lanes::Direction::in, {*receive.announcement.loops, from},
                     loops_of(lanes, side), id);
    } else {
      lanes.unpack(receive.via, side.elements(), piece.range, from, id);
    }
  } catch (const Error& error) {
    ended(shared_.pieces.take(id), error.what());
  }
  return false;
}

void Receives::ended(const Piece& piece, const std::optional<std::string>& failure) {
  const auto* const found = receives_.find(piece.request);
  HEDDLE_CHECK(found != nullptr, "a piece of receive {}, which is over", piece.request);
  const std::shared_ptr<Receive> kept = *found;
  Receive& receive = *kept;
  if (failure && !receive.broken) {
    receive.broken =
        Error(ErrorCode::internal,
              fmt::format("receiving {} bytes with tag {} from node {} on node {}: {}",
                          receive.bytes, receive.envelope.tag, receive.envelope.source.value(),
                          shared_.wire.node().value(), *failure));
  }
  if (piece.kind == Piece::Kind::receive && piece.slot && !receive.broken) {
    Piece next = piece;
    next.kind = Piece::Kind::unpack;
    if (!drain(receive, next, {shared_.slots.in().at(*piece.slot), nullptr})) return;
  }
  piece_is_in(receive, piece);
}

void Receives::piece_is_in(Receive& receive, const Piece& piece) {
  --receive.in_flight;
  if (receive.is_expected && !receive.is_taken) {
    --posted_ahead_;
    count_prefix(receive, piece.range);
  }
  ++receive.pieces;
  receive.done += piece.range.bytes;
  if (receive.is_cut) {
    if (piece.slot) slots_of(receive).give_back(*piece.slot);
    return fail(receive, *receive.broken);
  }
  const bool sender_fills = receive.path == Path::shared || receive.path == Path::ring;
  if (piece.slot && sender_fills && receive.posted < receive.bytes) {
    give_slot(receive, *piece.slot);
  } else if (piece.slot) {
    receive.slots.push_back(*piece.slot);
  }
  if (receive.done < receive.bytes && receive.path == Path::message) post_pieces(receive);
  end_if_all_is_here(receive);
}

/// The sender may fill the slot again.
void Receives::give_slot(Receive& receive, Staging::Slot slot) {
  NoteHeader header;
  header.kind = NoteHeader::Kind::slot;
  header.send = receive.announcement.header.send;
  header.slot = slot;
  receive.given.push_back(slot);
  receive.posted = std::min(receive.bytes, receive.posted + receive.plan.piece_bytes);
  shared_.notes.send(receive.envelope.source, header);
}

/// Ends the receive when all bytes have arrived and, for pieces that the sender's device packed for
/// the wire, also the note that packing succeeded: pieces may overtake the note that it failed.
void Receives::end_if_all_is_here(Receive& receive) {
  const bool needs_word = receive.path == Path::message && receive.announcement.header.device >= 0;
  if (receive.done < receive.bytes || (needs_word && !receive.has_word)) return;
  if (receive.broken) {
    if (receive.path == Path::get) refuse(receive, *receive.broken);
    return fail(receive, *receive.broken);
  }
  if (receive.path == Path::get) {
    NoteHeader header;
    header.kind = NoteHeader::Kind::fetched;
    header.send = receive.announcement.header.send;
    shared_.notes.send(receive.envelope.source, header);
  }
  end(receive);
}

void Receives::sender_broke(Receive& receive, const Error& why) {
  if (!receive.broken) receive.broken = why;
  // Over the wire all pieces come nevertheless; otherwise none does.
  if (receive.path != Path::message) return fail(receive, *receive.broken);
  receive.has_word = true;
  end_if_all_is_here(receive);
}

// ---- ends ------------------------------------------------------------------------------------

void Receives::refuse(const Receive& receive, const Error& why) {
  NoteHeader answer;
  answer.kind = NoteHeader::Kind::refuse;
  answer.send = receive.announcement.header.send;
  answer.slot = static_cast<std::int32_t>(why.code());
  shared_.notes.send(receive.envelope.source, answer, bytes_of(std::string_view(why.what())));
}

void Receives::fail(Receive& receive, Error why) {
  if (!receive.broken) receive.broken = std::move(why);
  receive.is_cut = true;
  if (receive.in_flight > 0) return;
  give_back(receive);
  receive.RequestState::fail(*receive.broken);
  forget(receive);
}

void Receives::cancelled(Receive& receive) {
  receive.complete({NodeId{-1}, -1, 0, true});
  forget(receive);
}

void Receives::end(Receive& receive) {
  give_back(receive);
  ++statistics_[static_cast<std::size_t>(receive.path)];
  if (shared_.options.report) {
    shared_.options.report({receive.envelope.source, shared_.wire.node(), receive.envelope.tag,
                            receive.bytes, receive.pieces, receive.path,
                            receive.choice ? std::optional(*receive.choice) : std::nullopt,
                            static_cast<double>(now_ns() - receive.begun_ns) * 1e-3});
  }
  receive.complete(
      {receive.envelope.source, receive.envelope.tag, receive.bytes, false, receive.path});
  map_source_for_the_next(receive);
  forget(receive);
}

void Receives::map_source_for_the_next(const Receive& receive) {
  if (!receive.maps_source) return;
  const NodeId from = receive.envelope.source;
  const MemoryReference& source = *receive.announcement.source;
  const LaneId via = lane_for(shared_.lanes, receive.side, source.handle.device);
  const std::string refusal = shared_.neighbours.map_for_the_next(from, via, source);
  if (refusal.empty()) return;
  shared_.neighbours.not_mapped_here(from, devices_of(receive), refusal);
}

/// Handles may outlive the endpoint, so their references into it are dropped.
void Receives::forget(Receive& receive) {
  receive.mapping.reset();
  shared_.requests.end(receives_.extract(receive.id));
}

void Receives::lost(NodeId node, const Error& why) {
  // Operations of the wire do not complete any more; those of devices do.
  std::map<std::int64_t, std::int32_t> dropped;  // pieces by receive
  std::vector<OperationId> orphans;
  shared_.pieces.for_each([&](OperationId id, const Piece& piece) {
    if (piece.kind != Piece::Kind::receive) return;
    if (receives_.at(piece.request)->envelope.source != node) return;
    if (piece.slot) shared_.slots.in().give_back(*piece.slot);
    ++dropped[piece.request];
    orphans.push_back(id);
  });
  for (const OperationId id : orphans) shared_.pieces.drop(id);
  std::vector<std::shared_ptr<Receive>> receives;
  receives_.for_each([&](std::int64_t, const auto& receive) {
    const bool is_affected =
        receive->is_taken ? receive->envelope.source == node : receive->pattern.source == node;
    if (is_affected) receives.push_back(receive);
  });
  for (const auto& receive : receives) {
    receive->in_flight -= dropped[receive->id];
    if (receive->is_expected && !receive->is_taken) posted_ahead_ -= dropped[receive->id];
    fail(*receive, why);
  }
}

void Receives::abandon(const Error& why) {
  receives_.for_each([&](std::int64_t, const auto& receive) {
    receive->mapping.reset();
    receive->fail(why);
  });
  receives_.clear();
}

// ---- questions -------------------------------------------------------------------------------

void Receives::taken_back(NodeId node, const ReleasedMemory& memory) {
  receives_.for_each([&](std::int64_t, const auto& receive) {
    if (!receive->maps_source || receive->envelope.source != node) return;
    const IpcMemoryHandle& source = receive->announcement.source->handle;
    if (source.allocation == memory.allocation && source.device == memory.device) {
      receive->maps_source = false;
    }
  });
}

std::string Receives::user_of(const Release& memory) const {
  std::string user;
  receives_.for_each([&](std::int64_t, const auto& receive) {
    if (memory.is_of(receive->side)) user = "a message is being received into it";
  });
  return user;
}

bool Receives::is_valid() const {
  bool is_right = true;
  std::map<std::int64_t, std::int32_t> under_way;  // pieces by receive
  std::map<const Staging*, std::size_t> used;
  std::size_t flows = free_flows_.size();
  std::int32_t posted_ahead = 0;
  shared_.pieces.for_each([&](OperationId, const Piece& piece) {
    if (piece.is_of_send()) return;
    ++under_way[piece.request];
    const auto* const receive = receives_.find(piece.request);
    if (receive == nullptr) {
      is_right = false;
    } else if (piece.slot) {
      ++used[&slots_of(**receive)];
    }
  });
  receives_.for_each([&](std::int64_t id, const auto& receive) {
    if (!receive->is_taken && !receive->is_expected) return;
    if (!receive->is_taken) posted_ahead += receive->in_flight;
    const bool is_counted = receive->in_flight == under_way[id];
    const bool is_in_order =
        0 <= receive->done && receive->done <= receive->posted && receive->posted <= receive->bytes;
    if (!is_counted || !is_in_order) is_right = false;
    const std::size_t held = receive->slots.size() + receive->given.size();
    if (held > 0) used[&slots_of(*receive)] += held;
    if (receive->has_flow) ++flows;
  });
  const auto is_accounted = [&](const Staging& slots) { return used[&slots] == slots.used(); };
  bool are_slots_right = is_accounted(shared_.slots.in());
  for (std::int32_t i = 0; i < shared_.lanes.count() && shared_.slots.has_rings(); ++i) {
    are_slots_right = are_slots_right && is_accounted(shared_.slots.ring(LaneId{i}));
  }
  return is_right && are_slots_right && posted_ahead == posted_ahead_ &&
         flows == static_cast<std::size_t>(next_flow_);
}

}  // namespace heddle::p2p
