#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/p2p/lanes.hpp"

namespace heddle {

/// Page-locked host memory that operations with devices need for a while: allocated when it is
/// first needed, and kept for the next one, since locking pages takes longer than most operations.
/// A piece is at most four times as large as asked for. At most `bytes_max` for each device; who
/// finds it in use does without, so that nobody waits.
///
/// Lifetime: pieces may outlive it, but nothing may use their memory then. Threads: any.
class LockedScratch {
 public:
  static constexpr std::size_t bytes_max = std::size_t{64} << 20U;

  explicit LockedScratch(std::span<Device* const> devices);
  LockedScratch(const LockedScratch&) = delete;
  LockedScratch& operator=(const LockedScratch&) = delete;
  ~LockedScratch();

  using Piece = std::shared_ptr<std::byte>;
  /// `bytes` > 0 for the fastest copies of a device, page-aligned, contents unspecified; given back
  /// with the last copy. Null: that much is not free within bytes_max. Throws Device's Error where
  /// the system refuses it.
  [[nodiscard]] Piece take(p2p::LaneId lane, std::size_t bytes);
  /// Allocated for a device.
  [[nodiscard]] std::size_t bytes(p2p::LaneId lane) const;

 private:
  struct Pool;
  std::vector<std::shared_ptr<Pool>> pools_;  ///< by lane
};

}  // namespace heddle
