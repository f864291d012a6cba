#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "node-runtime/device/device.hpp"

/// How long the operations of an emulated device last. The waits that follow from it stand for the
/// time that hardware needs; nothing is synchronised by them.
namespace heddle {

using DeviceClock = std::chrono::steady_clock;

/// One direction of a bus: transfers pass one after the other at a fixed rate. Thread-safe.
class Link {
 public:
  /// Bytes per second; 0: transfers take no modelled time.
  explicit Link(double rate) : rate_(rate) {}

  struct Transfer {
    DeviceClock::time_point begin;
    DeviceClock::duration duration;
  };

  /// Reserves the link for `bytes`, from `ready` or when earlier transfers have passed.
  [[nodiscard]] Transfer reserve(DeviceClock::time_point ready, std::uint64_t bytes);

  [[nodiscard]] bool is_paced() const { return rate_ > 0; }

 private:
  double rate_;
  std::mutex mutex_;
  DeviceClock::time_point free_at_{};
};

/// Lets at most `capacity` kernels run at a time, those of high-priority streams first.
/// Thread-safe.
class KernelGate {
 public:
  /// `capacity == 0`: no limit.
  explicit KernelGate(std::uint32_t capacity) : capacity_(capacity) {}

  /// Blocks until a kernel may run. False, without a place, when `is_interrupted` became true; who
  /// makes it true calls wake() afterwards.
  [[nodiscard]] bool enter(StreamPriority priority, const std::function<bool()>& is_interrupted);
  void leave();
  void wake();
  /// Kernels of high priority that stand in line.
  [[nodiscard]] std::uint32_t waiting_high();

 private:
  std::uint32_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint32_t running_ = 0;
  std::uint32_t waiting_high_ = 0;
};

/// A number that looks random and depends on its three arguments alone.
[[nodiscard]] std::uint64_t mixed(std::uint64_t seed, std::uint64_t stream, std::uint64_t number);

}  // namespace heddle
