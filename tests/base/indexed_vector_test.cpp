#include "base/indexed_vector.hpp"

#include <concepts>
#include <gtest/gtest.h>
#include <vector>

#include "base/index.hpp"

namespace heddle {
namespace {

using PerPlace = IndexedVector<PlaceId, int>;

template <class Index>
concept IndexesPlaces = requires(PerPlace vector, Index index) {
  vector[index];
};

static_assert(IndexesPlaces<PlaceId>);
static_assert(!IndexesPlaces<NodeId>);
static_assert(!IndexesPlaces<int>);

}  // namespace

TEST(IndexedVector, names_its_elements_by_the_index_type) {
  PerPlace vector(2, 5);
  EXPECT_EQ(vector.push_back(7), PlaceId{2});
  EXPECT_EQ(vector[PlaceId{1}], 5);
  vector[PlaceId{1}] = 6;
  EXPECT_EQ(vector.elements(), (std::vector{5, 6, 7}));
  EXPECT_EQ(vector, (PerPlace{5, 6, 7}));
  int sum = 0;
  for (PlaceId place{0}; place < vector.end_index(); ++place) sum += vector[place];
  EXPECT_EQ(sum, 18);
}

TEST(IndexedVector, contains_what_is_within_its_size) {
  PerPlace vector;
  EXPECT_TRUE(vector.empty());
  EXPECT_FALSE(vector.contains(PlaceId{0}));
  vector.resize(1);
  EXPECT_EQ(vector.size(), 1U);
  EXPECT_TRUE(vector.contains(PlaceId{0}));
  EXPECT_FALSE(vector.contains(PlaceId{-1}));
}

}  // namespace heddle
