#include "node-runtime/transport/p2p/neighbourhood.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "base/assert.hpp"

namespace heddle::p2p {

bool Release::is_of(const Side& side) const {
  if (side.lane != lane || side.bytes == 0) return false;
  const PackPlan& plan = *side.shape->plan;
  return side.memory + plan.true_upper_bound > begin &&
         side.memory + plan.true_lower_bound < begin + handle.bytes;
}

Neighbourhood::Neighbourhood(Wire& wire, Notes& notes, const Lanes& lanes, const Slots& slots,
                             Requests& requests, Mapper* mapper, std::int32_t mappings_max)
    : wire_(wire),
      notes_(notes),
      lanes_(lanes),
      slots_(slots),
      requests_(requests),
      mappings_(mapper == nullptr ? own_mapper_ : *mapper, mappings_max),
      neighbours_(static_cast<std::size_t>(wire.nodes())) {}

// ---- introductions ---------------------------------------------------------------------------

void Neighbourhood::introduce(NodeId to) {
  if (!wire_.shares_host(to)) return;
  if (std::exchange(at(to).is_introduced_to, true)) return;
  std::vector<DeviceIntroduction> devices;
  for (std::int32_t i = 0; i < lanes_.count(); ++i) {
    Device& device = lanes_.device(LaneId{i});
    DeviceIntroduction one;
    one.device = device.info().uuid;
    if (slots_.has_rings()) one.ring = refer_to(device, slots_.ring_address(LaneId{i}));
    devices.push_back(one);
  }
  NoteHeader header;
  header.kind = NoteHeader::Kind::introduce;
  notes_.send(to, header, std::as_bytes(std::span(devices)));
}

void Neighbourhood::introduced(NodeId from, std::span<const std::byte> payload) {
  Neighbour& other = at(from);
  other.has_introduced = true;
  for (std::size_t i = 0; i < payload.size(); i += sizeof(DeviceIntroduction)) {
    other.devices.push_back(read<DeviceIntroduction>(payload, i));
  }
  if (maps_rings_) map_rings(from);
  if (is_closing_) say_goodbye(from);
}

void Neighbourhood::meet() {
  maps_rings_ = true;
  for (std::int32_t i = 0; i < wire_.nodes(); ++i) {
    const NodeId node{i};
    if (node == wire_.node()) continue;
    introduce(node);
    if (at(node).has_introduced) map_rings(node);
  }
}

std::vector<NodeId> Neighbourhood::unknown() const {
  std::vector<NodeId> unknown;
  for (std::int32_t i = 0; i < wire_.nodes() && lanes_.count() > 0; ++i) {
    const NodeId node{i};
    const bool is_awaited = node != wire_.node() && wire_.shares_host(node);
    if (is_awaited && !of(node).has_introduced && !is_lost(node)) unknown.push_back(node);
  }
  return unknown;
}

void Neighbourhood::map_rings(NodeId node) {
  if (!slots_.has_rings()) return;
  const std::vector<DeviceIntroduction>& devices = of(node).devices;
  for (std::size_t theirs = 0; theirs < devices.size(); ++theirs) {
    for (std::int32_t here = 0; here < lanes_.count(); ++here) {
      const std::string refusal = map_for_the_next(node, LaneId{here}, devices[theirs].ring);
      if (refusal.empty()) continue;
      not_mapped_here(node, {static_cast<std::int32_t>(theirs), here}, refusal);
    }
  }
}

// ---- others' memory --------------------------------------------------------------------------

Spot Neighbourhood::map(NodeId node, LaneId via, const MemoryReference& memory,
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
  auto* const address = reinterpret_cast<std::byte*>(memory.address);  // NOLINT(*-no-int-to-ptr)
  return {address, &other, is_near};
}

std::string Neighbourhood::map_for_the_next(NodeId node, LaneId via,
                                            const MemoryReference& memory) {
  try {
    static_cast<void>(mappings_.use(node, lanes_.device(via), memory));
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

bool Neighbourhood::has_mapped(NodeId node, LaneId via, const MemoryReference& memory) {
  return node == wire_.node() || mappings_.has(node, lanes_.device(via), memory);
}

void Neighbourhood::not_mapped_here(NodeId node, DevicePair pair, std::string_view why) {
  at(node).not_mapped_here[pair] = keep(why);
}

void Neighbourhood::not_mapped_there(NodeId node, DevicePair pair, std::string_view why) {
  at(node).not_mapped_there[pair] = keep(why);
}

void Neighbourhood::not_shared_there(NodeId node, std::string_view why) {
  at(node).no_shared_there = keep(why);
}

void Neighbourhood::not_read_here(NodeId node, std::string_view why) {
  at(node).not_read_here = keep(why);
}

// ---- this node's memory ----------------------------------------------------------------------

std::optional<MemoryReference> Neighbourhood::reference_to(const Side& side, NodeId for_node) {
  if (!side.lane || side.bytes == 0 || !wire_.shares_host(for_node)) return std::nullopt;
  if (side.contiguous == nullptr && !side.shape->loops) return std::nullopt;
  return refer(*side.lane, side.first(), for_node);
}

std::optional<MemoryReference> Neighbourhood::refer(const std::byte* memory, NodeId for_node) {
  if (!wire_.shares_host(for_node)) return std::nullopt;
  const auto lane = lanes_.owner_of(memory, std::numeric_limits<std::int64_t>::max());
  if (!lane) {
    throw Error(ErrorCode::usage,
                fmt::format("memory at {} is no device's of this node", fmt::ptr(memory)));
  }
  return refer(*lane, memory, for_node);
}

std::optional<MemoryReference> Neighbourhood::refer(LaneId lane, const std::byte* memory,
                                                    NodeId for_node) {
  MemoryReference reference;
  try {
    reference = handles_.refer_to(lanes_.device(lane), memory);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::communication) throw;
    return std::nullopt;  // memory of others, which processes cannot share
  }
  if (for_node != wire_.node()) {
    told_[{lane.value(), reference.handle.allocation}].insert(for_node);
  }
  return reference;
}

bool Neighbourhood::may_be_mapped_by(NodeId node, const Side& side) {
  const MemoryReference reference = handles_.refer_to(lanes_.device(*side.lane), side.first());
  if (node == wire_.node()) return true;
  const auto told = told_.find({side.lane->value(), reference.handle.allocation});
  return told != told_.end() && told->second.contains(node);
}

void Neighbourhood::release(const std::shared_ptr<Release>& release) {
  const auto told = told_.extract({release->lane.value(), release->handle.allocation});
  releases_.push_back(release);
  if (!told.empty()) {
    const ReleasedMemory memory{release->handle.device, release->handle.allocation};
    NoteHeader header;
    header.kind = NoteHeader::Kind::release;
    for (const NodeId node : told.mapped()) {
      if (is_lost(node)) continue;
      release->waits_for.push_back(node);
      notes_.send(node, header, bytes_of(memory));
    }
  }
  end_releases();
}

void Neighbourhood::close_mapping(NodeId from, const ReleasedMemory& memory) {
  mappings_.release(from, memory.device, memory.allocation, [this, from, memory] {
    NoteHeader answer;
    answer.kind = NoteHeader::Kind::released;
    notes_.send(from, answer, bytes_of(memory));
  });
}

void Neighbourhood::released(NodeId from, const ReleasedMemory& memory) {
  for (const auto& release : releases_) {
    if (release->handle.allocation == memory.allocation &&
        release->handle.device == memory.device) {
      std::erase(release->waits_for, from);
    }
  }
  end_releases();
}

void Neighbourhood::end_releases() {
  std::erase_if(releases_, [this](const auto& release) {
    if (!release->waits_for.empty()) return false;
    lanes_.device(release->lane).disown(release->begin);
    release->complete({wire_.node(), 0, 0, false});
    requests_.end();
    return true;
  });
}

// ---- the end ---------------------------------------------------------------------------------

void Neighbourhood::lost(NodeId node) {
  at(node).is_lost = true;
  for (const auto& release : releases_) std::erase(release->waits_for, node);
  end_releases();
  mappings_.close(node);
}

void Neighbourhood::close() {
  is_closing_ = true;
  mappings_.close(std::nullopt);
  HEDDLE_CHECK(mappings_.size() == 0, "{} mappings of other nodes' memory are still in use",
               mappings_.size());
  for (std::int32_t node = 0; node < wire_.nodes(); ++node) {
    if (of(NodeId{node}).has_introduced) say_goodbye(NodeId{node});
  }
}

void Neighbourhood::say_goodbye(NodeId to) {
  if (is_lost(to)) return;
  NoteHeader header;
  header.kind = NoteHeader::Kind::goodbye;
  notes_.send(to, header);
}

bool Neighbourhood::is_closed() const {
  if (!is_closing_) return false;
  return std::ranges::all_of(neighbours_, [](const Neighbour& other) {
    return other.is_lost || !other.is_introduced_to || other.has_said_goodbye;
  });
}

void Neighbourhood::abandon(const Error& why) {
  for (const auto& release : releases_) release->fail(why);
  releases_.clear();
}

bool Neighbourhood::is_valid() const {
  const bool are_right = std::ranges::all_of(neighbours_, [](const Neighbour& other) {
    const bool are_devices_known = other.devices.empty() || other.has_introduced;
    return are_devices_known && (!other.has_said_goodbye || other.is_introduced_to);
  });
  const bool go_on = std::ranges::all_of(releases_, [this](const auto& release) {
    return !release->waits_for.empty() &&
           std::ranges::none_of(release->waits_for, [this](auto n) { return is_lost(n); });
  });
  const bool are_others = std::ranges::none_of(
      told_, [this](const auto& one) { return one.second.contains(wire_.node()); });
  return are_right && go_on && are_others;
}

}  // namespace heddle::p2p
