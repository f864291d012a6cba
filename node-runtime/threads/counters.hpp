#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/futex.hpp"

namespace heddle {

/// What a node has done and does now, in numbers that threads read without the engine's lock.
///
/// Invariant: 0 <= waiting for tiles <= running, 0 <= idle workers, 0 <= active jobs, as far as the
/// threads are between two of these calls. All operations are relaxed: the values are hints and
/// statistics, nothing is published by them.
///
/// Thread: any.
class Counters {
 public:
  /// Something has advanced; the watchdog looks at it.
  void event() { events_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t events() const { return events_.load(std::memory_order_relaxed); }

  void task_taken() { running_.fetch_add(1, std::memory_order_relaxed); }
  void task_ended() { running_.fetch_sub(1, std::memory_order_relaxed); }
  /// Tasks that a device has taken begin (+) or end (-) to wait for their tiles.
  void wait_for_tiles(std::int32_t change) {
    waiting_for_tiles_.fetch_add(change, std::memory_order_relaxed);
  }
  /// Kernels that run on workers, and run or are queued on devices.
  [[nodiscard]] std::int32_t running() const {
    return running_.load(std::memory_order_relaxed) -
           waiting_for_tiles_.load(std::memory_order_relaxed);
  }

  /// CPU workers that found nothing to do.
  void worker_idle(bool idle) { idle_workers_.fetch_add(idle ? 1 : -1, std::memory_order_relaxed); }
  [[nodiscard]] std::int32_t idle_workers() const {
    return idle_workers_.load(std::memory_order_relaxed);
  }

  /// Jobs begun and not yet ended on all nodes.
  void job_begun() { active_jobs_.fetch_add(1, std::memory_order_relaxed); }
  void job_ended() { active_jobs_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] std::int32_t active_jobs() const {
    return active_jobs_.load(std::memory_order_relaxed);
  }

  /// What has moved so far.
  struct Traffic {
    std::uint64_t messages = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t copies = 0;
    std::uint64_t bytes_copied = 0;
  };
  void copy(std::size_t bytes) {
    event();
    copies_.fetch_add(1, std::memory_order_relaxed);
    bytes_copied_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void message(std::size_t bytes) {
    messages_.fetch_add(1, std::memory_order_relaxed);
    bytes_sent_.fetch_add(bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] Traffic traffic() const {
    return {messages_.load(std::memory_order_relaxed), bytes_sent_.load(std::memory_order_relaxed),
            copies_.load(std::memory_order_relaxed), bytes_copied_.load(std::memory_order_relaxed)};
  }

  /// The invariant; while no thread is within a call.
  [[nodiscard]] bool is_valid() const {
    const std::int32_t waiting = waiting_for_tiles_.load(std::memory_order_relaxed);
    return waiting >= 0 && running() >= 0 && idle_workers() >= 0 && active_jobs() >= 0;
  }

 private:
  // A line of its own: idle threads read it again and again, and events write the next one.
  alignas(cache_line) std::atomic<std::int32_t> idle_workers_{0};
  alignas(cache_line) std::atomic<std::int32_t> running_{0};
  std::atomic<std::int32_t> waiting_for_tiles_{0};
  std::atomic<std::int32_t> active_jobs_{0};
  std::atomic<std::uint64_t> events_{0};
  std::atomic<std::uint64_t> messages_{0};
  std::atomic<std::uint64_t> bytes_sent_{0};
  std::atomic<std::uint64_t> copies_{0};
  std::atomic<std::uint64_t> bytes_copied_{0};
};

}  // namespace heddle
