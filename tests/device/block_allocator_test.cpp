#include "node-runtime/device/block_allocator.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

namespace heddle {

TEST(BlockAllocator, blocks_are_aligned_and_found_by_every_offset_inside) {
  BlockAllocator allocator(4096);
  const auto a = allocator.allocate(1);
  const auto b = allocator.allocate(300);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->begin % BlockAllocator::alignment, 0U);
  EXPECT_EQ(b->begin % BlockAllocator::alignment, 0U);
  EXPECT_EQ(allocator.find(b->begin + 299)->id, b->id);
  EXPECT_FALSE(allocator.find(b->begin + 300));
  EXPECT_FALSE(allocator.find(a->begin + 1));
}

TEST(BlockAllocator, a_full_allocator_refuses_and_freed_neighbours_merge) {
  BlockAllocator allocator(1024);
  const auto a = allocator.allocate(256);
  const auto b = allocator.allocate(256);
  const auto c = allocator.allocate(512);
  ASSERT_TRUE(a && b && c);
  EXPECT_FALSE(allocator.allocate(1));
  EXPECT_TRUE(allocator.release(a->begin));
  EXPECT_TRUE(allocator.release(c->begin));
  EXPECT_FALSE(allocator.allocate(1024));
  EXPECT_TRUE(allocator.release(b->begin));
  EXPECT_EQ(allocator.largest_free(), 1024U);
  EXPECT_FALSE(allocator.release(b->begin));
}

TEST(BlockAllocator, random_use_never_overlaps_and_never_reuses_an_identity) {
  BlockAllocator allocator(65536);
  std::mt19937 random(20240611);
  std::map<std::uint64_t, std::uint64_t> live;  // begin -> end
  std::set<std::uint64_t> ids;
  for (int step = 0; step < 3000; ++step) {
    if (live.empty() || random() % 2 == 0) {
      const auto block = allocator.allocate(1 + random() % 5000);
      if (!block) continue;
      EXPECT_TRUE(ids.insert(block->id).second);
      const auto after = live.upper_bound(block->begin);
      if (after != live.end()) {
        EXPECT_LE(block->begin + block->bytes, after->first);
      }
      if (after != live.begin()) {
        EXPECT_LE(std::prev(after)->second, block->begin);
      }
      live.emplace(block->begin, block->begin + block->bytes);
    } else {
      const auto victim =
          std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      EXPECT_TRUE(allocator.release(victim->first));
      live.erase(victim);
    }
    ASSERT_TRUE(allocator.is_valid()) << "step " << step;
  }
}

}  // namespace heddle
