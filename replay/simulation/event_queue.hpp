#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace heddle::replay {

/// What is going to happen, by time; of one time in the order in which it was foreseen, so that a
/// simulation has one outcome. Not thread-safe.
template <class Event>
class EventQueue {
 public:
  void push(std::int64_t time_ns, const Event& event) {
    heap_.push_back({time_ns, next_++, event});
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  /// When the next one happens.
  [[nodiscard]] std::int64_t time_ns() const { return heap_.front().time_ns; }
  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    const Event event = heap_.back().event;
    heap_.pop_back();
    return event;
  }

 private:
  struct Entry {
    std::int64_t time_ns;
    std::uint64_t number;
    Event event;
  };
  /// A type, so that heaps are made of its code rather than of calls.
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.number > b.number;
    }
  };
  std::vector<Entry> heap_;
  std::uint64_t next_ = 0;
};

}  // namespace heddle::replay
