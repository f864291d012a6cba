#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace heddle::protocol {
struct Task;
}  // namespace heddle::protocol

namespace heddle {

/// Tiles of devices whose ranges of columns several CPU workers set at the same time: the one that
/// has the task opens it, and workers without work join. A node may have fewer tiles than workers.
///
/// No deadlock: close() waits for helpers alone, and a helper waits for nothing but its range.
///
/// Invariant: a work is in the list from open() to close(); its helpers are those between join()
/// and leave().
///
/// Thread: any.
class StagedRanges {
 public:
  struct Work {
    protocol::Task* task = nullptr;
    std::int64_t columns = 0;
    std::int64_t at_a_time = 1;
    std::int32_t helpers_max = 1;  ///< at the same time

    /// The first column of a range that is this caller's to set; `columns` or more: there is none
    /// left.
    [[nodiscard]] std::int64_t take() {
      // Relaxed: only the number is handed on; what was set is published by leave() and close().
      return next.fetch_add(at_a_time, std::memory_order_relaxed);
    }

    std::atomic<std::int64_t> next{0};
    std::int32_t helpers = 0;  ///< guarded by the owner's mutex
  };

  void open(Work& work);
  /// Waits until no helper is in a range; then nobody knows the work any more.
  void close(Work& work);

  /// A work with a range left, for a worker without another task; null if there is none. Follow it
  /// by leave().
  [[nodiscard]] Work* join();
  void leave(Work& work);

 private:
  std::atomic<std::int32_t> open_count_{0};  ///< a hint, so that idle workers need no lock
  std::mutex mutex_;
  std::condition_variable left_;
  std::vector<Work*> open_;  ///< guarded by the mutex
};

}  // namespace heddle
