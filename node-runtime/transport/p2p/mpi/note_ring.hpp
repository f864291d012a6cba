#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "base/assert.hpp"

namespace heddle::p2p {

/// Where a queue of notes from one process to another lies, in memory that both have mapped.
/// Zeroed memory is an empty one.
struct NoteRingMemory {
  static constexpr std::uint64_t capacity = std::uint64_t{128} << 10U;

  /// Bytes ever written and read; each of one process alone, on a cache line of its own.
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> read;
  alignas(64) std::byte bytes[capacity];  // NOLINT(modernize-avoid-c-arrays): shared memory
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free,
              "words shared between processes must not hide a lock");

/// Notes lie in the ring in one piece each, behind their size: a note that would reach beyond the
/// ring's end begins at its begin, and what is left out is marked.
///
/// Memory orders: the writer publishes a note by a release of `written`, which the reader acquires;
/// the reader gives room back by a release of `read`, which the writer acquires before it writes
/// there again. Each keeps a copy of the other's count, and looks at it only when the copy does not
/// suffice: cache lines travel once for each note, not for each look.
namespace note_ring {

inline constexpr std::uint64_t header_bytes = 8;
inline constexpr std::uint64_t skipped = ~std::uint64_t{0};

[[nodiscard]] inline std::uint64_t place_of(std::uint64_t note_bytes) {
  return header_bytes + (note_bytes + 7) / 8 * 8;
}

}  // namespace note_ring

/// The writing end. Not thread-safe.
class NoteWriter {
 public:
  explicit NoteWriter(NoteRingMemory* memory) : memory_(memory) {}

  /// Room for a note, published by commit(); nothing while the ring is full.
  [[nodiscard]] std::optional<std::span<std::byte>> reserve(std::size_t note_bytes) {
    constexpr std::uint64_t capacity = NoteRingMemory::capacity;
    const std::uint64_t place = note_ring::place_of(note_bytes);
    const std::uint64_t at = written_ % capacity;
    const std::uint64_t skip = at + place > capacity ? capacity - at : 0;
    if (written_ + skip + place - read_ > capacity) {
      read_ = memory_->read.load(std::memory_order_acquire);
      if (written_ + skip + place - read_ > capacity) return std::nullopt;
    }
    if (skip > 0) {
      std::memcpy(memory_->bytes + at, &note_ring::skipped, note_ring::header_bytes);
      written_ += skip;
    }
    std::byte* begin = memory_->bytes + written_ % capacity;
    const std::uint64_t size = note_bytes;
    std::memcpy(begin, &size, note_ring::header_bytes);
    written_ += place;
    return std::span(begin + note_ring::header_bytes, note_bytes);
  }
  void commit() { memory_->written.store(written_, std::memory_order_release); }

 private:
  NoteRingMemory* memory_;
  std::uint64_t written_ = 0;
  std::uint64_t read_ = 0;  ///< as last looked at
};

/// The reading end. Not thread-safe.
class NoteReader {
 public:
  explicit NoteReader(NoteRingMemory* memory) : memory_(memory) {}

  /// The next note; its bytes are there until release().
  [[nodiscard]] std::optional<std::span<const std::byte>> next() {
    for (;;) {
      if (next_ == written_) {
        written_ = memory_->written.load(std::memory_order_acquire);
        if (next_ == written_) return std::nullopt;
      }
      const std::uint64_t at = next_ % NoteRingMemory::capacity;
      std::uint64_t size = 0;
      std::memcpy(&size, memory_->bytes + at, note_ring::header_bytes);
      if (size == note_ring::skipped) {
        next_ += NoteRingMemory::capacity - at;
        continue;
      }
      HEDDLE_CHECK(at + note_ring::place_of(size) <= NoteRingMemory::capacity,
                   "a note of {} bytes in a ring of {}", size, NoteRingMemory::capacity);
      next_ += note_ring::place_of(size);
      return std::span<const std::byte>(memory_->bytes + at + note_ring::header_bytes, size);
    }
  }
  /// Gives back the room of all notes so far.
  void release() {
    if (released_ == next_) return;
    released_ = next_;
    memory_->read.store(next_, std::memory_order_release);
  }

 private:
  NoteRingMemory* memory_;
  std::uint64_t next_ = 0;
  std::uint64_t released_ = 0;
  std::uint64_t written_ = 0;  ///< as last looked at
};

}  // namespace heddle::p2p
