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

  /// Bytes ever read; only the reader writes it, on a cache line of its own.
  alignas(64) std::atomic<std::uint64_t> read;
  alignas(64) std::byte bytes[capacity];  // NOLINT(modernize-avoid-c-arrays): shared memory
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free,
              "words shared between processes must not hide a lock");

/// A note is contiguous in the ring, and begins at a cache line with a word that holds its length
/// plus 1. A note that would cross the ring's end is written at the ring's start, and the rest is
/// marked as skipped. So a short note transfers one cache line, which is the one that the reader
/// polls.
///
/// Memory orders: the writer makes the next note's word 0 and publishes its note by a release of
/// that note's word, which the reader acquires; so the word that the reader looks at next is 0
/// until another note follows. For notes of one line, which are the latency-critical ones, that
/// word was made 0 after the note before: stores become visible in order, and a store to a line
/// that the reader had last would delay the note. The reader gives room back by a release of
/// `read`, which the writer acquires before it writes there again; it keeps a copy of that count,
/// and looks at it only when the copy does not suffice.
namespace note_ring {

inline constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);
inline constexpr std::uint64_t line_bytes = 64;
inline constexpr std::uint64_t nothing = 0;
inline constexpr std::uint64_t skipped = ~std::uint64_t{0};

[[nodiscard]] inline std::uint64_t place_of(std::uint64_t note_bytes) {
  return (word_bytes + note_bytes + line_bytes - 1) / line_bytes * line_bytes;
}
[[nodiscard]] inline std::atomic_ref<std::uint64_t> word_at(NoteRingMemory& memory,
                                                            std::uint64_t at) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory.bytes + at));
}

/// Asks for all lines of a note at once, while its header is looked at.
inline void fetch(const std::byte* note, std::uint64_t bytes) {
  for (std::uint64_t at = line_bytes; at < bytes; at += line_bytes) __builtin_prefetch(note + at);
}

}  // namespace note_ring

/// The writing end. Not thread-safe.
class NoteWriter {
 public:
  explicit NoteWriter(NoteRingMemory* memory) : memory_(memory) {}

  /// Room for a note, published by commit(); empty while the ring is full.
  [[nodiscard]] std::optional<std::span<std::byte>> reserve(std::size_t note_bytes) {
    constexpr std::uint64_t capacity = NoteRingMemory::capacity;
    const std::uint64_t place = note_ring::place_of(note_bytes);
    const std::uint64_t at = written_ % capacity;
    const std::uint64_t skip = at + place > capacity ? capacity - at : 0;
    // With room for the word behind it.
    const std::uint64_t wanted = written_ + skip + place + note_ring::line_bytes;
    if (wanted - read_ > capacity) {
      read_ = memory_->read.load(std::memory_order_acquire);
      if (wanted - read_ > capacity) return std::nullopt;
    }
    if (skip > 0) {
      clear(0);
      note_ring::word_at(*memory_, at).store(note_ring::skipped, std::memory_order_release);
      written_ += skip;
    }
    begin_ = written_ % capacity;
    size_ = note_bytes;
    written_ += place;
    if (written_ != clear_) clear(written_ % capacity);
    return std::span(memory_->bytes + begin_ + note_ring::word_bytes, note_bytes);
  }
  void commit() {
    note_ring::word_at(*memory_, begin_).store(size_ + 1, std::memory_order_release);
    const std::uint64_t behind_next = written_ + note_ring::line_bytes;
    if (behind_next + note_ring::line_bytes - read_ > NoteRingMemory::capacity) return;
    clear(behind_next % NoteRingMemory::capacity);
    clear_ = behind_next;
  }

 private:
  /// Relaxed: it is published with the word before it.
  void clear(std::uint64_t at) {
    note_ring::word_at(*memory_, at).store(note_ring::nothing, std::memory_order_relaxed);
  }

  NoteRingMemory* memory_;
  std::uint64_t written_ = 0;
  std::uint64_t clear_ =
      0;  ///< where a word is 0 beside the one at `written_`; not behind it: nowhere
  std::uint64_t read_ = 0;   ///< as last looked at
  std::uint64_t begin_ = 0;  ///< of the note that is being filled in
  std::uint64_t size_ = 0;   ///< likewise
};

/// The reading end. Not thread-safe.
class NoteReader {
 public:
  explicit NoteReader(NoteRingMemory* memory) : memory_(memory) {}

  /// The next note; its bytes are there until release().
  [[nodiscard]] std::optional<std::span<const std::byte>> next() {
    for (;;) {
      const std::uint64_t at = next_ % NoteRingMemory::capacity;
      const std::uint64_t word = note_ring::word_at(*memory_, at).load(std::memory_order_acquire);
      if (word == note_ring::nothing) return std::nullopt;
      if (word == note_ring::skipped) {
        next_ += NoteRingMemory::capacity - at;
        continue;
      }
      const std::uint64_t size = word - 1;
      HEDDLE_CHECK(at + note_ring::place_of(size) <= NoteRingMemory::capacity,
                   "a note of {} bytes in a ring of {}", size, NoteRingMemory::capacity);
      next_ += note_ring::place_of(size);
      note_ring::fetch(memory_->bytes + at, size);
      return std::span<const std::byte>(memory_->bytes + at + note_ring::word_bytes, size);
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
};

}  // namespace heddle::p2p
