#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/p2p/lanes.hpp"
#include "node-runtime/transport/p2p/mappings.hpp"
#include "node-runtime/transport/p2p/request.hpp"

namespace heddle::p2p {

/// A place in the device memory of a node of this host, as that node refers to it.
struct RemoteMemory {
  NodeId node;
  MemoryReference memory;
};

/// What a work queues its operations with.
struct WorkPlace {
  Stream& stream;
  DevicePacker& packer;
  std::span<const Spot> remote;  ///< DeviceWork::remote, mapped for the stream's device
};

/// Work of one of an endpoint's devices that belongs to no message. Either `queue` is set, and is
/// called once by the progress thread; what it queues may run beside other works. Or `awaits` is
/// set: an event that a program's stream of that device has recorded.
struct DeviceWork {
  LaneId lane;
  std::vector<RemoteMemory> remote{};
  std::function<void(const WorkPlace&)> queue{};
  std::shared_ptr<Event> awaits{};
  /// Where set: a mapping that the system refuses is no failure; `queue` is not called, and this
  /// says why.
  std::shared_ptr<std::string> refusal{};
};

/// Device memory that other nodes may map from now on.
struct Referral {
  const std::byte* memory = nullptr;
  std::vector<NodeId> nodes;
  /// Set when the request is over; nullopt: memory that processes cannot share.
  std::optional<MemoryReference> reference{};
};

}  // namespace heddle::p2p
