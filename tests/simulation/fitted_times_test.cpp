#include "apps/simulation/fitted_times.hpp"

#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

namespace heddle {

/// A slow group that has run most of one kind makes neither that kind slow, nor itself slower.
TEST(FittedTimes, tell_kinds_and_groups_apart) {
  const std::vector<double> usual{3, 1, 0};
  const std::vector<double> paces{1, 2, 0.5, 0};
  const std::vector<GroupTime> times{
      {0, 0, 3.0 * 1, 1}, {1, 0, 1.0 * 9, 9}, {0, 1, 3.0 * 2 * 8, 8},
      {1, 1, 1.0 * 2, 1}, {0, 2, 3.0 / 2, 1}, {1, 2, 1.0 / 2 * 4, 4},
  };
  const FittedTimes fitted = fit_times(usual.size(), paces.size(), times);
  ASSERT_EQ(fitted.usual.size(), usual.size());
  ASSERT_EQ(fitted.paces.size(), paces.size());
  EXPECT_NEAR(fitted.usual[0] / fitted.usual[1], 3, 0.02) << "their means differ 5.7 times";
  for (std::size_t group = 0; group < 3; ++group) {
    EXPECT_NEAR(fitted.paces[group] / fitted.paces[0], paces[group], 0.02 * paces[group]) << group;
  }
  EXPECT_EQ(fitted.usual[2], 0) << "none ran";
  EXPECT_EQ(fitted.paces[3], 0) << "nothing ran";
}

TEST(FittedTimes, keep_the_sums_of_groups) {
  const std::vector<GroupTime> times{{0, 0, 5, 2}, {1, 0, 4, 3}, {0, 1, 1, 1}, {1, 1, 9, 4}};
  const FittedTimes fitted = fit_times(2, 2, times);
  for (std::size_t group = 0; group < 2; ++group) {
    double took = 0;
    double foreseen = 0;
    for (const GroupTime& time : times) {
      if (time.group != group) continue;
      took += time.seconds;
      foreseen += fitted.usual[time.kind] * fitted.paces[group] * time.count;
    }
    EXPECT_NEAR(foreseen, took, 1e-9) << group;
  }
}

TEST(FittedTimes, of_nothing_are_nothing) {
  EXPECT_TRUE(fit_times(0, 0, {}).usual.empty());
  EXPECT_EQ(fit_times(1, 1, {}).paces.front(), 0);
}

}  // namespace heddle
