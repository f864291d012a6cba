#pragma once

#include <cstddef>
#include <span>
#include <sys/mman.h>
#include <utility>

#include "base/process_limits.hpp"

namespace heddle::p2p {

/// Whole pages of host memory, zeroed, which devices can page-lock; none where `bytes` is 0.
class HostPages {
 public:
  explicit HostPages(std::size_t bytes = 0) : bytes_(bytes) {
    if (bytes == 0) return;
    address_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address_ == MAP_FAILED) {
      throw memory_refused("messages", bytes);
    }
  }
  HostPages(HostPages&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  HostPages& operator=(HostPages&&) = delete;
  HostPages(const HostPages&) = delete;
  HostPages& operator=(const HostPages&) = delete;
  ~HostPages() {
    if (bytes_ > 0) ::munmap(address_, bytes_);
  }

  [[nodiscard]] std::span<std::byte> span() const {
    return {static_cast<std::byte*>(address_), bytes_};
  }

 private:
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace heddle::p2p
