#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace heddle::p2p {

/// Numbers requests, and counts those in progress. Requests that the progress thread begins at once
/// count without a read-modify-write operation, which a short message would notice.
///
/// Relaxed throughout: the counts order no other memory. Threads: begin(false), refuse() and
/// is_zero(), any; the others, the progress thread only.
class RequestCount {
 public:
  explicit RequestCount(std::int64_t most) : most_(most) {}

  /// The number of a new request, never used before: odd for requests begun at once, otherwise
  /// even. nullopt: the limit is reached.
  [[nodiscard]] std::optional<std::int64_t> begin(bool at_once) {
    std::int64_t before = 0;
    if (at_once) {
      before = begun_at_once_.load(std::memory_order_relaxed);
      begun_at_once_.store(before + 1, std::memory_order_relaxed);
    } else {
      before = begun_.fetch_add(1, std::memory_order_relaxed);
    }
    const std::atomic<std::int64_t>& others = at_once ? begun_ : begun_at_once_;
    const std::int64_t under_way = before + others.load(std::memory_order_relaxed) - over();
    if (under_way >= most_) {
      at_once ? end() : refuse();
      return std::nullopt;
    }
    return 2 * (before + 1) - (at_once ? 1 : 0);
  }
  /// One is over.
  void end() {
    ended_.store(ended_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// One of any thread has a number, but does not begin.
  void refuse() { refused_.fetch_add(1, std::memory_order_relaxed); }

  [[nodiscard]] bool is_zero() const {
    const std::int64_t ended = over();  // first: one that is over has begun
    return begun_.load(std::memory_order_relaxed) +
               begun_at_once_.load(std::memory_order_relaxed) ==
           ended;
  }

 private:
  [[nodiscard]] std::int64_t over() const {
    return ended_.load(std::memory_order_relaxed) + refused_.load(std::memory_order_relaxed);
  }

  const std::int64_t most_;
  std::atomic<std::int64_t> begun_{0};          ///< by any thread
  std::atomic<std::int64_t> begun_at_once_{0};  ///< only the progress thread writes it
  std::atomic<std::int64_t> ended_{0};          ///< of all; likewise
  std::atomic<std::int64_t> refused_{0};        ///< of those begun by any thread
};

}  // namespace heddle::p2p
