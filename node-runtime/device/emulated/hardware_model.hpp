#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "node-runtime/device/device.hpp"

/// Duration of the operations of an emulated device. These waits model hardware time; nothing
/// synchronises by them.
namespace heddle {

using DeviceClock = std::chrono::steady_clock;

/// One direction of a bus: transfers are serialised at a fixed rate. Thread-safe.
class Link {
 public:
  /// `rate` in bytes per second; 0: transfers take no modelled time.
  explicit Link(double rate) : rate_(rate) {}

  struct Transfer {
    DeviceClock::time_point begin;
    DeviceClock::duration duration;
  };

  /// Reserves the link for `bytes`, from the later of `ready` and the end of earlier transfers.
  [[nodiscard]] Transfer reserve(DeviceClock::time_point ready, std::uint64_t bytes);

  [[nodiscard]] bool is_paced() const { return rate_ > 0; }

 private:
  double rate_;
  std::mutex mutex_;
  DeviceClock::time_point free_at_{};
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
