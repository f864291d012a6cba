#include "node-runtime/transport/p2p/mpi/note_ring.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "tests/support/seeds.hpp"

namespace heddle::p2p {
namespace {

constexpr std::size_t bytes_max = 16384;

/// What note number `number` says.
std::byte content(std::uint64_t number, std::size_t at) {
  return static_cast<std::byte>(number * 31 + at);
}

bool write(NoteWriter& writer, std::uint64_t number, std::size_t bytes) {
  const auto room = writer.reserve(bytes);
  if (!room) return false;
  for (std::size_t i = 0; i < bytes; ++i) (*room)[i] = content(number, i);
  writer.commit();
  return true;
}

bool is_right(std::span<const std::byte> note, std::uint64_t number) {
  for (std::size_t i = 0; i < note.size(); ++i) {
    if (note[i] != content(number, i)) return false;
  }
  return true;
}

}  // namespace

TEST(NoteRing, brings_notes_in_order_around_its_end_and_says_when_it_is_full) {
  for (const std::uint64_t seed : simulation::seeds(20)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    const auto memory = std::make_unique<NoteRingMemory>();
    NoteWriter writer(memory.get());
    NoteReader reader(memory.get());
    std::deque<std::size_t> sizes;  // of notes under way
    std::uint64_t written = 0;
    std::uint64_t read = 0;
    for (int step = 0; step < 3000; ++step) {
      const std::size_t bytes = random() % (random() % 3 == 0 ? bytes_max + 1 : 100);
      if (write(writer, written, bytes)) {
        ++written;
        sizes.push_back(bytes);
      }
      for (std::uint64_t wanted = random() % 3; wanted > 0; --wanted) {
        const auto note = reader.next();
        ASSERT_EQ(note.has_value(), !sizes.empty());
        if (!note) break;
        ASSERT_EQ(note->size(), sizes.front());
        ASSERT_TRUE(is_right(*note, read++));
        sizes.pop_front();
      }
      if (random() % 2 == 0) reader.release();
    }
    while (reader.next()) {
    }
    reader.release();
    EXPECT_TRUE(write(writer, written, bytes_max)) << "an empty ring has room for any note";
    std::uint64_t more = 0;
    while (more < NoteRingMemory::capacity / bytes_max && write(writer, written, bytes_max)) ++more;
    EXPECT_LT(more, NoteRingMemory::capacity / bytes_max) << "a full one has none";
  }
}

TEST(NoteRing, passes_notes_between_threads) {
  constexpr std::uint64_t notes = 20'000;
  const auto memory = std::make_unique<NoteRingMemory>();
  std::thread sender([&] {
    NoteWriter writer(memory.get());
    for (std::uint64_t number = 0; number < notes;) {
      if (write(writer, number, number * 7 % 600)) ++number;
    }
  });
  NoteReader reader(memory.get());
  std::uint64_t wrong = 0;
  for (std::uint64_t number = 0; number < notes;) {
    while (const auto note = reader.next()) {
      const bool right = note->size() == number * 7 % 600 && is_right(*note, number);
      wrong += right ? 0 : 1;
      ++number;
    }
    reader.release();
  }
  sender.join();
  EXPECT_EQ(wrong, 0U);
}

}  // namespace heddle::p2p
