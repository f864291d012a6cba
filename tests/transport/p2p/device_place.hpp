#pragma once

#include <algorithm>
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

/// Where a side's memory is: on a device, in host memory that a device reaches in place, or, with
/// neither, anywhere on the host.
struct Where {
  Device* device = nullptr;
  Device* locked_by = nullptr;
};

/// A place of a message in memory of that kind.
class PlaceOnDevice {
 public:
  PlaceOnDevice(Place& host, const Where& where) : host_(host), where_(where) {
    if (where.device != nullptr) memory_.emplace(*where.device, host.bytes.size());
    if (where.locked_by != nullptr) {
      locked_ = static_cast<std::byte*>(where.locked_by->allocate_host(host.bytes.size()));
    }
    load(host.bytes);
  }
  PlaceOnDevice(const PlaceOnDevice&) = delete;
  PlaceOnDevice& operator=(const PlaceOnDevice&) = delete;
  ~PlaceOnDevice() {
    if (locked_ != nullptr) where_.locked_by->free_host(locked_);
  }

  [[nodiscard]] std::byte* address() {
    if (memory_) return memory_->address() + Place::rim;
    return locked_ != nullptr ? locked_ + Place::rim : host_.address();
  }
  /// What is there now, rims and gaps too.
  [[nodiscard]] std::vector<std::byte> content() const {
    if (locked_ != nullptr) return {locked_, locked_ + host_.bytes.size()};
    if (!memory_) return host_.bytes;
    std::vector<std::byte> bytes(host_.bytes.size());
    copy(*where_.device, bytes.data(), memory_->address(), bytes.size(), false);
    return bytes;
  }
  void load(const std::vector<std::byte>& bytes) {
    if (memory_) return copy(*where_.device, memory_->address(), bytes.data(), bytes.size(), true);
    if (locked_ != nullptr) {
      std::ranges::copy(bytes, locked_);
    } else {
      host_.bytes = bytes;
    }
  }
  [[nodiscard]] const std::optional<DeviceBuffer>& memory() const { return memory_; }

 private:
  Place& host_;
  Where where_;
  std::optional<DeviceBuffer> memory_;
  std::byte* locked_ = nullptr;
};

}  // namespace heddle::p2p
