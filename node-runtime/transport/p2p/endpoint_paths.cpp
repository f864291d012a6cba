/// How the receiver of a message decides which way it comes, and lets it come that way.

#include <algorithm>
#include <bit>
#include <string>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "node-runtime/transport/datatype/pack.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"

namespace heddle::p2p {

namespace {

LoopShape run_of(std::int64_t bytes) {
  LoopShape run;
  run.nest.body_bytes = bytes;
  return run;
}

/// Why nothing is copied from the sender's elements, of these loops if it has told any, to the
/// receiver's as they lie; empty if it is.
std::string_view why_not_between(const NoteHeader& announced, std::optional<LoopShape> there,
                                 const std::optional<LoopShape>& here, bool receiver_on_device) {
  if (announced.is_contiguous != 0) there = run_of(announced.bytes);
  if (!there) return "the sender's elements are a list of blocks";
  if (!here) return "the receiver's elements are a list of blocks";
  bool goes = here->goes_with(*there);
  if (announced.device < 0) goes = there->goes_far_with(*here);
  if (!receiver_on_device) goes = here->goes_far_with(*there);
  return goes ? "" : "the sender's and the receiver's elements are not alike";
}

}  // namespace

/// The GPU at which a message between a device and the host, or between devices, comes by a ring;
/// nothing where that is not known.
std::optional<DeviceUuid> Endpoint::device_between(const Receive& receive) const {
  if (receive.side.lane) return lanes_.device(*receive.side.lane).info().uuid;
  const std::int32_t theirs = receive.announcement.device;
  const auto& devices = peer(receive.envelope.source).devices;
  if (theirs < 0 || static_cast<std::size_t>(theirs) >= devices.size()) return std::nullopt;
  return devices[static_cast<std::size_t>(theirs)].device;
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
  s.receiver = {side.lane.has_value(), side.contiguous != nullptr, is_locked(side)};
  if (!in_memory_.span().empty() || wire_.window_of(from).empty()) {
    s.no_shared = "the nodes do not share host memory";
  } else if (s.sender.on_device) {
    s.no_shared = other.no_shared_there;
  }
  if (!wire_.shares_host(from)) {
    s.no_get = s.no_put = s.no_ring = s.no_read = "the nodes are on different hosts";
    return s;
  }
  s.no_read = wire_.reads(from) ? other.not_read_here : "the system does not let this node read it";
  if (!s.sender.on_device && !s.receiver.on_device) return s;
  if (lanes_.count() == 0) {
    s.no_get = s.no_put = s.no_ring = "this node has no device";
  } else {
    add_facts_of_device(receive, s);
  }
  return s;
}

/// The peer's memory is on this very GPU or, where it is on its host, one of its devices is.
bool Endpoint::is_at(const Peer& peer, std::int32_t its_device, const DeviceUuid& gpu) {
  const auto found = std::ranges::find(peer.devices, gpu, &DeviceIntroduction::device);
  if (its_device < 0) return found != peer.devices.end();
  return found - peer.devices.begin() == its_device;
}

/// What is so because a side is on a device of the host that this node reaches, perhaps.
void Endpoint::add_facts_of_device(const Receive& receive, Situation& s) {
  const NodeId from = receive.envelope.source;
  const Side& side = receive.side;
  const Peer& other = peer(from);
  const std::int32_t theirs = receive.announcement.device;
  const std::int32_t here = side.lane ? side.lane->value() : -1;
  if (!s.sender.is_contiguous || !s.receiver.is_contiguous) {
    s.no_between = why_not_between(receive.announcement, receive.source_loops, side.shape->loops,
                                   s.receiver.on_device);
  }
  if (receive.source) {
    const LaneId via = lane_for(side, receive.source->handle.device);
    s.maps_get = s.is_self || mappings_.has(from, lanes_.device(via), *receive.source);
    const auto refused = other.not_mapped_here.find({theirs, here});
    if (refused != other.not_mapped_here.end()) s.no_get = refused->second;
  } else {
    s.no_get = "the sender's memory cannot be mapped";
  }
  if (const auto refused = other.not_mapped_there.find({theirs, here});
      refused != other.not_mapped_there.end()) {
    s.no_put = s.no_ring = refused->second;
  }
  const std::optional<DeviceUuid> device = device_between(receive);
  if (rings_.empty()) s.no_ring = "rings are switched off";
  if (!device) s.no_ring = "the sender's device is not known";
  s.works_here = wire_.node() > from;
  s.same_device = device && (s.receiver.on_device ? is_at(other, theirs, *device)
                                                  : lanes_.lane_on(*device).has_value());
  s.takes_turns = s.same_device && !s.is_self && options_.processes_take_turns;
  const bool may_put = side.contiguous != nullptr || s.no_between.empty();
  if (!side.lane || !may_put) return;
  try {
    const MemoryReference reference = handles_.refer_to(lanes_.device(*side.lane), side.first());
    const auto told = told_.find({here, reference.handle.allocation});
    s.maps_put = s.is_self || (told != told_.end() && told->second.contains(from));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::communication) throw;
    s.no_put = "the receiver's memory cannot be mapped";
  }
}

/// As choose_path(), which takes longer than to see that it is asked the same as the last time.
const PathChoice& Endpoint::choose(const Situation& situation) {
  if (!last_choice_ || last_choice_->first != situation) {
    const std::optional<Path> forced = situation.bytes == 0 ? Path::message : options_.path;
    last_choice_.emplace(situation, choose_path(situation, options_.rates, options_.sizes, forced));
  }
  return last_choice_->second;
}

void Endpoint::decide(Receive& receive) {
  // The sender has to know this node's devices before a grant names one.
  if (lanes_.count() > 0) introduce(receive.envelope.source);
  try {
    const PathChoice& choice = choose(situation_of(receive));
    receive.path = receive.bytes == 0 ? Path::message : choice.path();
    receive.maps_source = choice.would_map_for(Path::get);
    receive.maps_target = choice.would_map_for(Path::put);
    if (options_.report) receive.choice = std::make_unique<const PathChoice>(choice);
  } catch (const Error& error) {  // the memory is gone
    refuse(receive, error);
    return fail(receive, error);
  }
  switch (receive.path) {
    case Path::get:
      if (receive.announcement.device >= 0) return fetch(receive);
      receive.piece_bytes =
          receive.side.is_host_run() ? options_.sizes.read_piece_bytes : options_.sizes.piece_bytes;
      if (receive.side.is_host_run()) return reading_.push_back(receive.id);
      break;
    case Path::put:
      // Between loops all at once.
      receive.piece_bytes =
          receive.side.contiguous != nullptr ? Wire::piece_bytes_max : receive.bytes;
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
      receive.via = lane_for(receive.side, *device_between(receive));
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
  return rings_[static_cast<std::size_t>(receive.via.value())];
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
  if (receive.path == Path::ring) header.device = receive.via.value();
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
  if (receive.path == Path::put || (receive.maps_target && !by_message)) {
    if (const auto reference = reference_to(receive.side, receive.envelope.source)) {
      header.has_reference = 1;
      append(*reference);
      if (receive.path == Path::put && receive.side.contiguous == nullptr) {
        header.has_loops = 1;
        append(*receive.side.shape->loops);
      }
    }
  }
  send_note(receive.envelope.source, header, payload);
  if (by_message) post_pieces(receive);
}

/// The sender's device, or this node's, cannot do it that way: another one.
void Endpoint::declined(NodeId from, const NoteHeader& header, std::string_view why) {
  const auto* const found = receives_.find(header.receive);
  HEDDLE_CHECK(found != nullptr, "receive {} is declined, but is not under way", header.receive);
  Receive& receive = **found;
  if (receive.path == Path::shared) {
    // Its window is of no use to the sender's device.
    peer(from).no_shared_there = keep(why);
  } else {
    const std::int32_t here = receive.side.lane ? receive.side.lane->value() : -1;
    peer(from).not_mapped_there[{header.device, here}] = keep(why);
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
    peer(from).not_mapped_here[{receive.announcement.device, here}] = keep(error.what());
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
  const auto* const found = receives_.find(id);
  const bool is_over = found == nullptr || !read_piece(**found);
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
    peer(from).not_read_here = keep(error.what());
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

}  // namespace heddle::p2p
