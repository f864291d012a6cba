#include "node-runtime/memory/tile_store.hpp"

#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <utility>

#include "base/error.hpp"
#include "base/memory_block.hpp"
#include "base/units.hpp"
#include "tests/memory/one_device.hpp"

/// What the store gives and refuses.
namespace heddle {
namespace {

using testing::one_device;
using testing::tile;

constexpr PlaceId device_place{1};

std::uint64_t host_bytes_free(TileStore& store) {
  return static_cast<std::uint64_t>(store.blocks_available(host_place, 1)) * 128;
}

/// The text of the refusal.
std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

}  // namespace

TEST(TileStore, gives_pages_to_what_is_going_to_be_used_of_pools_on_the_host) {
  TileStore store({}, std::uint64_t{1} << 30);
  constexpr std::size_t block = std::size_t{1} << 20;
  const auto is_there = [&](std::int32_t pool, std::int32_t index) {
    // An odd number of lines apart, so that a block begins within a page.
    std::byte* const begin = store.address({pool, index});
    const std::size_t within = reinterpret_cast<std::uintptr_t>(begin) % 4096;
    unsigned char there = 0;
    EXPECT_EQ(::mincore(begin + (8192 - within), 1, &there), 0);
    return (there & 1U) != 0;
  };
  EXPECT_FALSE(store.populate_some());
  const std::int32_t none = store.add_job_pool(host_place, block, 4);
  EXPECT_FALSE(store.populate_some());
  const std::int32_t some = store.add_job_pool(host_place, block, 64, std::vector(9, block));
  const std::int32_t gone = store.add_job_pool(host_place, block, 8, std::vector(8, block));
  ASSERT_FALSE(is_there(some, 0));
  ASSERT_TRUE(store.populate_some());
  if (!is_there(some, 0)) GTEST_SKIP() << "this system cannot populate pages";
  store.remove_job_pool(gone);
  while (store.populate_some()) {
  }
  EXPECT_TRUE(is_there(some, 8));
  EXPECT_FALSE(is_there(some, 20));
  EXPECT_FALSE(is_there(none, 0));
  store.remove_job_pool(some);
  store.remove_job_pool(none);
  EXPECT_FALSE(store.populate_some());
}

TEST(TileStore, gives_no_pages_to_what_is_not_used_of_a_block) {
  TileStore store({}, std::uint64_t{1} << 30);
  constexpr std::size_t block = 4 * huge_page_bytes;
  const std::int32_t pool = store.add_job_pool(host_place, block, 4, {100, 0, block / 2 + 100});
  while (store.populate_some()) {
  }
  const auto is_there = [&](std::int32_t index, std::size_t offset) {
    std::byte* const at = store.address({pool, index}) + offset;
    std::byte* const page = at - reinterpret_cast<std::uintptr_t>(at) % 4096;
    unsigned char there = 0;
    EXPECT_EQ(::mincore(page, 1, &there), 0);
    return (there & 1U) != 0;
  };
  if (!is_there(0, 0)) GTEST_SKIP() << "this system cannot populate pages";
  EXPECT_FALSE(is_there(0, block / 2));
  EXPECT_FALSE(is_there(1, block / 2));
  EXPECT_TRUE(is_there(2, block / 2));
  EXPECT_FALSE(is_there(3, block / 2));
  store.remove_job_pool(pool);
}

TEST(TileStore, keeps_memory_of_removed_pools_for_the_next_one_that_it_fits) {
  TileStore store({}, std::uint64_t{1} << 30);
  constexpr std::size_t block = std::size_t{1} << 20;
  const std::uint64_t all = host_bytes_free(store);
  const auto is_mapped = [](std::byte* page) {
    unsigned char there = 0;
    return ::mincore(page, 1, &there) == 0;
  };
  /// Where a pool was.
  const auto removed = [&](std::int32_t capacity) {
    const std::int32_t pool = store.add_job_pool(host_place, block, capacity);
    std::byte* const page = store.address({pool, 0});
    page[0] = std::byte{7};
    store.remove_job_pool(pool);
    EXPECT_EQ(host_bytes_free(store), all) << "who asks next may have it";
    return page;
  };
  std::byte* const large = removed(8);
  EXPECT_TRUE(is_mapped(large));
  EXPECT_EQ(removed(4), large);
  EXPECT_EQ(removed(8), large) << "all of it";
  EXPECT_EQ(large[0], std::byte{7}) << "with its pages";
  // There is never more of it than is counted.
  static_cast<void>(removed(3));
  EXPECT_FALSE(is_mapped(large + 4 * block)) << "too large to be worth it, so it went back";
  std::byte* const small = removed(2);
  const std::int32_t first = store.add_job_pool(host_place, block, 2);
  const std::int32_t second = store.add_job_pool(host_place, block, 2);
  EXPECT_EQ(store.address({first, 0}), small);
  EXPECT_NE(store.address({second, 0}), small);
  for (const std::int32_t pool : {first, second}) store.remove_job_pool(pool);
  EXPECT_EQ(host_bytes_free(store), all);
}

TEST(TileStore, has_matrices_that_were_added_until_they_are_removed) {
  TileStore store({}, std::uint64_t{1} << 30);
  const protocol::MatrixId id{0};
  EXPECT_FALSE(store.has_matrix(id));
  TileTable table;
  table.shapes = {{4, 3}};
  table.home_places = {host_place};
  table.is_local = {true};
  static_cast<void>(store.add_matrix(id, std::move(table)));
  EXPECT_TRUE(store.has_matrix(id));
  for (const std::int32_t other :
       {1, 5000, 1 << 24}) {  // the last one beyond all that there may be
    EXPECT_FALSE(store.has_matrix(protocol::MatrixId{other})) << other;
  }
  store.remove_matrix(id);
  EXPECT_FALSE(store.has_matrix(id));
}

TEST(TileStoreOutOfCore, takes_host_memory_for_all_blocks_of_a_device_once_they_do_not_fit) {
  const DeviceSet set = one_device(100);
  constexpr std::uint64_t host_max = 1000 * tile;
  TileStore store({set.devices[0].get()}, host_max);
  const std::int32_t first = store.add_job_pool(device_place, tile, 60);
  EXPECT_EQ(host_bytes_free(store), host_max);
  EXPECT_EQ(store.out_of_core_bytes(), 0U);
  const std::int32_t second = store.add_job_pool(device_place, tile, 70);
  EXPECT_EQ(host_bytes_free(store), host_max - 130 * tile);
  EXPECT_EQ(store.out_of_core_bytes(), 30 * tile);
  EXPECT_EQ(store.blocks_available(device_place, tile), 0);
  store.remove_job_pool(second);
  EXPECT_EQ(host_bytes_free(store), host_max - 60 * tile);
  store.remove_job_pool(first);
  EXPECT_EQ(host_bytes_free(store), host_max);
  EXPECT_EQ(store.peak_host_bytes(), 130 * tile);
}

TEST(TileStoreOutOfCore, counts_what_blocks_take_of_the_device_rather_than_what_they_hold) {
  const DeviceSet set = one_device(100);
  TileStore store({set.devices[0].get()}, 1000 * tile);
  EXPECT_EQ(TileStore::bytes_of_block(device_place, tile - 100), tile);
  EXPECT_EQ(store.blocks_available(device_place, tile - 100), 100);
  const std::int32_t all = store.add_job_pool(device_place, tile - 100, 100);
  EXPECT_EQ(store.out_of_core_bytes(), 0U);
  const std::int32_t more = store.add_job_pool(device_place, tile - 100, 1);
  EXPECT_EQ(store.out_of_core_bytes(), tile);
  EXPECT_LE(1000 * tile - host_bytes_free(store), TileStore::backing_bytes_max(101 * tile));
  store.remove_job_pool(more);
  store.remove_job_pool(all);
}

TEST(TileStoreOutOfCore, refuses_with_numbers_what_the_host_has_no_memory_for) {
  const DeviceSet set = one_device(100);
  TileStore store({set.devices[0].get()}, 200 * tile);
  const std::string text = refusal([&] { (void)store.add_job_pool(device_place, tile, 201); });
  for (const std::uint64_t bytes : {201 * tile, 200 * tile}) {
    EXPECT_NE(text.find(format_bytes(bytes)), std::string::npos) << text;
  }
  EXPECT_EQ(host_bytes_free(store), 200 * tile);
  store.remove_job_pool(store.add_job_pool(device_place, tile, 200));
  EXPECT_EQ(host_bytes_free(store), 200 * tile);
}

TEST(TileStoreOutOfCore, refuses_with_numbers_devices_in_which_no_task_could_be_sure_to_advance) {
  const std::uint64_t least = TileStore::least_device_bytes(tile, 1);
  for (const bool is_enough : {false, true}) {
    const DeviceSet set = one_device(least / tile - (is_enough ? 0 : 1));
    TileStore store({set.devices[0].get()}, std::uint64_t{1} << 30);
    const auto too_many = static_cast<std::int32_t>(least / tile) + 1;
    if (is_enough) {
      store.remove_job_pool(store.add_job_pool(device_place, tile, too_many));
      continue;
    }
    const std::string text =
        refusal([&] { (void)store.add_job_pool(device_place, tile, too_many); });
    for (const std::uint64_t bytes : {least - tile, least, least + tile, std::uint64_t{tile}}) {
      EXPECT_NE(text.find(format_bytes(bytes)), std::string::npos) << text;
    }
    EXPECT_NE(text.find("device 0"), std::string::npos) << text;
    // In core it may be used all the same.
    store.remove_job_pool(store.add_job_pool(device_place, tile, too_many - 2));
  }
}

}  // namespace heddle
