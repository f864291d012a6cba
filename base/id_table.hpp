#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/assert.hpp"

namespace heddle {

/// Hash table by ascending number, such as pending requests or queued messages. Open addressing;
/// allocates only to grow. Fibonacci hashing spreads consecutive numbers evenly, so that the runs
/// that erase() scans stay short.
///
/// `Value` is default-constructible and movable; a default-constructed value holds no resources, as
/// free slots contain one. emplace() and erase() invalidate pointers to values.
template <class Value>
class IdTable {
 public:
  struct Entry {
    std::int64_t id = free_place;
    Value value{};
  };

  IdTable() : entries_(std::size_t{1} << bits_min) {}

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] bool contains(std::int64_t id) const { return find(id) != nullptr; }

  /// Null if `id` is absent.
  [[nodiscard]] Value* find(std::int64_t id) {
    return const_cast<Value*>(std::as_const(*this).find(id));  // NOLINT(*-const-cast): as it is
  }
  [[nodiscard]] const Value* find(std::int64_t id) const {
    const Entry& entry = entries_[place_of(id)];
    return entry.id == id && id != free_place ? &entry.value : nullptr;
  }
  /// `id` must be present.
  [[nodiscard]] Value& at(std::int64_t id) {
    Value* const found = find(id);
    HEDDLE_CHECK(found != nullptr, "there is no {}", id);
    return *found;
  }

  /// `id` >= 0 must be absent.
  Value& emplace(std::int64_t id, Value value) {
    HEDDLE_CHECK(id >= 0, "id {} is negative", id);
    if (2 * (size_ + 1) > entries_.size()) grow();
    Entry& entry = entries_[place_of(id)];
    HEDDLE_CHECK(entry.id == free_place, "{} is in the table already", id);
    entry.id = id;
    entry.value = std::move(value);
    ++size_;
    return entry.value;
  }

  /// Returns whether `id` was present.
  bool erase(std::int64_t id) {
    std::size_t hole = place_of(id);
    if (entries_[hole].id != id || id == free_place) return false;
    // Destroyed last, when the table is consistent again.
    [[maybe_unused]] const Value gone = std::exchange(entries_[hole], Entry{}).value;
    --size_;
    // Entries behind the hole whose home is at or before it move up, so that no probe meets a free
    // slot.
    for (std::size_t at = next(hole); entries_[at].id != free_place; at = next(at)) {
      const std::size_t home = home_of(entries_[at].id);
      const bool stays = distance(home, at) < distance(hole, at);
      if (stays) continue;
      entries_[hole] = std::exchange(entries_[at], Entry{});
      hole = at;
    }
    return true;
  }
  /// Removes and returns the value of `id`, which must be present.
  [[nodiscard]] Value extract(std::int64_t id) {
    Value value = std::move(at(id));
    erase(id);
    return value;
  }
  void clear() { *this = IdTable(); }

  /// Calls `visit(id, value)` for all in no particular order; `visit` must not change the table.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Entry& entry : entries_) {
      if (entry.id != free_place) visit(entry.id, entry.value);
    }
  }

 private:
  static constexpr std::int64_t free_place = -1;
  static constexpr unsigned bits_min = 6;

  [[nodiscard]] std::size_t home_of(std::int64_t id) const {
    constexpr std::uint64_t golden_ratio = 0x9E3779B97F4A7C15U;
    return static_cast<std::size_t>(static_cast<std::uint64_t>(id) * golden_ratio >> shift_);
  }
  [[nodiscard]] std::size_t next(std::size_t place) const {
    return (place + 1) & (entries_.size() - 1);
  }
  /// Steps from `from` forward to `to`, modulo the table.
  [[nodiscard]] std::size_t distance(std::size_t from, std::size_t to) const {
    return (to - from) & (entries_.size() - 1);
  }
  /// The slot of `id`, or the free slot where it would be inserted; one always exists.
  [[nodiscard]] std::size_t place_of(std::int64_t id) const {
    std::size_t at = home_of(id);
    while (entries_[at].id != id && entries_[at].id != free_place) at = next(at);
    return at;
  }
  void grow() {
    --shift_;
    std::vector<Entry> before(2 * entries_.size());
    before.swap(entries_);
    for (Entry& entry : before) {
      if (entry.id != free_place) entries_[place_of(entry.id)] = std::move(entry);
    }
  }

  std::vector<Entry> entries_;      ///< size is a power of two, at most half used
  unsigned shift_ = 64 - bits_min;  ///< 64 - log2(size of the table)
  std::size_t size_ = 0;
};

}  // namespace heddle
