#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "tests/transport/p2p/random_messages.hpp"

namespace heddle::p2p {

/// Waits for the end.
inline void copy(Device& device, void* to, const void* from, std::size_t bytes, bool to_device) {
  const auto stream = device.create_stream();
  stream->copy({to, to_device ? &device : nullptr}, {from, to_device ? nullptr : &device}, bytes);
  stream->synchronize();
}

/// A place of a message in a device's memory, or where it is on the host.
class PlaceOnDevice {
 public:
  PlaceOnDevice(Place& host, Device* device) : host_(host), device_(device) {
    if (device == nullptr) return;
    memory_.emplace(*device, host.bytes.size());
    copy(*device, memory_->address(), host.bytes.data(), host.bytes.size(), true);
  }
  [[nodiscard]] std::byte* address() {
    return device_ == nullptr ? host_.address() : memory_->address() + Place::rim;
  }
  /// What is there now, rims and gaps too.
  [[nodiscard]] std::vector<std::byte> content() const {
    if (device_ == nullptr) return host_.bytes;
    std::vector<std::byte> bytes(host_.bytes.size());
    copy(*device_, bytes.data(), memory_->address(), bytes.size(), false);
    return bytes;
  }
  void load(const std::vector<std::byte>& bytes) {
    if (device_ == nullptr) {
      host_.bytes = bytes;
    } else {
      copy(*device_, memory_->address(), bytes.data(), bytes.size(), true);
    }
  }
  [[nodiscard]] const std::optional<DeviceBuffer>& memory() const { return memory_; }

 private:
  Place& host_;
  Device* device_;
  std::optional<DeviceBuffer> memory_;
};

}  // namespace heddle::p2p
