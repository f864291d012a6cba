#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "node-runtime/device/device.hpp"

/// Duration of the operations of an emulated device. These waits model hardware time; nothing
/// synchronises by them.
namespace heddle {

using DeviceClock = std::chrono::steady_clock;

/// One direction of a bus: transfers are serialised at a fixed rate, whoever asks for them, in all
/// processes that use the same word. A value; thread-safe.
class Link {
 public:
  /// `rate` in bytes per second; 0: transfers take no modelled time. `free_at_ns` outlives all
  /// copies.
  Link(double rate, std::atomic<std::int64_t>& free_at_ns)
      : rate_(rate), free_at_ns_(&free_at_ns) {}

  struct Transfer {
    DeviceClock::time_point begin;
    DeviceClock::duration duration;
    [[nodiscard]] DeviceClock::time_point end() const { return begin + duration; }
  };

  /// Reserves the link for `bytes`, from the later of `ready` and the end of earlier transfers.
  [[nodiscard]] Transfer reserve(DeviceClock::time_point ready, std::uint64_t bytes) const;

  [[nodiscard]] bool is_paced() const { return rate_ > 0; }

 private:
  double rate_;
  std::atomic<std::int64_t>* free_at_ns_;
};

/// The links that a copy passes one behind the other.
class LinkPath {
 public:
  static constexpr std::size_t links_max = 4;
  void add(Link link) {
    if (link.is_paced()) links_.at(count_++) = link;
  }
  [[nodiscard]] bool is_paced() const { return count_ > 0; }

  struct Transfer {
    DeviceClock::time_point left;     ///< the first link is free for what follows
    DeviceClock::time_point arrived;  ///< the bytes have passed all links
  };
  /// Reserves each link for `bytes`. Links are reserved one by one: bytes that wait for a link do
  /// not hold the one before.
  [[nodiscard]] Transfer reserve(DeviceClock::time_point ready, std::uint64_t bytes) const;

 private:
  std::array<std::optional<Link>, links_max> links_;
  std::size_t count_ = 0;
};

/// Limits concurrent kernels to `capacity`; high-priority streams go first. Thread-safe.
class KernelGate {
 public:
  /// `capacity == 0`: no limit.
  explicit KernelGate(std::uint32_t capacity) : capacity_(capacity) {}

  /// Blocks until a kernel may run. Returns false, without entering, if `is_interrupted` became
  /// true; wake() must be called after it does.
  [[nodiscard]] bool enter(StreamPriority priority, const std::function<bool()>& is_interrupted);
  void leave();
  void wake();
  /// Number of waiting high-priority kernels.
  [[nodiscard]] std::uint32_t waiting_high();

 private:
  std::uint32_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint32_t running_ = 0;
  std::uint32_t waiting_high_ = 0;
};

/// Hash of its three arguments.
[[nodiscard]] std::uint64_t mixed(std::uint64_t seed, std::uint64_t stream, std::uint64_t number);

}  // namespace heddle
