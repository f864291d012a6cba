#include "node-runtime/threads/staged_ranges.hpp"

#include <algorithm>

namespace heddle {

void StagedRanges::open(Work& work) {
  const std::lock_guard lock(mutex_);
  open_.push_back(&work);
  // Relaxed: join() looks again with the lock.
  open_count_.fetch_add(1, std::memory_order_relaxed);
}

void StagedRanges::close(Work& work) {
  std::unique_lock lock(mutex_);
  std::erase(open_, &work);
  open_count_.fetch_sub(1, std::memory_order_relaxed);
  left_.wait(lock, [&work] { return work.helpers == 0; });
}

StagedRanges::Work* StagedRanges::join() {
  if (open_count_.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(open_, [](const Work* work) {
    return work->helpers < work->helpers_max &&
           work->next.load(std::memory_order_relaxed) < work->columns;
  });
  if (found == open_.end()) return nullptr;
  ++(*found)->helpers;
  return *found;
}

void StagedRanges::leave(Work& work) {
  {
    const std::lock_guard lock(mutex_);
    if (--work.helpers > 0) return;
  }
  // The work may be gone already: it is not touched here.
  left_.notify_all();
}

}  // namespace heddle
