#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "node-runtime/device/device.hpp"

namespace heddle {

/// An operation that a program's stream waits for, or that waits for what the stream has queued: no
/// thread need wait for it, so that nobody would notice that it never ends.
class WatchedOperation {
 public:
  WatchedOperation() = default;
  WatchedOperation(const WatchedOperation&) = delete;
  WatchedOperation& operator=(const WatchedOperation&) = delete;
  virtual ~WatchedOperation() = default;

  /// The same for all that stand for one operation.
  [[nodiscard]] virtual const void* identity() const = 0;
  [[nodiscard]] virtual bool is_over() = 0;
  /// Rises with each of its messages and works that ends.
  [[nodiscard]] virtual std::int64_t events() = 0;
  /// Nothing has ended for its patience; again with every look from then on.
  virtual void is_quiet() = 0;
};

/// A node's operations that streams wait for. The thread that moves messages looks at them now and
/// then, and tells those in which nothing has happened for their patience.
///
/// Operations behind others of one stream wait for these: only the first of each stream is timed,
/// and one that is not the first of all its streams is not. A stream is known by its address;
/// after one that was destroyed another may have it, and then waits no longer than if it were the
/// same.
///
/// Invariant: an operation that is over is dropped with the next look; there are at most as many as
/// groups have operations under way, and the streams that wait for them.
///
/// Lock: mutex_ guards the list; it is not held while operations are asked or told. Threads:
/// look() by one; add() by any.
class StreamWatch {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds looks_every{100};

  /// `stream` waits for `operation`, or the operation for it.
  void add(const Stream& stream, std::shared_ptr<WatchedOperation> operation,
           std::chrono::milliseconds patience);
  /// As often as messages are moved; does something every `looks_every`.
  void look() {
    // Relaxed: an operation that is missed is found at the next look.
    if (count_.load(std::memory_order_relaxed) == 0) return;
    if (const auto now = Clock::now(); now >= next_look_) look_at_all(now);
  }
  void look_at_all(Clock::time_point now);

 private:
  struct Entry {
    const Stream* stream;
    std::shared_ptr<WatchedOperation> operation;
    std::chrono::milliseconds patience;
    std::int64_t events = -1;  ///< at the last look
    Clock::time_point since;   ///< of the last event
  };

  std::mutex mutex_;
  std::vector<Entry> entries_;  ///< in the order of add()
  std::atomic<std::int64_t> count_{0};
  Clock::time_point next_look_;  ///< of the thread that looks
};

}  // namespace heddle
