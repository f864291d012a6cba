#include "base/nearest.hpp"

#include <array>
#include <gtest/gtest.h>
#include <string>

namespace heddle {
namespace {

TEST(Nearest, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("tile", "tile"), 0U);
  EXPECT_EQ(edit_distance("tlie", "tile"), 1U);
  EXPECT_EQ(edit_distance("matrx", "matrix"), 1U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("CPU-workers", "cpu_workers"), 0U);
}

TEST(Nearest, OffersOnlyWhatIsNear) {
  constexpr std::array<std::string_view, 4> keys{"tile", "strip", "condition", "cpu_workers"};
  EXPECT_EQ(nearest("tlie", keys), "tile");
  EXPECT_EQ(nearest("cond", keys), "condition");
  EXPECT_EQ(nearest("workers", keys), "cpu_workers");
  EXPECT_EQ(nearest("banana", keys), "");
  EXPECT_EQ(nearest("x", keys), "");
  EXPECT_EQ(nearest(std::string(100'000, 'a'), keys), "");
}

}  // namespace
}  // namespace heddle
