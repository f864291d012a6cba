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

/// Why one kernel cannot copy from the sender's elements to the receiver's as they lie; empty if it
/// can.
std::string_view why_not_between(const Announcement& announced,
                                 const std::optional<LoopShape>& here, bool receiver_on_device) {
  std::optional<LoopShape> there = announced.loops;
  if (announced.header.is_contiguous != 0) there = run_of(announced.header.bytes);
  if (!there) return "the sender's elements are a list of blocks";
  if (!here) return "the receiver's elements are a list of blocks";
  bool fits = here->goes_with(*there);
  if (announced.header.device < 0) fits = there->goes_far_with(*here);
  if (!receiver_on_device) fits = here->goes_far_with(*there);
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
        why_not_between(receive.announcement, receive.side.shape->loops, query.receiver.on_device);
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

}  // namespace heddle::p2p
