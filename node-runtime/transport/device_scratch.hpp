#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/p2p/lanes.hpp"

namespace heddle {

/// Device memory that operations need for a while: allocated when it is first needed, and kept for
/// the next one, since allocating takes longer than most operations. A piece is at most twice as
/// large as asked for.
///
/// Other nodes may have mapped its memory: destroy it when they have closed it, as all memory of
/// messages.
///
/// Lifetime: pieces may outlive it, but nothing may use their memory then. Threads: any.
class DeviceScratch {
 public:
  explicit DeviceScratch(std::span<Device* const> devices);
  DeviceScratch(const DeviceScratch&) = delete;
  DeviceScratch& operator=(const DeviceScratch&) = delete;
  ~DeviceScratch();

  using Piece = std::shared_ptr<std::byte>;
  /// `bytes` > 0 of a device's memory, aligned to 256 bytes, contents unspecified; given back with
  /// the last copy. Throws Device's Error where the device has none left.
  [[nodiscard]] Piece take(p2p::LaneId lane, std::size_t bytes);

 private:
  struct Pool;
  std::vector<std::shared_ptr<Pool>> pools_;  ///< by lane
};

}  // namespace heddle
