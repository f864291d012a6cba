#include "node-runtime/scheduling/pool_size.hpp"

#include <gtest/gtest.h>

namespace heddle {

TEST(PoolSizes, leave_room_for_early_data_while_blocks_are_small) {
  constexpr PlaceId device{1};
  constexpr std::size_t small = 100'000;
  constexpr std::size_t large = std::size_t{16} << 20;
  EXPECT_EQ(useful_blocks(host_place, 0, 6, true, small), 0);  // it needs none
  // Temporaries on a node without devices: many blocks if they are small.
  EXPECT_EQ(useful_blocks(host_place, 10, 1, true, small), 40 + 256);
  EXPECT_EQ(useful_blocks(host_place, 10, 16, true, small), 40 + 512);
  EXPECT_EQ(useful_blocks(host_place, 10, 6, true, std::size_t{2} << 20), 40 + 128);
  EXPECT_EQ(useful_blocks(host_place, 10, 6, true, large), 40 + 64);
  EXPECT_EQ(useful_blocks(host_place, 10, 16, true, large), 40 + 64) << "1 GiB";
  EXPECT_EQ(useful_blocks(host_place, 1000, 64, true, small), 1024);
  EXPECT_EQ(useful_blocks(host_place, 10, 6, true, 0), 40 + 256);
  // Otherwise the size of a block does not matter, up to 1 GiB of them on the host.
  EXPECT_EQ(useful_blocks(host_place, 10, 6, false, small), 40 + 64);
  EXPECT_EQ(useful_blocks(host_place, 10, 16, false, small), 40 + 128);
  EXPECT_EQ(useful_blocks(host_place, 10, 64, false, 2 * large), 40 + 32);
  EXPECT_EQ(useful_blocks(host_place, 10, 64, false, 64 * large), 40 + 16);
  EXPECT_EQ(useful_blocks(device, 10, 16, false, small), 40 + 64);
  EXPECT_EQ(useful_blocks(device, 10, 16, false, 4 * large), 40 + 64);
  EXPECT_EQ(useful_blocks(device, 10, 16, false, 8 * large), 40 + 4);
}

TEST(PoolSizes, take_at_most_half_of_the_memory_that_is_left) {
  EXPECT_EQ(affordable_blocks(100, 1000), 100);
  EXPECT_EQ(affordable_blocks(100, 60), 30);
  EXPECT_EQ(affordable_blocks(100, -5), 0);
}

}  // namespace heddle
