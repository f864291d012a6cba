#include "base/paged_array.hpp"

#include <cstddef>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace heddle {
namespace {

struct Counted {
  static inline int made = 0;
  int value = 7;
  Counted() { ++made; }
};

TEST(PagedArray, HoldsWhatWasPutThereAndDefaultsElsewhere) {
  std::mt19937 random(3);
  PagedArray<int, 8> array(1000);
  std::map<std::size_t, int> expected;
  for (int i = 0; i < 200; ++i) {
    const std::size_t at = random() % 1000;
    array[at] = i;
    expected[at] = i;
  }
  EXPECT_EQ(array.size(), 1000U);
  for (std::size_t i = 0; i < 1000; ++i) {
    const auto found = expected.find(i);
    EXPECT_EQ(std::as_const(array)[i], found == expected.end() ? 0 : found->second) << i;
  }
}

TEST(PagedArray, MakesOnlyThePagesThatAreChanged) {
  Counted::made = 0;
  PagedArray<Counted, 4> array(1 << 20);
  EXPECT_EQ(std::as_const(array)[12345].value, 7);
  EXPECT_LE(Counted::made, 1);  // the one that stands for all
  Counted::made = 0;
  array[12345].value = 1;
  array[12346].value = 2;
  EXPECT_EQ(Counted::made, 4);
  EXPECT_EQ(std::as_const(array)[12347].value, 7);
}

TEST(PagedArray, GoesThroughWhatWasTouchedInOrder) {
  PagedArray<int, 4> array(22);
  array[21] = 3;
  array[5] = 1;
  array[6] = 2;
  std::vector<int> seen;
  std::as_const(array).for_each_touched([&](int value) {
    if (value != 0) seen.push_back(value);
  });
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3}));
  array.for_each_touched([](int& value) { value *= 2; });
  EXPECT_EQ(array[5], 2);
  array.clear();
  EXPECT_EQ(array.size(), 0U);
}

}  // namespace
}  // namespace heddle
