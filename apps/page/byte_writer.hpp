#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace heddle::page {

/// Numbers one after the other, small ones in few bytes: seven bits a byte, the lowest first; the
/// eighth says that more follow. Signed ones alternate: 0, -1, 1, -2, ...
class ByteWriter {
 public:
  void put(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_.push_back(std::byte(value | 0x80U));
    bytes_.push_back(std::byte(value));
  }
  void put_signed(std::int64_t value) {
    put(static_cast<std::uint64_t>(value) << 1U ^ static_cast<std::uint64_t>(value >> 63U));
  }
  void append(const ByteWriter& other) {
    bytes_.insert(bytes_.end(), other.bytes_.begin(), other.bytes_.end());
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace heddle::page
