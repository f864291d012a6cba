#include "node-runtime/transport/arena.hpp"

#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "tests/support/seeds.hpp"

namespace heddle {

TEST(Arena, gives_parts_that_do_not_overlap_and_joins_what_comes_back) {
  for (const std::uint64_t seed : simulation::seeds(200)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    constexpr std::size_t bytes = 64 * Arena::alignment;
    Arena arena(bytes);
    std::vector<int> owner(bytes, 0);
    struct Part {
      std::size_t offset;
      std::size_t size;
    };
    std::vector<Part> parts;
    for (int step = 1; step <= 300; ++step) {
      if (random() % 2 == 0 || parts.empty()) {
        const std::size_t wanted = 1 + random() % (8 * Arena::alignment);
        const std::size_t largest = arena.largest();
        const auto offset = arena.take(wanted);
        ASSERT_EQ(offset.has_value(), wanted <= largest);
        if (!offset) continue;
        ASSERT_EQ(*offset % Arena::alignment, 0U);
        for (std::size_t i = *offset; i < *offset + wanted; ++i) {
          ASSERT_EQ(owner.at(i), 0);
          owner[i] = step;
        }
        parts.push_back({*offset, wanted});
      } else {
        const std::size_t which = random() % parts.size();
        const auto [offset, size] = parts[which];
        std::fill_n(owner.begin() + static_cast<std::ptrdiff_t>(offset), size, 0);
        arena.give_back(offset);
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(which));
      }
      ASSERT_TRUE(arena.is_valid());
    }
    for (const Part& part : parts) arena.give_back(part.offset);
    ASSERT_EQ(arena.largest(), bytes) << "all is one part again";
  }
}

TEST(Arena, ends_the_program_when_a_part_comes_back_twice) {
  Arena arena(1024);
  const auto part = arena.take(100);
  ASSERT_TRUE(part.has_value());
  arena.give_back(*part);
  EXPECT_DEATH(arena.give_back(*part), "no part begins at byte 0");
}

}  // namespace heddle
