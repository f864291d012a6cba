#include "node-runtime/transport/p2p/slots.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace heddle::p2p {
namespace {

std::size_t slots_bytes(std::int32_t slots, std::int64_t bytes) {
  return static_cast<std::size_t>(slots) * static_cast<std::size_t>(bytes);
}

/// Slots for incoming pieces are in the window, if it has room for them.
std::size_t own_bytes(const Wire& wire, const EndpointOptions& options) {
  return wire.window().size() >= options.window_bytes() ? 0 : options.window_bytes();
}

std::vector<DeviceBuffer> make_rings(std::span<Device* const> devices,
                                     const EndpointOptions& options) {
  std::vector<DeviceBuffer> memory;
  if (options.ring_slots == 0) return memory;
  for (Device* device : devices) {
    memory.emplace_back(*device,
                        slots_bytes(2 * options.ring_slots, options.sizes.ring_piece_bytes));
  }
  return memory;
}

}  // namespace

Slots::Slots(Wire& wire, const Lanes& lanes, std::span<Device* const> devices,
             const EndpointOptions& options)
    : wire_(wire),
      lanes_(lanes),
      out_memory_(slots_bytes(options.out_slots, options.sizes.piece_bytes)),
      in_memory_(own_bytes(wire, options)),
      ring_memory_(make_rings(devices, options)),
      out_(out_memory_.span().data(), options.out_slots, options.sizes.piece_bytes),
      in_(are_shared() ? wire.window().data() : in_memory_.span().data(), options.in_slots,
          options.sizes.piece_bytes) {
  const std::int64_t ring_piece_bytes = options.sizes.ring_piece_bytes;
  for (const DeviceBuffer& memory : ring_memory_) {
    rings_.emplace_back(memory.address(), options.ring_slots, ring_piece_bytes);
    out_rings_.emplace_back(memory.address() + slots_bytes(options.ring_slots, ring_piece_bytes),
                            options.ring_slots, ring_piece_bytes);
  }
  if (devices.empty()) return;
  lock(out_memory_.span());
  are_shared() ? reach_window(wire.node()) : lock(in_memory_.span());
  HEDDLE_CHECK(is_valid());
}

void Slots::reach_window(NodeId node) {
  const std::span<std::byte> window = wire_.window_of(node);
  const bool is_known = std::ranges::any_of(
      reached_windows_, [&](const auto& known) { return known.data() == window.data(); });
  if (is_known) return;
  lock(window);
  reached_windows_.push_back(window);
}

void Slots::lock(std::span<std::byte> pages) {
  for (std::int32_t i = 0; i < lanes_.count(); ++i) {
    locked_.emplace_back(lanes_.device(LaneId{i}), pages);
  }
}

bool Slots::is_valid() const {
  const std::size_t rings = ring_memory_.size();
  if (rings_.size() != rings || out_rings_.size() != rings) return false;
  if (rings != 0 && rings != static_cast<std::size_t>(lanes_.count())) return false;
  for (std::size_t i = 0; i < reached_windows_.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (reached_windows_[i].data() == reached_windows_[k].data()) return false;
    }
  }
  return true;
}

}  // namespace heddle::p2p
