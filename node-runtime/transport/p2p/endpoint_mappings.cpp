/// How an endpoint reaches other nodes' device memory, and lets them reach its own.

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <sched.h>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/waking_time.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"

namespace heddle::p2p {

// ---- introductions ---------------------------------------------------------------------------

/// Says which devices this node has, before anything that mentions them; that it has none, too:
/// others wait for that.
void Endpoint::introduce(NodeId to) {
  if (!wire_.shares_host(to)) return;
  if (std::exchange(peer(to).is_introduced_to, true)) return;
  std::vector<DeviceIntroduction> devices;
  for (std::int32_t i = 0; i < lanes_.count(); ++i) {
    Device& device = lanes_.device(LaneId{i});
    DeviceIntroduction one;
    one.device = device.info().uuid;
    if (!ring_memory_.empty()) {
      one.ring = refer_to(device, ring_memory_[static_cast<std::size_t>(i)].address());
    }
    devices.push_back(one);
  }
  NoteHeader header;
  header.kind = NoteHeader::Kind::introduce;
  send_note(to, header, std::as_bytes(std::span(devices)));
}

void Endpoint::introduced(NodeId from, std::span<const std::byte> payload) {
  Peer& other = peer(from);
  other.has_introduced = true;
  for (std::size_t at = 0; at < payload.size(); at += sizeof(DeviceIntroduction)) {
    other.devices.push_back(read<DeviceIntroduction>(payload, at));
  }
  if (maps_neighbours_) map_rings(from);
  if (is_closing_) say_goodbye(from);
}

void Endpoint::meet_neighbours() {
  maps_neighbours_ = true;
  for (std::int32_t i = 0; i < wire_.nodes(); ++i) {
    const NodeId node{i};
    if (node == wire_.node()) continue;
    introduce(node);
    if (peer(node).has_introduced) map_rings(node);
  }
}

std::vector<NodeId> Endpoint::unknown_neighbours() const {
  std::vector<NodeId> unknown;
  for (std::int32_t i = 0; i < wire_.nodes() && lanes_.count() > 0; ++i) {
    const NodeId node{i};
    const Peer& other = peer(node);
    const bool is_awaited = node != wire_.node() && wire_.shares_host(node);
    if (is_awaited && !other.has_introduced && !other.is_lost) unknown.push_back(node);
  }
  return unknown;
}

void Endpoint::await_neighbours(std::chrono::nanoseconds limit) {
  meet_neighbours();
  WakingTime awake(now_ns());
  while (!are_neighbours_known()) {
    if (!progress()) ::sched_yield();
    if (awake.at(now_ns()) < limit.count()) continue;
    std::string missing;
    for (const NodeId node : unknown_neighbours()) {
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", node.value());
    }
    throw Error(
        ErrorCode::communication,
        fmt::format("node {}: within {:g} s these nodes of this host have not said which "
                    "devices they have: {}; look at what holds them, or raise "
                    "runtime.watchdog_seconds",
                    wire_.node().value(), static_cast<double>(limit.count()) * 1e-9, missing));
  }
}

/// What is refused is not tried again.
void Endpoint::map_rings(NodeId of) {
  Peer& other = peer(of);
  for (std::size_t theirs = 0; theirs < other.devices.size() && !rings_.empty(); ++theirs) {
    for (std::int32_t here = 0; here < lanes_.count(); ++here) {
      const std::string refusal = map_for_the_next(of, LaneId{here}, other.devices[theirs].ring);
      if (refusal.empty()) continue;
      other.not_mapped_here[{static_cast<std::int32_t>(theirs), here}] = keep(refusal);
    }
  }
}

// ---- others' memory --------------------------------------------------------------------------

bool Endpoint::is_reached(const Side& side, LaneId by) const {
  return lanes_.device(by).reaches_host(side.first(), static_cast<std::size_t>(side.shape->span));
}

/// Host memory that a device of this node reaches in place, gaps included.
bool Endpoint::is_locked(const Side& side) const {
  if (side.lane || side.bytes == 0) return false;
  for (std::int32_t i = 0; i < lanes_.count(); ++i) {
    if (is_reached(side, LaneId{i})) return true;
  }
  return false;
}

/// The device that is to reach memory of `device`: the side's own, otherwise one that reaches the
/// side's host memory, on the same GPU if that does.
LaneId Endpoint::lane_for(const Side& side, const DeviceUuid& device) const {
  if (side.lane) return *side.lane;
  const LaneId same = lanes_.lane_on(device).value_or(LaneId{0});
  if (is_reached(side, same)) return same;
  for (std::int32_t i = 0; i < lanes_.count(); ++i) {
    if (is_reached(side, LaneId{i})) return LaneId{i};
  }
  return same;
}

Lanes::Loops Endpoint::loops_of(const Side& side) const {
  HEDDLE_CHECK(side.shape->loops.has_value());
  return {*side.shape->loops, {side.first(), side.lane ? &lanes_.device(*side.lane) : nullptr}};
}

/// Memory of another node, or of this one. Throws Error(communication) when it is out of reach.
Spot Endpoint::map(NodeId node, LaneId via, const MemoryReference& memory,
                   std::shared_ptr<const Mappings::Use>& use) {
  Device& device = lanes_.device(via);
  const bool is_near = memory.handle.device == device.info().uuid;
  if (node != wire_.node()) {
    use = mappings_.use(node, device, memory);
    const MappedMemory mapped = use->at(memory.offset);
    return {mapped.address, mapped.device, is_near};
  }
  const auto owner = lanes_.lane_on(memory.handle.device);
  HEDDLE_CHECK(owner.has_value());
  const Device& other = lanes_.device(*owner);
  if (&other != &device && !device.can_access_peer(other)) {
    throw Error(ErrorCode::communication,
                fmt::format("device {} has no access to device {}", via.value(), owner->value()));
  }
  return {reinterpret_cast<std::byte*>(memory.address), &other,
          is_near};  // NOLINT(*-no-int-to-ptr)
}

/// What could not be used for this message is there for the next one; otherwise, why not.
std::string Endpoint::map_for_the_next(NodeId node, LaneId via, const MemoryReference& memory) {
  try {
    static_cast<void>(mappings_.use(node, lanes_.device(via), memory));
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

/// Page-locks a node's window, so that devices of this node write to it.
void Endpoint::reach_window(NodeId node) {
  const std::span<std::byte> window = wire_.window_of(node);
  const bool is_known = std::ranges::any_of(
      reached_windows_, [&](const auto& known) { return known.data() == window.data(); });
  if (is_known) return;
  lock(window);
  reached_windows_.push_back(window);
}

void Endpoint::lock(std::span<std::byte> pages) {
  for (std::int32_t i = 0; i < lanes_.count(); ++i) {
    locked_.emplace_back(lanes_.device(LaneId{i}), pages);
  }
}

// ---- this node's memory ----------------------------------------------------------------------

/// What the other node may map a side's memory by; nothing where it cannot.
std::optional<MemoryReference> Endpoint::reference_to(const Side& side, NodeId for_peer) {
  if (!side.lane || side.bytes == 0 || !wire_.shares_host(for_peer)) return std::nullopt;
  if (side.contiguous == nullptr && !side.shape->loops) return std::nullopt;
  MemoryReference reference;
  try {
    reference = handles_.refer_to(lanes_.device(*side.lane), side.first());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::communication) throw;
    return std::nullopt;  // memory of others, which processes cannot share
  }
  if (for_peer != wire_.node()) {
    told_[{side.lane->value(), reference.handle.allocation}].insert(for_peer);
  }
  return reference;
}

Request Endpoint::release(const void* memory) {
  const auto lane = lanes_.owner_of(memory, std::numeric_limits<std::int64_t>::max());
  if (!lane) {
    throw Error(ErrorCode::usage, fmt::format("releasing memory at {}: it is no device's of this "
                                              "node",
                                              fmt::ptr(memory)));
  }
  auto release = std::make_shared<Release>();
  try {
    const auto* const address = static_cast<const std::byte*>(memory);
    const MemoryReference reference = refer_to(lanes_.device(*lane), address);
    release->handle = reference.handle;
    release->begin = address - reference.offset;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::communication) {  // nobody has mapped what cannot be shared
      lanes_.device(*lane).disown(memory);
      return {*this, Status{wire_.node(), 0, 0, false}};
    }
    throw Error(ErrorCode::usage, fmt::format("releasing memory: {}", error.what()));
  }
  release->lane = *lane;
  const std::int64_t id = count_request(false);
  Request request(*this, id, true, release);
  post({nullptr, nullptr, std::move(release), std::nullopt});
  return request;
}

void Endpoint::start(const std::shared_ptr<Release>& started) {
  Release& release = *started;
  const auto uses = [&](const Side& side) {
    return side.lane == release.lane && side.bytes > 0 &&
           side.memory + side.shape->plan->true_upper_bound > release.begin &&
           side.memory + side.shape->plan->true_lower_bound < release.begin + release.handle.bytes;
  };
  std::string user;
  sends_.for_each([&](std::int64_t, const auto& send) {
    if (!uses(send->side)) return;
    user = fmt::format("a message of {} bytes with tag {} is being sent from it to node {}",
                       send->side.bytes, send->tag, send->to.value());
  });
  receives_.for_each([&](std::int64_t, const auto& receive) {
    if (uses(receive->side)) user = "a message is being received into it";
  });
  if (!user.empty()) {
    release.fail(
        Error(ErrorCode::usage,
              fmt::format(
                  "memory at {} of device {} is released, but {}; wait for it, or cancel it, first",
                  fmt::ptr(release.begin), release.lane.value(), user)));
    requests_.end();
    return;
  }
  const auto told = told_.extract({release.lane.value(), release.handle.allocation});
  releases_.push_back(started);
  if (!told.empty()) {
    const ReleasedMemory memory{release.handle.device, release.handle.allocation};
    NoteHeader header;
    header.kind = NoteHeader::Kind::release;
    for (const NodeId node : told.mapped()) {
      if (peer(node).is_lost) continue;
      release.waits_for.push_back(node);
      send_note(node, header, bytes_of(memory));
    }
  }
  end_releases();
}

void Endpoint::released(NodeId from, const ReleasedMemory& memory) {
  for (const auto& release : releases_) {
    if (release->handle.allocation == memory.allocation &&
        release->handle.device == memory.device) {
      std::erase(release->waits_for, from);
    }
  }
  end_releases();
}

void Endpoint::end_releases() {
  std::erase_if(releases_, [this](const auto& release) {
    if (!release->waits_for.empty()) return false;
    lanes_.device(release->lane).disown(release->begin);
    release->complete({wire_.node(), 0, 0, false});
    requests_.end();
    return true;
  });
}

// ---- the end ---------------------------------------------------------------------------------

void Endpoint::close() {
  is_closing_ = true;
  mappings_.close(std::nullopt);
  HEDDLE_CHECK(mappings_.size() == 0, "{} mappings of other nodes' memory are still in use",
               mappings_.size());
  for (std::int32_t node = 0; node < wire_.nodes(); ++node) {
    if (peer(NodeId{node}).has_introduced) say_goodbye(NodeId{node});
  }
}

void Endpoint::say_goodbye(NodeId to) {
  if (peer(to).is_lost) return;
  NoteHeader header;
  header.kind = NoteHeader::Kind::goodbye;
  send_note(to, header);
}

bool Endpoint::is_closed() const {
  if (!is_closing_) return false;
  return std::ranges::all_of(peers_, [](const Peer& other) {
    return other.is_lost || !other.is_introduced_to || other.has_said_goodbye;
  });
}

}  // namespace heddle::p2p
