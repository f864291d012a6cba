#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/assert.hpp"

namespace heddle {

/// Things by number, where numbers are counted up and most of those in here are near each other:
/// requests under way, messages that wait. Open addressing; nothing is allocated once the table has
/// the size that it needs. Numbers that follow each other are spread evenly and leave gaps between
/// them (by the golden ratio), so that the runs of entries that erase() looks through stay short.
///
/// `Value` can be default-constructed and moved, and default-constructed values hold no resources:
/// free places are such. Pointers to values end with the next emplace() or erase().
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

  /// Null where there is none of that number.
  [[nodiscard]] Value* find(std::int64_t id) {
    return const_cast<Value*>(std::as_const(*this).find(id));  // NOLINT(*-const-cast): as it is
  }
  [[nodiscard]] const Value* find(std::int64_t id) const {
    const Entry& entry = entries_[place_of(id)];
    return entry.id == id && id != free_place ? &entry.value : nullptr;
  }
  /// What must be there.
  [[nodiscard]] Value& at(std::int64_t id) {
    Value* const found = find(id);
    HEDDLE_CHECK(found != nullptr, "there is no {}", id);
    return *found;
  }

  /// Numbers are 0 or more, and in the table once.
  Value& emplace(std::int64_t id, Value value) {
    HEDDLE_CHECK(id >= 0, "{} is no number for a table", id);
    if (2 * (size_ + 1) > entries_.size()) grow();
    Entry& entry = entries_[place_of(id)];
    HEDDLE_CHECK(entry.id == free_place, "{} is in the table already", id);
    entry.id = id;
    entry.value = std::move(value);
    ++size_;
    return entry.value;
  }

  /// False: there is none of that number.
  bool erase(std::int64_t id) {
    std::size_t hole = place_of(id);
    if (entries_[hole].id != id || id == free_place) return false;
    // It ends when the table is in order again.
    [[maybe_unused]] const Value gone = std::exchange(entries_[hole], Entry{}).value;
    --size_;
    // Entries behind it that belong before the hole, or into it, move up, so that looking for them
    // passes no free place.
    for (std::size_t at = next(hole); entries_[at].id != free_place; at = next(at)) {
      const std::size_t home = home_of(entries_[at].id);
      const bool stays = distance(home, at) < distance(hole, at);
      if (stays) continue;
      entries_[hole] = std::exchange(entries_[at], Entry{});
      hole = at;
    }
    return true;
  }
  /// The value of what must be there, which is not any more.
  [[nodiscard]] Value extract(std::int64_t id) {
    Value value = std::move(at(id));
    erase(id);
    return value;
  }
  void clear() { *this = IdTable(); }

  /// Calls `visit(id, value)` for all, in no order; which must not change the table.
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
  /// Steps from one place on to another.
  [[nodiscard]] std::size_t distance(std::size_t from, std::size_t to) const {
    return (to - from) & (entries_.size() - 1);
  }
  /// Where `id` is, or a free place where it would be: there always is one.
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

  std::vector<Entry> entries_;      ///< a power of two, at most half of them taken
  unsigned shift_ = 64 - bits_min;  ///< leaves as many bits as the table's size has
  std::size_t size_ = 0;
};

}  // namespace heddle
