#include "node-runtime/transport/p2p/path_query.hpp"

#include <algorithm>
#include <string_view>

#include "base/error.hpp"

namespace heddle::p2p {
namespace {

LoopShape run_of(std::int64_t bytes) {
  LoopShape run;
  run.nest.body_bytes = bytes;
  return run;
}

/// The elements of one side; no loops: they are a list of blocks.
struct Elements {
  std::optional<LoopShape> loops;
  bool on_device = false;
};

/// Elements that a note describes.
Elements elements_of(const NoteHeader& header, const std::optional<LoopShape>& loops) {
  return {header.is_contiguous != 0 ? run_of(header.bytes) : loops, header.device >= 0};
}

Elements elements_of(const Side& side) {
  return {side.contiguous != nullptr ? run_of(side.bytes) : side.shape->loops,
          side.lane.has_value()};
}

/// Why one kernel cannot copy from the sender's elements to the receiver's as they lie; empty if it
/// can.
std::string_view why_not_between(const Elements& from, const Elements& to) {
  if (!from.loops) return "the sender's elements are a list of blocks";
  if (!to.loops) return "the receiver's elements are a list of blocks";
  bool fits = to.loops->goes_with(*from.loops);
  if (!from.on_device) fits = from.loops->goes_far_with(*to.loops);
  if (!to.on_device) fits = to.loops->goes_far_with(*from.loops);
  return fits ? "" : "the sender's and the receiver's elements are not alike";
}

/// The peer's memory is on this very GPU or, where it is host memory, one of its devices is.
bool is_at(const Neighbour& peer, std::int32_t its_device, const DeviceUuid& gpu) {
  const auto found = std::ranges::find(peer.devices, gpu, &DeviceIntroduction::device);
  if (its_device < 0) return found != peer.devices.end();
  return found - peer.devices.begin() == its_device;
}

std::string_view refusal_of(const std::map<DevicePair, std::string_view>& refused,
                            DevicePair pair) {
  const auto found = refused.find(pair);
  return found == refused.end() ? std::string_view() : found->second;
}

void add_get(const SharedParts& shared, const Receive& receive, PathQuery& query) {
  const NodeId from = receive.envelope.source;
  const auto& source = receive.announcement.source;
  if (!source) {
    query.no_get = "the sender's memory cannot be mapped";
    return;
  }
  const LaneId via = lane_for(shared.lanes, receive.side, source->handle.device);
  query.maps_get = shared.neighbours.has_mapped(from, via, *source);
  query.no_get = refusal_of(shared.neighbours.of(from).not_mapped_here, devices_of(receive));
}

void add_put(const SharedParts& shared, const Receive& receive, PathQuery& query) {
  const Side& side = receive.side;
  const bool may_put = side.contiguous != nullptr || query.no_between.empty();
  if (!side.lane || !may_put) return;
  try {
    query.maps_put = shared.neighbours.may_be_mapped_by(receive.envelope.source, side);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::communication) throw;
    query.no_put = "the receiver's memory cannot be mapped";
  }
}

/// Both nodes are on one host, this one has a device, and one side is on a device.
void add_facts_of_devices(const SharedParts& shared, const Receive& receive, PathQuery& query) {
  const NodeId from = receive.envelope.source;
  const Neighbour& other = shared.neighbours.of(from);
  if (!query.sender.is_contiguous || !query.receiver.is_contiguous) {
    query.no_between =
        why_not_between(elements_of(receive.announcement.header, receive.announcement.loops),
                        {receive.side.shape->loops, query.receiver.on_device});
  }
  query.no_put = query.no_ring = refusal_of(other.not_mapped_there, devices_of(receive));
  const std::optional<DeviceUuid> device = device_between(shared, receive);
  if (!shared.slots.has_rings()) query.no_ring = "rings are switched off";
  if (!device) query.no_ring = "the sender's device is not known";
  query.works_here = shared.wire.node() > from;
  query.same_device = device && (query.receiver.on_device
                                     ? is_at(other, receive.announcement.header.device, *device)
                                     : shared.lanes.lane_on(*device).has_value());
  query.takes_turns = query.same_device && !query.is_self && shared.options.processes_take_turns;
  add_get(shared, receive, query);
  add_put(shared, receive, query);
}

/// Of a message between nodes of one host, this one with a device, one side on a device.
void add_facts_of_devices(const SharedParts& shared, const Send& send, const Room& room,
                          PathQuery& query) {
  const Neighbour& other = shared.neighbours.of(send.to);
  const std::int32_t theirs = room.header.device;
  const DevicePair pair{theirs, send.side.lane ? send.side.lane->value() : -1};
  if (!query.sender.is_contiguous || !query.receiver.is_contiguous) {
    query.no_between =
        why_not_between(elements_of(send.side), elements_of(room.header, room.loops));
  }
  query.no_put = query.no_ring = refusal_of(other.not_mapped_here, pair);
  query.no_get = refusal_of(other.not_mapped_there, pair);
  std::optional<DeviceUuid> device;
  if (theirs < 0 && send.side.lane) device = shared.lanes.device(*send.side.lane).info().uuid;
  if (theirs >= 0 && static_cast<std::size_t>(theirs) < other.devices.size()) {
    device = other.devices[static_cast<std::size_t>(theirs)].device;
  }
  if (!shared.slots.has_rings()) query.no_ring = "rings are switched off";
  if (!device) query.no_ring = "the receiver's device is not known";
  query.works_here = send.to > shared.wire.node();
  query.same_device = device && (theirs >= 0 ? shared.lanes.lane_on(*device).has_value()
                                             : is_at(other, theirs, *device));
  query.takes_turns = query.same_device && !query.is_self && shared.options.processes_take_turns;
  if (!query.receiver.on_device) return;
  if (!room.memory) {
    query.no_put = "the receiver's memory cannot be mapped";
    return;
  }
  const LaneId via = lane_for(shared.lanes, send.side, room.memory->handle.device);
  query.maps_put = shared.neighbours.has_mapped(send.to, via, *room.memory);
}

}  // namespace

std::optional<DeviceUuid> device_between(const SharedParts& shared, const Receive& receive) {
  if (receive.side.lane) return shared.lanes.device(*receive.side.lane).info().uuid;
  const std::int32_t theirs = receive.announcement.header.device;
  const auto& devices = shared.neighbours.of(receive.envelope.source).devices;
  if (theirs < 0 || static_cast<std::size_t>(theirs) >= devices.size()) return std::nullopt;
  return devices[static_cast<std::size_t>(theirs)].device;
}

PathQuery make_path_query(const SharedParts& shared, const Receive& receive) {
  const NodeId from = receive.envelope.source;
  const NoteHeader& announced = receive.announcement.header;
  const Side& side = receive.side;
  const Neighbour& other = shared.neighbours.of(from);
  PathQuery query;
  query.bytes = receive.bytes;
  query.is_self = from == shared.wire.node();
  query.sender = {announced.device >= 0, announced.is_contiguous != 0, announced.is_locked != 0};
  query.receiver = {side.lane.has_value(), side.contiguous != nullptr,
                    is_locked(shared.lanes, side)};
  if (!shared.slots.are_shared() || shared.wire.window_of(from).empty()) {
    query.no_shared = "the nodes do not share host memory";
  } else if (query.sender.on_device) {
    query.no_shared = other.no_shared_there;
  }
  if (!shared.wire.shares_host(from)) {
    query.no_get = query.no_put = query.no_ring = query.no_read =
        "the nodes are on different hosts";
    return query;
  }
  query.no_read =
      shared.wire.reads(from) ? other.not_read_here : "the system does not let this node read it";
  if (!query.sender.on_device && !query.receiver.on_device) return query;
  if (shared.lanes.count() == 0) {
    query.no_get = query.no_put = query.no_ring = "this node has no device";
  } else {
    add_facts_of_devices(shared, receive, query);
  }
  return query;
}

PathQuery make_handover_query(const SharedParts& shared, const Send& send, const Room& room) {
  const Side& side = send.side;
  const Neighbour& other = shared.neighbours.of(send.to);
  PathQuery query;
  query.bytes = side.bytes;
  query.is_self = send.to == shared.wire.node();
  query.sender = {side.lane.has_value(), side.contiguous != nullptr, is_locked(shared.lanes, side)};
  query.receiver = {room.header.device >= 0, room.header.is_contiguous != 0,
                    room.header.is_locked != 0};
  if (!shared.slots.are_shared() || shared.wire.window_of(send.to).empty()) {
    query.no_shared = "the nodes do not share host memory";
  } else if (query.sender.on_device) {
    query.no_shared = other.no_shared_there;
  }
  if (!shared.wire.shares_host(send.to)) {
    query.no_get = query.no_put = query.no_ring = query.no_read =
        "the nodes are on different hosts";
    return query;
  }
  if (!query.sender.on_device && !query.receiver.on_device) return query;
  if (shared.lanes.count() == 0) {
    query.no_get = query.no_put = query.no_ring = "this node has no device";
  } else {
    add_facts_of_devices(shared, send, room, query);
  }
  return query;
}

}  // namespace heddle::p2p
