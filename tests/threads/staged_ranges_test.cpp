#include "node-runtime/threads/staged_ranges.hpp"

#include <array>
#include <atomic>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace heddle {

TEST(StagedRanges, are_each_taken_once_by_the_owner_or_a_helper_that_is_gone_after_close) {
  constexpr std::int64_t columns = 23;
  constexpr std::int64_t at_a_time = 4;
  constexpr int works = 2000;
  StagedRanges ranges;
  std::array<std::atomic<int>, columns> visits{};
  std::atomic<bool> is_over{false};
  std::atomic<int> helped{0};
  const auto set = [&](std::int64_t first) {
    visits.at(static_cast<std::size_t>(first)).fetch_add(1, std::memory_order_relaxed);
  };
  std::vector<std::jthread> helpers;
  for (int h = 0; h < 3; ++h) {
    helpers.emplace_back([&] {
      while (!is_over.load(std::memory_order_relaxed)) {
        StagedRanges::Work* const work = ranges.join();
        if (work == nullptr) {
          std::this_thread::yield();
          continue;
        }
        const std::int64_t first = work->take();
        if (first < work->columns) {
          set(first);
          helped.fetch_add(1, std::memory_order_relaxed);
        }
        ranges.leave(*work);
      }
    });
  }
  for (int w = 0; w < works; ++w) {
    StagedRanges::Work work{nullptr, columns, at_a_time, 2};
    ranges.open(work);
    for (std::int64_t first = work.take(); first < columns; first = work.take()) {
      set(first);
      if (w % 8 == 0) std::this_thread::yield();  // some for the others
    }
    ranges.close(work);
    for (std::int64_t c = 0; c < columns; ++c) {
      // Complete at close(), whoever set it.
      ASSERT_EQ(visits.at(static_cast<std::size_t>(c)).load(std::memory_order_relaxed),
                c % at_a_time == 0 ? w + 1 : 0)
          << "column " << c << " of work " << w;
    }
  }
  is_over.store(true, std::memory_order_relaxed);
  helpers.clear();
  EXPECT_EQ(ranges.join(), nullptr);
  EXPECT_GT(helped.load(std::memory_order_relaxed), 0);
}

TEST(StagedRanges, that_are_all_taken_need_no_helper) {
  StagedRanges ranges;
  EXPECT_EQ(ranges.join(), nullptr);
  StagedRanges::Work one{nullptr, 4, 4};
  StagedRanges::Work other{nullptr, 8, 4};
  ranges.open(one);
  ranges.open(other);
  EXPECT_EQ(one.take(), 0);
  StagedRanges::Work* const joined = ranges.join();
  ASSERT_EQ(joined, &other) << "the first has no range left";
  EXPECT_EQ(ranges.join(), nullptr) << "one helper is enough";
  EXPECT_EQ(joined->take(), 0);
  ranges.leave(*joined);
  ranges.close(one);
  EXPECT_EQ(other.take(), 4);
  EXPECT_EQ(ranges.join(), nullptr);
  ranges.close(other);
}

}  // namespace heddle
