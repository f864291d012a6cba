#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.hpp"

namespace heddle::replay {

/// Future events by time; at equal times in order of insertion, so that simulations are
/// deterministic. Events may not be inserted in the past. Not thread-safe.
///
/// Calendar queue: time is cut into slices of some tens of events. The current slice is sorted, the
/// next ones are unsorted lists, later events are in a heap. So most insertions append to a list,
/// and soon() shows some tens of events in advance.
template <class Event>
class EventQueue {
 public:
  struct Entry {
    std::int64_t time_ns = 0;
    std::uint64_t number = 0;
    Event event;
  };

  void push(std::int64_t time_ns, const Event& event) {
    const Entry entry{time_ns, next_++, event};
    ++size_;
    if (time_ns < slice_end_ns_) {
      push_heap(late_, entry);
    } else if (time_ns < slices_end_ns_) {
      slices_[slice_of(time_ns)].push_back(entry);
    } else {
      push_heap(far_, entry);
    }
  }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  /// Removes the next event; the queue may not be empty.
  Entry pop() {
    HEDDLE_DEBUG(size_ > 0);
    if (next_of_slice_ == slice_.size() && late_.empty()) begin_slice();
    --size_;
    ++popped_;
    if (!late_.empty() &&
        (next_of_slice_ == slice_.size() || is_later(slice_[next_of_slice_], late_.front()))) {
      return pop_heap(late_);
    }
    return slice_[next_of_slice_++];
  }

  /// The next events, unless earlier ones are inserted; each is shown once, empty in between.
  [[nodiscard]] std::span<const Entry> soon() {
    if (next_of_slice_ < shown_ || shown_ == slice_.size()) return {};
    const std::span<const Entry> rest = std::span<const Entry>(slice_).subspan(shown_);
    const std::span<const Entry> part = rest.first(std::min(rest.size(), shown_at_once));
    shown_ += part.size();
    return part;
  }

 private:
  static constexpr std::size_t slice_count = 1024;
  static constexpr std::size_t shown_at_once = 32;
  // Mean number of events in a slice beyond which slices are resized.
  static constexpr std::uint64_t most_in_slice = 64;
  static constexpr std::uint64_t least_in_slice = 16;
  static constexpr int longest_slice = 40;  // about 18 minutes

  [[nodiscard]] static bool is_later(const Entry& a, const Entry& b) {
    return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.number > b.number;
  }
  /// A type instead of a function pointer, so that heap operations inline it.
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const { return is_later(a, b); }
  };
  static void push_heap(std::vector<Entry>& heap, const Entry& entry) {
    heap.push_back(entry);
    std::push_heap(heap.begin(), heap.end(), Later{});
  }
  static Entry pop_heap(std::vector<Entry>& heap) {
    std::pop_heap(heap.begin(), heap.end(), Later{});
    const Entry entry = heap.back();
    heap.pop_back();
    return entry;
  }

  [[nodiscard]] std::size_t slice_of(std::int64_t time_ns) const {
    return static_cast<std::size_t>((time_ns - slices_begin_ns_) >> slice_bits_);
  }
  [[nodiscard]] std::int64_t begin_of(std::size_t slice) const {
    return slices_begin_ns_ + (static_cast<std::int64_t>(slice) << slice_bits_);
  }

  void begin_slice() {
    while (following_ < slice_count && slices_[following_].empty()) ++following_;
    if (following_ == slice_count) cut_time();
    slice_.clear();
    std::swap(slice_, slices_[following_]);
    std::sort(slice_.begin(), slice_.end(),
              [](const Entry& a, const Entry& b) { return is_later(b, a); });
    next_of_slice_ = 0;
    shown_ = 0;
    slice_end_ns_ = begin_of(++following_);
  }

  /// Cuts time into slices again, starting at the first event beyond the last slice.
  void cut_time() {
    HEDDLE_DEBUG(!far_.empty());
    const std::uint64_t mean = popped_ / slice_count;
    if (mean > most_in_slice && slice_bits_ > 0) --slice_bits_;
    if (mean < least_in_slice && slice_bits_ < longest_slice) ++slice_bits_;
    popped_ = 0;
    slices_begin_ns_ = far_.front().time_ns;
    slices_end_ns_ = begin_of(slice_count);
    following_ = 0;
    while (!far_.empty() && far_.front().time_ns < slices_end_ns_) {
      const Entry entry = pop_heap(far_);
      slices_[slice_of(entry.time_ns)].push_back(entry);
    }
  }

  std::vector<Entry> slice_;       ///< current, sorted
  std::size_t next_of_slice_ = 0;  ///< earlier ones are over
  std::size_t shown_ = 0;          ///< earlier ones were shown
  std::vector<Entry> late_;        ///< a heap: inserted into this slice since it began
  std::int64_t slice_end_ns_ = 0;
  std::array<std::vector<Entry>, slice_count> slices_;
  std::size_t following_ = slice_count;  ///< index of the slice after the current one
  std::int64_t slices_begin_ns_ = 0;
  std::int64_t slices_end_ns_ = 0;
  int slice_bits_ = 10;       ///< a slice takes 2^slice_bits_ ns
  std::vector<Entry> far_;    ///< a heap: beyond all slices
  std::uint64_t popped_ = 0;  ///< since time was cut
  std::uint64_t next_ = 0;
  std::size_t size_ = 0;
};

}  // namespace heddle::replay
