#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>

#include "base/assert.hpp"

namespace heddle {

/// First-fit allocation of parts of a range of bytes. It does not own the memory of the range.
///
/// Invariant (`is_valid()`): free parts are disjoint, not empty and do not touch each other;
/// |free bytes| + |taken bytes| = bytes; every part begins at a multiple of `alignment`.
///
/// Not thread-safe.
class Arena {
 public:
  static constexpr std::size_t alignment = 256;  ///< of device memory, as Device::allocate gives it

  explicit Arena(std::size_t bytes) : bytes_(bytes / alignment * alignment) {
    if (bytes_ > 0) free_.emplace(0, bytes_);
  }

  /// The offset of a part of at least `bytes` > 0; nullopt where no free part is large enough.
  [[nodiscard]] std::optional<std::size_t> take(std::size_t bytes) {
    if (bytes > bytes_) return std::nullopt;
    const std::size_t wanted = (bytes + alignment - 1) / alignment * alignment;
    const auto found =
        std::find_if(free_.begin(), free_.end(), [&](const auto& p) { return p.second >= wanted; });
    if (found == free_.end()) return std::nullopt;
    const auto [offset, size] = *found;
    free_.erase(found);
    if (size > wanted) free_.emplace(offset + wanted, size - wanted);
    taken_.emplace(offset, wanted);
    return offset;
  }
  /// Frees a part of take().
  void give_back(std::size_t offset) {
    const auto part = taken_.find(offset);
    HEDDLE_CHECK(part != taken_.end(), "no part begins at byte {}", offset);
    auto here = free_.emplace(offset, part->second).first;
    taken_.erase(part);
    const auto next = std::next(here);
    if (next != free_.end() && here->first + here->second == next->first) {
      here->second += next->second;
      free_.erase(next);
    }
    if (here == free_.begin()) return;
    const auto before = std::prev(here);
    if (before->first + before->second != here->first) return;
    before->second += here->second;
    free_.erase(here);
  }

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t free_bytes() const { return sum(free_); }
  [[nodiscard]] std::size_t largest() const {
    std::size_t largest = 0;
    for (const auto& [offset, size] : free_) largest = std::max(largest, size);
    return largest;
  }
  [[nodiscard]] bool is_valid() const {
    std::optional<std::size_t> end;
    for (const auto& [offset, size] : free_) {
      const bool touches = end.has_value() && offset <= *end;
      if (size == 0 || touches || offset % alignment != 0) return false;
      end = offset + size;
    }
    return sum(free_) + sum(taken_) == bytes_;
  }

 private:
  using Parts = std::map<std::size_t, std::size_t>;  ///< size by offset
  [[nodiscard]] static std::size_t sum(const Parts& parts) {
    std::size_t bytes = 0;
    for (const auto& [offset, size] : parts) bytes += size;
    return bytes;
  }

  std::size_t bytes_;
  Parts free_;
  Parts taken_;
};

}  // namespace heddle
