#include "replay/collective_figures.hpp"

#include <gtest/gtest.h>
#include <string>

#include "replay/analysis.hpp"
#include "tests/replay/run_builder.hpp"

namespace heddle::replay {
namespace {

using test::changes;
using test::RunBuilder;

}  // namespace

TEST(CollectiveFigures, count_an_operation_once_with_the_member_that_it_takes_longest) {
  RunBuilder build(2, 1);
  const auto reduce = [&](std::int64_t number, std::int64_t first_us, std::int64_t second_us) {
    build.collective(0, {"all_reduce", "host chain", 5, number, 80}, 100 * number,
                     100 * number + first_us);
    build.collective(1, {"all_reduce", "host chain", 5, number, 80}, 100 * number,
                     100 * number + second_us);
  };
  reduce(1, 10, 30);
  reduce(2, 20, 10);
  reduce(3, 50, 60);
  // The same number in another group, and another way.
  build.collective(0, {"all_reduce", "host board", 6, 1, 8}, 500, 507);
  build.collective(1, {"barrier", "host board", 5, 4, 0}, 600, 601);
  const auto all = collective_figures(build.run());
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].operation, "all_reduce");
  EXPECT_EQ(all[0].algorithm, "host chain");
  EXPECT_EQ(all[0].count, 3);
  EXPECT_EQ(all[0].bytes, 3 * 2 * 80);
  EXPECT_NEAR(all[0].seconds, 110e-6, 1e-12);
  EXPECT_EQ(all[0].median_us, 30);
  EXPECT_EQ(all[0].most_us, 60);
  EXPECT_EQ(all[1].algorithm, "host board");
  EXPECT_EQ(all[1].median_us, 7);
  EXPECT_EQ(all[2].operation, "barrier");
  EXPECT_EQ(all[2].count, 1);
}

TEST(CollectiveFigures, of_a_run_without_groups_are_none) {
  RunBuilder build(1, 1);
  build.task(0, 0, "a", 0, 40, {changes(0, 0)});
  EXPECT_TRUE(collective_figures(build.run()).empty());
}

TEST(CollectiveFigures, have_a_row_that_counts_as_no_thread) {
  RunBuilder build(1, 1);
  build.task(0, 0, "a", 0, 40, {changes(0, 0)});
  build.collective(0, {"barrier", "host board", 5, 1, 0}, 10, 20);
  const Analysis analysis = analyze(build.run(), 0);
  EXPECT_EQ(analysis.threads.size(), 1U);
  EXPECT_EQ(analysis.services.size(), 1U) << "that of messages";
}

}  // namespace heddle::replay
