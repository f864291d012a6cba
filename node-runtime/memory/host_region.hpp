#pragma once

#include <cstddef>
#include <utility>

namespace heddle {

/// Page-aligned anonymous host memory, without pages until it is touched. Throws Error(usage)
/// that says how much was asked for when the system refuses.
class HostRegion {
 public:
  HostRegion() = default;
  HostRegion(std::size_t bytes, const char* purpose);
  HostRegion(HostRegion&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  HostRegion& operator=(HostRegion&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  HostRegion(const HostRegion&) = delete;
  HostRegion& operator=(const HostRegion&) = delete;
  ~HostRegion();

  [[nodiscard]] std::byte* address() const { return address_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::byte* address_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace heddle
