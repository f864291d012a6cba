#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/assert.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace heddle::protocol {

/// Records of one type in chunks, recycled through a free list; addresses are stable, creation and
/// destruction cost a few instructions. Not thread-safe. Invariant: in_use() + free records ==
/// chunks * chunk_count.
template <class T>
class Slab {
  union Cell {
    Cell* next_free;
    alignas(T) std::byte storage[sizeof(T)];
  };
  static constexpr std::size_t chunk_count = 256;

 public:
  Slab() = default;
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab() { HEDDLE_CHECK(in_use_ == 0, "{} records are still in use", in_use_); }

  template <class... Arguments>
  [[nodiscard]] T* create(Arguments&&... arguments) {
    if (free_ == nullptr) grow();
    Cell* cell = free_;
    allow(*cell);
    free_ = cell->next_free;
    ++in_use_;
    return ::new (static_cast<void*>(cell->storage)) T(std::forward<Arguments>(arguments)...);
  }

  void destroy(T* record) {
    HEDDLE_DEBUG(in_use_ > 0);
    record->~T();
    auto* cell = reinterpret_cast<Cell*>(record);
    spoil(*cell);
    cell->next_free = free_;
    free_ = cell;
    --in_use_;
    forbid(*cell);
  }

  [[nodiscard]] std::size_t in_use() const { return in_use_; }
  [[nodiscard]] std::size_t bytes() const { return chunks_.size() * chunk_count * sizeof(Cell); }

  /// For a shutdown after a failure, when records are knowingly abandoned with the slab.
  void abandon() {
    static_assert(std::is_trivially_destructible_v<T>);
    in_use_ = 0;
  }

 private:
  /// Records that are used after their destruction shall fail visibly: with assertions on they hold
  /// nonsense, under the address sanitizer they may not be touched.
  static void spoil([[maybe_unused]] Cell& cell) {
#ifndef NDEBUG
    std::memset(static_cast<void*>(&cell), 0xDD, sizeof(Cell));
#endif
  }
  static void forbid([[maybe_unused]] Cell& cell) {
#ifdef __SANITIZE_ADDRESS__
    ASAN_POISON_MEMORY_REGION(&cell, sizeof(Cell));
#endif
  }
  static void allow([[maybe_unused]] Cell& cell) {
#ifdef __SANITIZE_ADDRESS__
    ASAN_UNPOISON_MEMORY_REGION(&cell, sizeof(Cell));
#endif
  }

  void grow() {
    chunks_.push_back(std::make_unique_for_overwrite<Cell[]>(chunk_count));
    Cell* cells = chunks_.back().get();
    for (std::size_t i = chunk_count; i-- > 0;) {
      cells[i].next_free = free_;
      free_ = &cells[i];
    }
  }

  std::vector<std::unique_ptr<Cell[]>> chunks_;
  Cell* free_ = nullptr;
  std::size_t in_use_ = 0;
};

}  // namespace heddle::protocol
