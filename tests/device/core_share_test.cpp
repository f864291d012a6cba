#include "node-runtime/topology/core_share.hpp"

#include <algorithm>
#include <gtest/gtest.h>

namespace heddle {
namespace {

/// Cores of two hardware threads each, `first` to `last`, the second threads numbered from 32 on.
std::vector<CpuCore> cores(std::int32_t first, std::int32_t last) {
  std::vector<CpuCore> list;
  for (std::int32_t c = first; c <= last; ++c) list.push_back({{c, c + 32}, 0, 0, 0});
  return list;
}

std::vector<std::int32_t> first_threads(const std::vector<CpuCore>& part) {
  std::vector<std::int32_t> numbers;
  numbers.reserve(part.size());
  for (const CpuCore& core : part) numbers.push_back(core.hardware_threads[0]);
  return numbers;
}

TEST(CacheDistances, grow_from_the_core_to_its_cache_memory_package_and_beyond) {
  const std::vector<CpuCore> all{
      {{0}, 0, 0, 0}, {{1}, 0, 0, 0}, {{2}, 0, 0, 1}, {{3}, 0, 1, 2}, {{4}, 1, 2, 3}};
  const std::vector<std::uint8_t> distances = cache_distances(all);
  ASSERT_EQ(distances.size(), 25U);
  EXPECT_EQ(std::vector<std::uint8_t>(distances.begin(), distances.begin() + 5),
            (std::vector<std::uint8_t>{0, 1, 2, 3, 4}));
  for (std::size_t a = 0; a < 5; ++a) {
    for (std::size_t b = 0; b < 5; ++b) EXPECT_EQ(distances[5 * a + b], distances[5 * b + a]);
  }
}

TEST(CoreShare, of_processes_that_see_the_same_cores_is_even) {
  const std::vector<CpuCore> all = cores(0, 7);
  const std::vector<CpuMask> masks(3, mask_of(all));
  std::vector<std::int32_t> used;
  for (std::size_t p = 0; p < masks.size(); ++p) {
    const CoreShare share = share_cores(masks, p);
    EXPECT_EQ(share.sharers, 3);
    EXPECT_EQ(share.position, static_cast<std::int32_t>(p));
    const std::vector<std::int32_t> mine = first_threads(share.part_of(all, 2));
    EXPECT_EQ(mine.size(), 2U);
    used.insert(used.end(), mine.begin(), mine.end());
    EXPECT_TRUE(share.part_of(all, 3).empty()) << "there are fewer for each";
  }
  std::sort(used.begin(), used.end());
  EXPECT_EQ(std::unique(used.begin(), used.end()), used.end()) << "nobody shares a core";
}

TEST(CoreShare, of_a_process_that_its_launcher_bound_is_all_that_it_sees) {
  const std::vector<CpuMask> masks{mask_of(cores(0, 3)), mask_of(cores(4, 7))};
  const CoreShare share = share_cores(masks, 1);
  EXPECT_EQ(share.sharers, 1);
  EXPECT_EQ(first_threads(share.part_of(cores(4, 7), 4)), (std::vector<std::int32_t>{4, 5, 6, 7}));
}

TEST(CoreShare, of_cores_that_overlap_in_parts_is_none) {
  const std::vector<CpuMask> masks{mask_of(cores(0, 5)), mask_of(cores(4, 9)),
                                   mask_of(cores(20, 21))};
  const CoreShare share = share_cores(masks, 0);
  EXPECT_EQ(share.sharers, 2);
  EXPECT_TRUE(share.part_of(cores(0, 5), 1).empty());
}

TEST(CoreShare, has_cores_for_threads_beside_the_workers_where_there_is_one_for_each) {
  const std::vector<CpuCore> all = cores(0, 7);
  const auto beside = [&](std::int32_t workers, std::int32_t others) {
    const auto part = cores_beside_workers(all, workers, others);
    return first_threads({part.begin(), part.end()});
  };
  EXPECT_EQ(beside(6, 2), (std::vector<std::int32_t>{6, 7}));
  EXPECT_EQ(beside(4, 2), (std::vector<std::int32_t>{4, 5, 6, 7}));
  EXPECT_EQ(beside(7, 2), first_threads(all));
  EXPECT_EQ(beside(8, 1), first_threads(all));
  EXPECT_TRUE(cores_beside_workers({}, 2, 1).empty()) << "nobody is bound";
}

TEST(CoreShare, masks_leave_out_numbers_beyond_their_last_bit) {
  EXPECT_EQ(mask_of(std::vector<CpuCore>{{{5000}, 0, 0}}), CpuMask{});
  EXPECT_EQ(mask_of(std::vector<CpuCore>{{{64}, 0, 0}})[1], 1U);
}

}  // namespace
}  // namespace heddle
