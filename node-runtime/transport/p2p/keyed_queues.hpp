#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::p2p {

/// Queues by key, with removal of any entry. Each call is O(1) on the average, and allocates only
/// when there are more queues or entries than ever before.
///
/// `Key` can be compared; `Hash` gives 64 bits for it, the low ones as good as any.
template <class Key, class Hash>
class KeyedQueues {
 public:
  using Place = std::int32_t;
  struct Entry {
    std::int64_t id = 0;
    std::int64_t order = 0;
  };

  KeyedQueues() : buckets_(buckets_min, nowhere) {}

  /// To the end of the key's queue. The place is the entry's until remove().
  Place push(const Key& key, const Entry& entry) {
    const Place queue = find_or_make(key);
    Queue& q = queues_[index(queue)];
    const Place place = take(links_, free_link_);
    links_[index(place)] = {entry, queue, q.last, nowhere};
    (q.last == nowhere ? q.first : links_[index(q.last)].next) = place;
    q.last = place;
    ++entries_;
    return place;
  }
  /// The first of the key's queue; null where it is empty. Until the next push().
  [[nodiscard]] const Entry* front(const Key& key) const {
    for (Place at = buckets_[bucket_of(key)]; at != nowhere; at = queues_[index(at)].next) {
      const Queue& queue = queues_[index(at)];
      if (queue.key == key) return &links_[index(queue.first)].entry;
    }
    return nullptr;
  }
  void remove(Place place) {
    Link& link = links_[index(place)];
    const Place of = link.queue;
    Queue& queue = queues_[index(of)];
    (link.previous == nowhere ? queue.first : links_[index(link.previous)].next) = link.next;
    (link.next == nowhere ? queue.last : links_[index(link.next)].previous) = link.previous;
    link.next = free_link_;
    free_link_ = place;
    --entries_;
    if (queue.first == nowhere) drop(of);
  }

  /// Entries in all queues.
  [[nodiscard]] std::size_t size() const { return entries_; }

  /// Calls `visit(key, entry)` queue by queue, each from its first on.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Place bucket : buckets_) {
      for (Place at = bucket; at != nowhere; at = queues_[index(at)].next) {
        const Queue& queue = queues_[index(at)];
        for (Place one = queue.first; one != nowhere; one = links_[index(one)].next) {
          visit(queue.key, links_[index(one)].entry);
        }
      }
    }
  }

 private:
  static constexpr Place nowhere = -1;
  static constexpr std::size_t buckets_min = 64;

  struct Link {
    Entry entry;
    Place queue = nowhere;
    Place previous = nowhere;
    Place next = nowhere;  ///< free ones: of the next free one
  };
  struct Queue {
    Key key{};
    Place first = nowhere;
    Place last = nowhere;
    Place next = nowhere;  ///< in its bucket; free ones: of the next free one
  };

  [[nodiscard]] static std::size_t index(Place place) { return static_cast<std::size_t>(place); }
  [[nodiscard]] std::size_t bucket_of(const Key& key) const {
    return static_cast<std::size_t>(Hash{}(key)) & (buckets_.size() - 1);
  }

  /// A free element, or a new one.
  template <class Element>
  [[nodiscard]] static Place take(std::vector<Element>& all, Place& free) {
    const Place place = free;
    if (place == nowhere) {
      all.emplace_back();
      return static_cast<Place>(all.size() - 1);
    }
    free = all[index(place)].next;
    return place;
  }

  [[nodiscard]] Place find_or_make(const Key& key) {
    for (Place at = buckets_[bucket_of(key)]; at != nowhere; at = queues_[index(at)].next) {
      if (queues_[index(at)].key == key) return at;
    }
    if (used_queues_ == buckets_.size()) grow();
    const Place queue = take(queues_, free_queue_);
    Place& bucket = buckets_[bucket_of(key)];
    queues_[index(queue)] = {key, nowhere, nowhere, bucket};
    bucket = queue;
    ++used_queues_;
    return queue;
  }
  void drop(Place queue) {
    Place* link = &buckets_[bucket_of(queues_[index(queue)].key)];
    while (*link != queue) link = &queues_[index(*link)].next;
    *link = queues_[index(queue)].next;
    queues_[index(queue)].next = free_queue_;
    free_queue_ = queue;
    --used_queues_;
  }
  void grow() {
    std::vector<Place> before(2 * buckets_.size(), nowhere);
    before.swap(buckets_);
    for (Place at : before) {
      while (at != nowhere) {
        Queue& queue = queues_[index(at)];
        Place& bucket = buckets_[bucket_of(queue.key)];
        const Place next = queue.next;
        queue.next = bucket;
        bucket = at;
        at = next;
      }
    }
  }

  std::vector<Place> buckets_;  ///< a power of two; as many as queues, or more
  std::vector<Queue> queues_;
  std::vector<Link> links_;
  Place free_queue_ = nowhere;
  Place free_link_ = nowhere;
  std::size_t used_queues_ = 0;
  std::size_t entries_ = 0;
};

}  // namespace heddle::p2p
