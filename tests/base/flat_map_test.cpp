#include "base/flat_map.hpp"

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <random>

namespace heddle {
namespace {

struct Mixed {
  std::size_t operator()(std::uint32_t key) const {
    const std::uint64_t h = key * 0x9E3779B97F4A7C15ULL;
    return static_cast<std::size_t>(h ^ (h >> 32));
  }
};
/// All in a few places: chains of neighbours, and around the end of the table.
struct Crowded {
  std::size_t operator()(std::uint32_t key) const {
    return key % 3 == 0 ? ~std::size_t{0} : key % 5;
  }
};

template <class Hash>
void behaves_as_a_map(std::uint32_t keys) {
  std::mt19937 random(keys);
  FlatMap<std::uint32_t, int, Hash> map;
  std::map<std::uint32_t, int> expected;
  for (int step = 0; step < 20'000; ++step) {
    const auto key = static_cast<std::uint32_t>(random() % keys);
    if (random() % 2 == 0) {
      map[key] += step;
      expected[key] += step;
    } else {
      EXPECT_EQ(map.erase(key), expected.erase(key) == 1);
    }
    const auto other = static_cast<std::uint32_t>(random() % keys);
    const int* const found = map.find(other);
    const auto wanted = expected.find(other);
    ASSERT_EQ(found != nullptr, wanted != expected.end());
    if (found != nullptr) {
      ASSERT_EQ(*found, wanted->second);
    }
    ASSERT_EQ(map.size(), expected.size());
  }
  std::map<std::uint32_t, int> all;
  map.for_each([&](std::uint32_t key, int value) { all[key] = value; });
  EXPECT_EQ(all, expected);
}

TEST(FlatMap, BehavesAsAMap) {
  behaves_as_a_map<Mixed>(10);
  behaves_as_a_map<Mixed>(3000);
}

TEST(FlatMap, BehavesAsAMapWhenAllKeysWantTheSamePlaces) {
  behaves_as_a_map<Crowded>(60);
}

TEST(FlatMap, ThatIsClearedIsEmpty) {
  FlatMap<std::uint32_t, int, Mixed> map;
  EXPECT_EQ(map.find(3), nullptr);
  EXPECT_FALSE(map.erase(3));
  map[3] = 4;
  map.clear();
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.find(3), nullptr);
  EXPECT_EQ(map[3], 0);
}

}  // namespace
}  // namespace heddle
