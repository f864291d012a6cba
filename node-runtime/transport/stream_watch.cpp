#include "node-runtime/transport/stream_watch.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace heddle {

void StreamWatch::add(const Stream& stream, std::shared_ptr<WatchedOperation> operation,
                      std::chrono::milliseconds patience) {
  const std::scoped_lock lock(mutex_);
  entries_.push_back({&stream, std::move(operation), patience, -1, {}});
  count_.store(static_cast<std::int64_t>(entries_.size()), std::memory_order_relaxed);
}

void StreamWatch::look_at_all(Clock::time_point now) {
  next_look_ = now + looks_every;
  std::vector<Entry> entries;
  {
    const std::scoped_lock lock(mutex_);
    entries.swap(entries_);
  }
  std::vector<Entry> left;
  std::set<const Stream*> streams;
  std::set<const void*> behind;
  for (Entry& entry : entries) {
    if (entry.operation->is_over()) continue;
    if (!streams.insert(entry.stream).second) behind.insert(entry.operation->identity());
    left.push_back(std::move(entry));
  }
  std::map<const void*, std::shared_ptr<WatchedOperation>> quiet;
  for (Entry& entry : left) {
    const void* const identity = entry.operation->identity();
    const std::int64_t events = entry.operation->events();
    if (behind.contains(identity) || std::exchange(entry.events, events) != events) {
      entry.since = now;
    } else if (now - entry.since > entry.patience) {
      quiet.emplace(identity, entry.operation);
    }
  }
  {
    const std::scoped_lock lock(mutex_);
    // Behind those that were there before.
    std::ranges::move(entries_, std::back_inserter(left));
    entries_ = std::move(left);
    count_.store(static_cast<std::int64_t>(entries_.size()), std::memory_order_relaxed);
  }
  for (const auto& [identity, operation] : quiet) operation->is_quiet();
}

}  // namespace heddle
