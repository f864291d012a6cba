#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "node-runtime/device/device.hpp"

namespace heddle::p2p {

/// Host memory that a device has page-locked, as long as this lives.
class LockedPages {
 public:
  LockedPages(Device& device, std::span<std::byte> pages)
      : device_(&device), address_(pages.data()) {
    device.register_host(pages.data(), pages.size());
  }
  LockedPages(LockedPages&& other) noexcept
      : device_(other.device_), address_(std::exchange(other.address_, nullptr)) {}
  LockedPages& operator=(LockedPages&&) = delete;
  LockedPages(const LockedPages&) = delete;
  LockedPages& operator=(const LockedPages&) = delete;
  ~LockedPages() {
    if (address_ != nullptr) device_->unregister_host(address_);
  }

 private:
  Device* device_;
  void* address_;
};

}  // namespace heddle::p2p
