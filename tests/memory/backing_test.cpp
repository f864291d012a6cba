#include "node-runtime/memory/backing.hpp"

#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "tests/memory/one_device.hpp"
#include "tests/support/seeds.hpp"

namespace heddle {
namespace {

using simulation::replay_hint;

/// Pools of a device, and the bytes of their backings that exist.
class Pools {
 public:
  Pools() : set_(testing::one_device(1)) {}

  std::vector<ResidentBlock> add(const std::vector<std::size_t>& bytes) {
    std::vector<ResidentBlock> blocks;
    for (std::size_t i = 0; i < bytes.size(); ++i) blocks.emplace_back(next_++);
    pools.add(blocks, bytes);
    return blocks;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  std::size_t bytes_ = 0;
  DeviceSet set_;
  BackedPools pools{[this](std::size_t wanted) {
    bytes_ += wanted;
    const auto give_back = [this, wanted](Backing* backing) {
      bytes_ -= wanted;
      delete backing;
    };
    return std::shared_ptr<Backing>(new Backing(HostRegion(wanted, "a test"), *set_.devices[0]),
                                    give_back);
  }};

 private:
  std::int32_t next_ = 0;
};

}  // namespace

TEST(BackedPools, put_the_blocks_of_a_pool_one_after_the_other) {
  Pools p;
  const auto blocks = p.add({100, 200, 50});
  EXPECT_EQ(p.bytes(), 0U) << "nothing needs it";
  EXPECT_EQ(p.pools.unbacked().size(), 1U);
  p.pools.ensure_backing(blocks[1]);
  EXPECT_EQ(p.bytes(), 350U);
  EXPECT_EQ(p.pools.address(blocks[1]) - p.pools.address(blocks[0]), 100);
  EXPECT_EQ(p.pools.address(blocks[2]) - p.pools.address(blocks[0]), 300);
  EXPECT_TRUE(p.pools.unbacked().empty());
  EXPECT_TRUE(p.pools.is_valid());
}

TEST(BackedPools, give_memory_back_with_the_last_block_of_a_removed_pool) {
  Pools p;
  const auto blocks = p.add({100, 200});
  p.pools.ensure_backing(blocks[0]);
  p.pools.remove(blocks);
  EXPECT_EQ(p.pools.block_bytes(), 0U);
  EXPECT_EQ(p.pools.largest_block_bytes(), 0U);
  p.pools.drop(blocks[0]);
  EXPECT_EQ(p.bytes(), 300U) << "a transfer may still read it";
  EXPECT_TRUE(p.pools.is_removed(blocks[1]));
  EXPECT_TRUE(p.pools.is_valid());
  p.pools.drop(blocks[1]);
  EXPECT_EQ(p.bytes(), 0U);
  EXPECT_TRUE(p.pools.is_valid());
}

TEST(BackedPools, keep_their_invariant_and_sums_in_random_sequences) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  for (const std::uint64_t seed : simulation::seeds(100)) {
    std::mt19937_64 random(seed);
    Pools p;
    std::vector<std::vector<ResidentBlock>> pools;
    for (int step = 0; step < 60; ++step) {
      if (random() % 2 == 0 || pools.empty()) {
        std::vector<std::size_t> sizes(1 + random() % 8);
        for (std::size_t& size : sizes) size = 1 + random() % (9 * mib);
        pools.push_back(p.add(sizes));
      } else if (random() % 3 == 0) {
        for (const ResidentBlock block : pools.back()) {
          if (block == pools.back().front()) p.pools.remove(pools.back());
          p.pools.drop(block);
          ASSERT_TRUE(p.pools.is_valid()) << replay_hint(seed);
        }
        pools.pop_back();
      } else {
        p.pools.ensure_backing(pools[random() % pools.size()].front());
      }
      ASSERT_TRUE(p.pools.is_valid()) << replay_hint(seed);
      ASSERT_EQ(p.pools.backing_bytes(), p.bytes()) << replay_hint(seed);
      ASSERT_LE(p.bytes(), BackedPools::backing_bytes_max(p.pools.block_bytes()))
          << replay_hint(seed);
    }
  }
}

}  // namespace heddle
