#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/index.hpp"
#include "node-runtime/memory/host_region.hpp"
#include "node-runtime/residency/frame_space.hpp"

namespace heddle {

/// The blocks of one pool at one place, by index.
///
/// Three kinds: equal blocks one after the other (a job's, on the host), blocks at any addresses (a
/// matrix's, on the host), and blocks of a device's memory (DeviceCache).
///
/// Invariant (`is_valid()`):
///   a device's pool has residents and nothing on the host; a host's has none
///   equal blocks: base + count * block_bytes <= end of the region
///   block i < populated_blocks has pages for min(soon[i], block_bytes) bytes, block
///   populated_blocks for populated_bytes < that, the others for none;  populated_blocks <= |soon|
///   <= count
///
/// Threads: set up and next_pages() by one at a time; the rest by any, for blocks that exist.
class TilePool {
 public:
  /// Equal blocks of the host; `soon`: of the first blocks, the bytes that are used before long.
  TilePool(HostRegion region, std::size_t block_bytes, std::size_t count,
           std::vector<std::size_t> soon);
  /// Blocks of the host; null where there is none. `region`: what the pool owns of their memory.
  TilePool(HostRegion region, std::vector<std::byte*> blocks)
      : blocks_(std::move(blocks)), region_(std::move(region)) {}
  /// Blocks of a device; no_block where there is none.
  TilePool(PlaceId device, std::vector<ResidentBlock> residents);

  [[nodiscard]] PlaceId place() const { return place_; }
  [[nodiscard]] std::size_t host_bytes() const { return region_.bytes(); }
  /// The memory, for the next pool; this one has no blocks then.
  [[nodiscard]] HostRegion take_region() { return std::exchange(region_, {}); }

  /// A block on the host; null: there is none.
  [[nodiscard]] std::byte* address(std::int32_t index) const {
    HEDDLE_DEBUG(place_ == host_place && index >= 0, "block {} of place {}", index, place_.value());
    const auto i = static_cast<std::size_t>(index);
    if (blocks_.empty()) {
      HEDDLE_DEBUG(i < count_, "block {} of {}", index, count_);
      return region_.address() + i * block_bytes_;
    }
    HEDDLE_DEBUG(i < blocks_.size(), "block {} of {}", index, blocks_.size());
    return blocks_[i];
  }
  /// A block of a device; no_block: there is none.
  [[nodiscard]] ResidentBlock resident(std::int32_t index) const {
    const auto i = static_cast<std::size_t>(index);
    HEDDLE_DEBUG(i < residents_.size(), "block {} of {}", index, residents_.size());
    return residents_[i];
  }
  [[nodiscard]] std::span<const ResidentBlock> residents() const { return residents_; }

  /// The next memory to give pages to: at most `bytes_max` at a stretch, with little unused memory
  /// in between. Empty: only blocks without used bytes were left.
  [[nodiscard]] std::span<std::byte> next_pages(std::size_t bytes_max);
  [[nodiscard]] bool lacks_pages() const { return populated_blocks_ < soon_.size(); }

  [[nodiscard]] bool is_valid() const;

 private:
  [[nodiscard]] std::size_t bytes_soon(std::size_t block) const;

  PlaceId place_ = host_place;
  std::size_t block_bytes_ = 0;           ///< of equal blocks
  std::size_t count_ = 0;                 ///< of equal blocks
  std::vector<std::byte*> blocks_;        ///< at any addresses
  std::vector<ResidentBlock> residents_;  ///< of a device
  HostRegion region_;
  std::vector<std::size_t> soon_;
  std::size_t populated_blocks_ = 0;
  std::size_t populated_bytes_ = 0;
};

}  // namespace heddle
