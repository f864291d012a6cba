#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/p2p/endpoint_options.hpp"
#include "node-runtime/transport/p2p/host_pages.hpp"
#include "node-runtime/transport/p2p/lanes.hpp"
#include "node-runtime/transport/p2p/locked_pages.hpp"
#include "node-runtime/transport/p2p/staging.hpp"
#include "node-runtime/transport/p2p/wire.hpp"

namespace heddle::p2p {

/// The slots that pieces of messages pass through: on the host, slots for outgoing and for incoming
/// pieces; on each device, a ring for incoming pieces and slots for outgoing ones. Devices
/// page-lock the host's slots.
///
/// Invariant (`is_valid()`): |rings| = |out_rings| = |ring_memory| in {0, lanes}; each window is
/// page-locked once.
///
/// Thread: the progress thread only.
class Slots {
 public:
  /// Takes memory on the host and on each device. Throws Error where there is none.
  Slots(Wire& wire, const Lanes& lanes, std::span<Device* const> devices,
        const EndpointOptions& options);

  [[nodiscard]] Staging& out() { return out_; }
  [[nodiscard]] const Staging& out() const { return out_; }
  [[nodiscard]] Staging& in() { return in_; }
  [[nodiscard]] const Staging& in() const { return in_; }
  /// Other nodes of the host write to in().
  [[nodiscard]] bool are_shared() const { return in_memory_.span().empty(); }

  [[nodiscard]] bool has_rings() const { return !rings_.empty(); }
  [[nodiscard]] Staging& ring(LaneId lane) { return rings_[index(lane)]; }
  [[nodiscard]] const Staging& ring(LaneId lane) const { return rings_[index(lane)]; }
  [[nodiscard]] const std::byte* ring_address(LaneId lane) const {
    return ring_memory_[index(lane)].address();
  }
  [[nodiscard]] Staging& out_ring(LaneId lane) { return out_rings_[index(lane)]; }

  /// Page-locks a node's window, so that devices of this node write to it.
  void reach_window(NodeId node);

  [[nodiscard]] bool are_unused() const { return out_.is_unused() && in_.is_unused(); }
  [[nodiscard]] bool is_valid() const;

 private:
  [[nodiscard]] static std::size_t index(LaneId lane) {
    return static_cast<std::size_t>(lane.value());
  }
  void lock(std::span<std::byte> pages);

  Wire& wire_;
  const Lanes& lanes_;
  HostPages out_memory_;
  HostPages in_memory_;  ///< empty where the window has room
  std::vector<LockedPages> locked_;
  std::vector<std::span<std::byte>> reached_windows_;
  std::vector<DeviceBuffer> ring_memory_;  ///< by lane; empty: no rings
  Staging out_;
  Staging in_;
  std::vector<Staging> rings_;
  std::vector<Staging> out_rings_;
};

}  // namespace heddle::p2p
