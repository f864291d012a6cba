#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace heddle {

/// First-fit allocation of offsets in [0, bytes), for few and large blocks. Not thread-safe.
///
/// Invariant (`is_valid()`): used and free blocks tile [0, bytes) without gap or overlap, no two
/// free blocks touch, every begin is a multiple of `alignment`.
class BlockAllocator {
 public:
  static constexpr std::uint64_t alignment = 256;

  struct Block {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;  ///< as requested
    std::uint64_t id = 0;     ///< never reused
  };

  explicit BlockAllocator(std::uint64_t bytes);

  /// What a block of `bytes` takes.
  [[nodiscard]] static std::uint64_t rounded(std::uint64_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  }

  /// `bytes` > 0. nullopt if no free block is large enough.
  [[nodiscard]] std::optional<Block> allocate(std::uint64_t bytes);

  /// False if no used block begins at `begin`.
  [[nodiscard]] bool release(std::uint64_t begin);

  /// The used block that contains `offset`.
  [[nodiscard]] std::optional<Block> find(std::uint64_t offset) const;

  [[nodiscard]] std::uint64_t largest_free() const;
  [[nodiscard]] std::uint64_t used_bytes() const { return used_bytes_; }
  [[nodiscard]] std::uint64_t used_count() const { return used_.size(); }
  [[nodiscard]] bool is_valid() const;

 private:
  std::uint64_t total_bytes_;
  std::uint64_t used_bytes_ = 0;  ///< after rounding
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Block> used_;          ///< by begin
  std::map<std::uint64_t, std::uint64_t> free_;  ///< begin -> bytes
};

}  // namespace heddle
