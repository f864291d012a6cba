#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "node-runtime/memory/host_region.hpp"
#include "node-runtime/residency/frame_space.hpp"

namespace heddle {

/// Host memory for the blocks of a pool that are not in the device's memory.
class Backing {
 public:
  Backing(HostRegion region, Device& device);
  ~Backing();
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;

  [[nodiscard]] std::byte* address() const { return region_.address(); }
  [[nodiscard]] std::size_t bytes() const { return region_.bytes(); }

  /// Has the device page-lock a part of it, if that was not tried before; where the system refuses,
  /// copies are slower. Up to a third of a second per GiB, in which the device may start nothing
  /// new. `begin`: in bytes from address(); parts do not overlap. By one thread at a time.
  void lock_part(std::size_t begin, std::size_t bytes);

 private:
  HostRegion region_;
  Device& device_;
  std::unordered_map<std::size_t, bool> parts_;  ///< by begin: whether it is page-locked
};

/// The blocks of a device's pools, and the host memory behind them: which part of which pool's
/// backing belongs to a block.
///
/// A pool's blocks lie one after the other in its backing, which is allocated when it is first
/// needed. Whole blocks and whole pages form a *part*, which is page-locked at once.
///
/// Invariant (`is_valid()`), over pools p and their blocks b:
///   offset(b) + bytes(b) <= end of part(b) <= backing_bytes(p);  part(b).begin <= offset(b)
///   parts begin at multiples of the alignment and do not overlap;  all but the last are full
///   p has a backing => its size is backing_bytes(p)
///   block_bytes = sum of frame_bytes(p) over pools that were not removed;  largest likewise
///
/// Not thread-safe.
class BackedPools {
 public:
  /// Host memory for a pool's backing. May throw Error(usage).
  using Provider = std::function<std::shared_ptr<Backing>(std::size_t bytes)>;
  struct Part {
    std::size_t begin = 0;
    std::size_t bytes = 0;
    [[nodiscard]] std::size_t end() const { return begin + bytes; }
  };
  struct Pool {
    std::size_t frame_bytes = 0;
    std::size_t largest = 0;  ///< of its blocks
    std::vector<Part> parts;
    std::shared_ptr<Backing> backing;  ///< null: not needed yet
    bool is_removed = false;

    [[nodiscard]] std::size_t backing_bytes() const {
      return parts.empty() ? 0 : parts.back().end();
    }
    /// Appends a block to the last part; its offset in the backing.
    [[nodiscard]] std::size_t append(std::size_t block_bytes);
  };

  explicit BackedPools(Provider provider) : provider_(std::move(provider)) {}

  /// The blocks of a new pool, and the bytes of each; at least one.
  void add(std::span<const ResidentBlock> blocks, std::span<const std::size_t> bytes);
  /// The pool of these blocks counts no more; each block stays until drop().
  void remove(std::span<const ResidentBlock> blocks);
  /// The pool's memory goes back with the last of its blocks.
  void drop(ResidentBlock block);
  /// Its pool was removed.
  [[nodiscard]] bool is_removed(ResidentBlock block) const { return at(block).pool->is_removed; }

  /// Gives the block's pool its backing, if it has none.
  void ensure_backing(ResidentBlock block);
  /// Requires a backing.
  [[nodiscard]] std::byte* address(ResidentBlock block) const;
  [[nodiscard]] const Pool& pool(ResidentBlock block) const { return *at(block).pool; }
  [[nodiscard]] Part part(ResidentBlock block) const { return pool(block).parts[at(block).part]; }
  /// Pools that were not removed and have no backing.
  [[nodiscard]] std::vector<std::shared_ptr<Pool>> unbacked() const;
  [[nodiscard]] std::shared_ptr<Backing> make_backing(const Pool& pool) const {
    return provider_(pool.backing_bytes());
  }

  [[nodiscard]] std::uint64_t block_bytes() const { return block_bytes_; }
  [[nodiscard]] std::size_t largest_block_bytes() const {
    return largest_.empty() ? 0 : *largest_.rbegin();
  }
  /// Bytes of all backings.
  [[nodiscard]] std::uint64_t backing_bytes() const;
  /// Most bytes of host memory behind pools whose frames take `frame_bytes`.
  [[nodiscard]] static std::uint64_t backing_bytes_max(std::uint64_t frame_bytes);

  /// O(blocks log blocks).
  [[nodiscard]] bool is_valid() const;

 private:
  struct Block {
    std::shared_ptr<Pool> pool;
    std::size_t bytes = 0;
    std::size_t offset = 0;  ///< in the pool's backing
    std::size_t part = 0;
  };
  [[nodiscard]] const Block& at(ResidentBlock block) const;
  [[nodiscard]] std::set<const Pool*> pools() const;

  Provider provider_;
  std::vector<Block> blocks_;  ///< by ResidentBlock; without a pool: none
  std::uint64_t block_bytes_ = 0;
  std::multiset<std::size_t> largest_;  ///< of each pool's blocks
};

}  // namespace heddle
