#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace heddle {

/// Hash table in one array, for small keys and values that are inserted and erased often: a lookup
/// is usually one memory access. Insertion and erasure move entries and invalidate references.
/// `Hash` has to mix its bits well. Not thread-safe.
template <class Key, class Value, class Hash>
class FlatMap {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  [[nodiscard]] Value* find(const Key& key) {
    if (size_ == 0) return nullptr;
    Slot& slot = slots_[place_of(key)];
    return slot.is_used ? &slot.value : nullptr;
  }

  /// Inserts a default value for a missing key.
  [[nodiscard]] Value& operator[](const Key& key) {
    // The load factor stays below 3/4, so that every probe ends.
    if (4 * (size_ + 1) > 3 * slots_.size()) grow();
    Slot& slot = slots_[place_of(key)];
    if (!slot.is_used) {
      slot = {key, Value{}, true};
      ++size_;
    }
    return slot.value;
  }

  /// Returns whether the key was present.
  bool erase(const Key& key) {
    if (size_ == 0) return false;
    std::size_t hole = place_of(key);
    if (!slots_[hole].is_used) return false;
    // Entries behind the hole that probing would no longer find move up.
    for (std::size_t next = after(hole); slots_[next].is_used; next = after(next)) {
      const std::size_t wanted = first_place(slots_[next].key);
      if (distance(wanted, next) < distance(hole, next)) continue;
      slots_[hole] = std::move(slots_[next]);
      hole = next;
    }
    slots_[hole] = Slot{};
    --size_;
    return true;
  }

  /// Visits all entries in no particular order.
  template <class Use>
  void for_each(const Use& use) const {
    for (const Slot& slot : slots_) {
      if (slot.is_used) use(slot.key, slot.value);
    }
  }

  void clear() {
    slots_.clear();
    size_ = 0;
  }

 private:
  struct Slot {
    Key key{};
    Value value{};
    bool is_used = false;
  };
  static constexpr std::size_t smallest = 16;

  [[nodiscard]] std::size_t first_place(const Key& key) const {
    return Hash{}(key) & (slots_.size() - 1);
  }
  [[nodiscard]] std::size_t after(std::size_t place) const {
    return (place + 1) & (slots_.size() - 1);
  }
  /// Steps from `from` forward to `to`, modulo the table.
  [[nodiscard]] std::size_t distance(std::size_t from, std::size_t to) const {
    return (to - from) & (slots_.size() - 1);
  }
  /// The key's slot, or the free slot where it would be inserted.
  [[nodiscard]] std::size_t place_of(const Key& key) const {
    std::size_t place = first_place(key);
    while (slots_[place].is_used && !(slots_[place].key == key)) place = after(place);
    return place;
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? smallest : 2 * slots_.size());
    std::swap(old, slots_);
    for (Slot& slot : old) {
      if (slot.is_used) slots_[place_of(slot.key)] = std::move(slot);
    }
  }

  std::vector<Slot> slots_;  ///< size is a power of two
  std::size_t size_ = 0;
};

}  // namespace heddle
