#include "node-runtime/memory/counted_memory.hpp"

#include <gtest/gtest.h>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "tests/support/seeds.hpp"

namespace heddle {
namespace {

using simulation::replay_hint;

constexpr std::size_t page = 4096;

/// Gives a region back and keeps it.
void keep(CountedMemory& memory, HostRegion region) {
  memory.release(region.bytes());
  memory.keep(std::move(region));
}

}  // namespace

TEST(CountedMemory, refuses_with_numbers_what_exceeds_the_limit_and_counts_nothing_then) {
  CountedMemory memory(10 * page);
  memory.reserve(7 * page, "seven pages");
  try {
    memory.reserve(4 * page, "four pages");
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    const std::string text = error.what();
    EXPECT_EQ(text.find("four pages take " + format_bytes(4 * page)), 0U) << text;
    EXPECT_NE(text.find(format_bytes(7 * page) + " are taken"), std::string::npos) << text;
  }
  EXPECT_EQ(memory.taken(), 7 * page);
  EXPECT_EQ(memory.available(), 3 * page);
  memory.release(7 * page);
  EXPECT_EQ(memory.taken(), 0U);
  EXPECT_EQ(memory.peak(), 7 * page);
  EXPECT_TRUE(memory.is_valid());
}

TEST(CountedMemory, gives_the_smallest_kept_region_that_is_not_too_large) {
  CountedMemory memory(100 * page);
  std::vector<HostRegion> regions;
  for (const std::size_t pages : {9U, 4U, 6U}) {
    regions.push_back(memory.allocate(pages * page, "a test"));
  }
  std::byte* const six = regions[2].address();
  for (HostRegion& region : regions) keep(memory, std::move(region));
  EXPECT_EQ(memory.taken(), 0U);
  EXPECT_EQ(memory.reuse(page, "a test").bytes(), 0U) << "four are more than twice as many";
  const HostRegion reused = memory.reuse(5 * page, "a test");
  EXPECT_EQ(reused.address(), six);
  EXPECT_EQ(memory.taken(), 6 * page);
  EXPECT_EQ(memory.kept(), 2U);
  EXPECT_TRUE(memory.is_valid());
}

TEST(CountedMemory, keeps_nothing_while_it_takes_memory_from_the_system) {
  CountedMemory memory(100 * page);
  keep(memory, memory.allocate(8 * page, "a test"));
  ASSERT_EQ(memory.kept(), 1U);
  const HostRegion other = memory.allocate(page, "a test");
  EXPECT_EQ(memory.kept(), 0U);
  EXPECT_TRUE(memory.is_valid());
}

TEST(CountedMemory, keeps_its_invariant_and_its_sum_in_random_sequences) {
  for (const std::uint64_t seed : simulation::seeds(200)) {
    std::mt19937_64 random(seed);
    CountedMemory memory(64 * page);
    std::vector<HostRegion> regions;
    std::uint64_t sum = 0;
    for (int step = 0; step < 100; ++step) {
      const std::size_t wanted = (1 + random() % 20) * page;
      if (random() % 2 == 0 && !regions.empty()) {
        sum -= regions.back().bytes();
        keep(memory, std::move(regions.back()));
        regions.pop_back();
      } else if (HostRegion reused = memory.reuse(wanted, "a test"); reused.bytes() > 0) {
        EXPECT_GE(reused.bytes(), wanted);
        EXPECT_LE(reused.bytes(), 2 * wanted);
        sum += reused.bytes();
        regions.push_back(std::move(reused));
      } else if (sum + wanted <= memory.max()) {
        sum += wanted;
        regions.push_back(memory.allocate(wanted, "a test"));
      } else {
        EXPECT_THROW(static_cast<void>(memory.allocate(wanted, "a test")), Error);
      }
      ASSERT_TRUE(memory.is_valid()) << replay_hint(seed);
      ASSERT_EQ(memory.taken(), sum) << replay_hint(seed);
    }
  }
}

}  // namespace heddle
