#include "node-runtime/memory/tile_pool.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "tests/support/seeds.hpp"

namespace heddle {
namespace {

using simulation::replay_hint;

constexpr std::size_t block_bytes = std::size_t{96} << 10;  // further apart than is near

TilePool equal_blocks(std::size_t count, std::vector<std::size_t> soon) {
  return {HostRegion(count * block_bytes, "a test"), block_bytes, count, std::move(soon)};
}

}  // namespace

TEST(TilePool, has_equal_blocks_one_after_the_other) {
  const TilePool pool = equal_blocks(3, {});
  EXPECT_TRUE(pool.is_valid());
  EXPECT_EQ(pool.place(), host_place);
  EXPECT_EQ(pool.host_bytes(), 3 * block_bytes);
  EXPECT_EQ(pool.address(2) - pool.address(0), static_cast<std::ptrdiff_t>(2 * block_bytes));
  EXPECT_FALSE(pool.lacks_pages());
}

TEST(TilePool, has_blocks_at_the_addresses_that_it_was_given) {
  std::byte a{};
  std::byte b{};
  const TilePool pool(HostRegion(), std::vector{&a, static_cast<std::byte*>(nullptr), &b});
  EXPECT_TRUE(pool.is_valid());
  EXPECT_EQ(pool.address(0), &a);
  EXPECT_EQ(pool.address(1), nullptr);
  EXPECT_EQ(pool.address(2), &b);
}

TEST(TilePool, names_the_blocks_of_a_device) {
  const TilePool pool(PlaceId{2}, {ResidentBlock{7}, no_block});
  EXPECT_TRUE(pool.is_valid());
  EXPECT_EQ(pool.resident(0), ResidentBlock{7});
  EXPECT_EQ(pool.resident(1), no_block);
  EXPECT_EQ(pool.host_bytes(), 0U);
}

TEST(TilePool, names_each_byte_that_is_used_soon_once_and_few_others) {
  for (const std::uint64_t seed : simulation::seeds(200)) {
    std::mt19937_64 random(seed);
    const std::size_t count = 1 + random() % 12;
    std::vector<std::size_t> soon(random() % (count + 1));
    for (std::size_t& bytes : soon) bytes = random() % 3 == 0 ? 0 : random() % (2 * block_bytes);
    TilePool pool = equal_blocks(count, soon);
    std::byte* const base = pool.address(0);
    std::vector<std::pair<std::size_t, std::size_t>> named;  // begin, end
    while (pool.lacks_pages()) {
      const std::size_t bytes_max = 1 + random() % (3 * block_bytes);
      const std::span<std::byte> pages = pool.next_pages(bytes_max);
      ASSERT_TRUE(pool.is_valid()) << replay_hint(seed);
      ASSERT_LE(pages.size(), bytes_max) << replay_hint(seed);
      if (pages.empty()) continue;
      const auto begin = static_cast<std::size_t>(pages.data() - base);
      ASSERT_TRUE(named.empty() || begin >= named.back().second) << replay_hint(seed);
      named.emplace_back(begin, begin + pages.size());
    }
    const auto is_named = [&](std::size_t byte) {
      return std::ranges::any_of(
          named, [byte](const auto& n) { return n.first <= byte && byte < n.second; });
    };
    for (std::size_t i = 0; i < soon.size(); ++i) {
      const std::size_t used = std::min(soon[i], block_bytes);
      const std::size_t begin = i * block_bytes;
      if (used > 0) {
        EXPECT_TRUE(is_named(begin) && is_named(begin + used - 1)) << replay_hint(seed);
        EXPECT_TRUE(is_named(begin + random() % used)) << replay_hint(seed);
      }
      // Unused memory is named only where it is near to the next block.
      if (block_bytes - used > std::size_t{64} << 10) {
        EXPECT_FALSE(is_named(begin + used)) << replay_hint(seed);
      }
    }
    EXPECT_TRUE(named.empty() || named.back().second <= soon.size() * block_bytes);
  }
}

}  // namespace heddle
