#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace heddle {

/// A hash table in one piece of memory, for small keys and values that come and go often: looking
/// one up is one access to memory as a rule. Insertions and erasures move entries, so that no
/// address holds longer than until the next of these. `Hash` has to mix its bits well. Not
/// thread-safe.
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

  /// Inserts a default value where there is none.
  [[nodiscard]] Value& operator[](const Key& key) {
    // At most three quarters are used, so that there is always an end to looking.
    if (4 * (size_ + 1) > 3 * slots_.size()) grow();
    Slot& slot = slots_[place_of(key)];
    if (!slot.is_used) {
      slot = {key, Value{}, true};
      ++size_;
    }
    return slot.value;
  }

  /// Whether it was there.
  bool erase(const Key& key) {
    if (size_ == 0) return false;
    std::size_t hole = place_of(key);
    if (!slots_[hole].is_used) return false;
    // Those behind it that would not be found across the hole move up.
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

  /// In no order; `use` changes nothing here.
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
  /// From one place forward to the other.
  [[nodiscard]] std::size_t distance(std::size_t from, std::size_t to) const {
    return (to - from) & (slots_.size() - 1);
  }
  /// Where it is, or would be put.
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

  std::vector<Slot> slots_;  ///< a power of two
  std::size_t size_ = 0;
};

}  // namespace heddle
