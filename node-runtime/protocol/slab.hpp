#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/memory_block.hpp"
#include "base/prefetch.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace heddle::protocol {

/// Records of one type in chunks with a free list: stable addresses, creation and destruction in a
/// few instructions. Not thread-safe. Invariant: in_use() + free records == records of all chunks.
template <class T>
class Slab {
  union Cell {
    Cell* next_free;
    alignas(T) std::byte storage[sizeof(T)];
  };
  static constexpr std::size_t first_chunk_bytes = 8192;

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
    // Another thread destroyed the next one: it is in that core's cache.
    prefetch_to_write(free_, sizeof(Cell));
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
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  /// For a shutdown after a failure: the remaining records are dropped with the slab.
  void abandon() {
    static_assert(std::is_trivially_destructible_v<T>);
    in_use_ = 0;
  }

 private:
  /// Makes use after destruction fail visibly: with assertions the record holds garbage, under the
  /// address sanitizer it is poisoned.
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

  /// Grows by half until chunks are large enough for huge pages: small for the few records of a
  /// simulated node, contiguous for many.
  void grow() {
    const std::size_t wanted = std::clamp(bytes_ / 2, first_chunk_bytes, huge_page_bytes);
    const std::size_t count = std::max<std::size_t>(1, wanted / sizeof(Cell));
    // The largest chunks are filled to the last cell that fits.
    chunks_.push_back(
        allocate_memory_block(wanted == huge_page_bytes ? wanted : count * sizeof(Cell)));
    std::byte* const cells = chunks_.back().get();
    for (std::size_t i = count; i-- > 0;) {
      Cell* const cell = ::new (static_cast<void*>(cells + i * sizeof(Cell))) Cell;
      cell->next_free = free_;
      free_ = cell;
    }
    bytes_ += wanted;
  }

  std::vector<MemoryBlock> chunks_;
  Cell* free_ = nullptr;
  std::size_t in_use_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace heddle::protocol
