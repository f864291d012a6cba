#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/p2p/lanes.hpp"

namespace heddle {

/// Device memory that operations need for a while: allocated when it is first needed, and kept for
/// the next one, since allocating takes longer than most operations. A piece is at most twice as
/// large as asked for. It is kept until the user that it was allocated for has gone, whoever has
/// used it since.
///
/// Other nodes may have mapped its memory: free it (take_left(), destruction) when they have closed
/// it, as all memory of messages.
///
/// Lifetime: pieces and users may outlive it, but nothing may use their memory then. Threads: any.
class DeviceScratch {
 public:
  explicit DeviceScratch(std::span<Device* const> devices);
  DeviceScratch(const DeviceScratch&) = delete;
  DeviceScratch& operator=(const DeviceScratch&) = delete;
  ~DeviceScratch();

  /// Whose operations need memory, a group.
  class User {
   public:
    User(std::size_t lanes, std::shared_ptr<std::atomic<bool>> has_left);
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    ~User();

    /// Allocated for it.
    [[nodiscard]] std::int64_t bytes(p2p::LaneId lane) const;

   private:
    friend class DeviceScratch;
    std::vector<std::atomic<std::int64_t>> bytes_;  ///< by lane
    std::shared_ptr<std::atomic<bool>> has_left_;
  };
  [[nodiscard]] std::shared_ptr<User> make_user() const;

  using Piece = std::shared_ptr<std::byte>;
  /// `bytes` > 0 of a device's memory, aligned to 256 bytes, contents unspecified; given back with
  /// the last copy. Throws Device's Error where the device has none left.
  [[nodiscard]] Piece take(p2p::LaneId lane, std::size_t bytes, const std::shared_ptr<User>& user);

  /// Memory may have been left by users that have gone.
  [[nodiscard]] bool has_left() const { return has_left_->load(std::memory_order_relaxed); }
  /// All of it that is not in use.
  [[nodiscard]] std::vector<DeviceBuffer> take_left();

 private:
  struct Pool;
  std::vector<std::shared_ptr<Pool>> pools_;  ///< by lane
  /// Relaxed: what is missed is found at the next look.
  std::shared_ptr<std::atomic<bool>> has_left_;
};

}  // namespace heddle
