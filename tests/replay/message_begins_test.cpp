#include "replay/message_begins.hpp"

#include <gtest/gtest.h>

#include "tests/replay/run_builder.hpp"

namespace heddle::replay {
namespace {

TEST(MessageBegins, when_the_version_was_written_and_the_receiver_had_a_block) {
  test::RunBuilder builder(2, 1);
  builder.task(0, 0, "a", 10, 50, {test::changes(0, 0)});
  builder.task(0, 0, "a", 50, 60, {test::changes(1, 0)});
  builder.task(0, 0, "a", 60, 90, {test::changes(2, 0)});
  builder.message(0, 1, 0, 1, 70, 100, 20);  // sent late
  builder.message(0, 1, 1, 1, 85, 101, 80);  // awaited late
  builder.message(0, 1, 3, 0, 84, 102, 30);  // no task wrote it
  builder.message(0, 1, 2, 1, 88, 89, 30);   // by clocks that are not quite alike
  const RunTrace run = builder.run();
  ASSERT_EQ(run.messages.size(), 4U);
  const std::vector<std::int64_t> begins = message_begins(run, 0);
  ASSERT_EQ(begins.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::int64_t expected[] = {50'000, 80'000, 88'999, 84'000};  // by tile
    EXPECT_EQ(begins[i], expected[run.messages[i].tile.index]) << i;
  }
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(message_begins(run, 1)[i], run.messages[i].time.start_ns) << "of another job";
  }
}

}  // namespace
}  // namespace heddle::replay
