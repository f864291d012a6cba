#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "node-runtime/memory/host_region.hpp"

namespace heddle {

/// The host memory that a node's tiles take, counted against a limit, and regions of ended jobs
/// that are kept for the next ones.
///
/// A kept region is not counted. It goes back to the system before anything else is taken from
/// there, so that the node never has more than what is counted and what is kept.
///
/// Invariant (`is_valid()`, while no other thread reserves): 0 <= taken <= peak <= max; a kept
/// region has memory.
///
/// Threads: reserve(), release() and the sums by any; the other functions by one at a time.
class CountedMemory {
 public:
  explicit CountedMemory(std::uint64_t bytes_max) : max_(bytes_max) {}

  /// Counts `bytes`; throws Error(usage) that names `purpose` and the numbers when they exceed the
  /// limit.
  void reserve(std::size_t bytes, const char* purpose);
  void release(std::size_t bytes);

  /// A region from the system, which is counted. Throws as reserve() does.
  [[nodiscard]] HostRegion allocate(std::size_t bytes, const char* purpose);
  /// The smallest kept region that holds `bytes` and is not more than twice as large, which is
  /// counted as a whole; an empty one where there is none or the limit does not allow it.
  [[nodiscard]] HostRegion reuse(std::size_t bytes, const char* purpose);
  /// Keeps a region that has been released.
  void keep(HostRegion region);
  void drop_kept() { kept_.clear(); }

  [[nodiscard]] std::uint64_t max() const { return max_; }
  [[nodiscard]] std::uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  /// The most that was taken at one time.
  [[nodiscard]] std::uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t available() const;
  [[nodiscard]] std::size_t kept() const { return kept_.size(); }
  [[nodiscard]] bool is_valid() const;

 private:
  const std::uint64_t max_;
  // Relaxed: sums for refusals and the report, which order no other memory.
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> peak_{0};
  std::vector<HostRegion> kept_;
};

}  // namespace heddle
