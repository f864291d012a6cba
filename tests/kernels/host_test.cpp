#include "node-runtime/machine/host.hpp"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <unistd.h>

namespace heddle {
namespace {

TEST(Host, SaysWhatWasStolenWhereTheSystemDoes) {
  const auto before = stolen_seconds();
  const auto after = stolen_seconds();
  ASSERT_EQ(before.has_value(), after.has_value());
  if (!before) GTEST_SKIP() << "this system has no /proc/stat";
  EXPECT_GE(*before, 0);
  EXPECT_GE(*after, *before);
}

TEST(Host, ReadsWhatTheSystemSaysOfStolenTimeAndNothingElse) {
  const auto read = [](const std::string& text) {
    std::istringstream stat(text);
    return stolen_seconds(stat);
  };
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto all = read("cpu  4705 356 584 3699 23 23 0 250 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n");
  ASSERT_TRUE(all.has_value());
  EXPECT_DOUBLE_EQ(*all, 250 / ticks);
  // Missing, of a system that does not know of stealing, of one processor, and no numbers.
  for (const char* text : {"", "cpu  4705 356 584 3699 23 23 0\n", "cpu0 1 2 3 4 5 6 7 8 9 10\n",
                           "cpu  a b c d e f g h\n"}) {
    EXPECT_FALSE(read(text).has_value()) << text;
  }
  std::ifstream nowhere("/nowhere/stat");
  EXPECT_FALSE(stolen_seconds(nowhere).has_value());
}

TEST(Host, KnowsSinceWhenTheProcessRuns) {
  const auto before = seconds_of_process();
  if (!before) GTEST_SKIP() << "this system has no /proc/self/stat";
  EXPECT_GE(*before, 0);
  EXPECT_LT(*before, 3600);
  EXPECT_GE(seconds_of_process().value_or(-1), *before);
}

TEST(Host, ReadsWhenAProcessBeganWhateverItsName) {
  const auto read = [](const std::string& text, double uptime) {
    std::istringstream stat(text);
    return seconds_of_process(stat, uptime);
  };
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const std::string fields = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 500 20 21\n";
  for (const char* name : {"(heddle)", "(a b) c)", "()"}) {
    const auto seconds = read("4711 " + std::string(name) + fields, 500 / ticks + 1.5);
    ASSERT_TRUE(seconds.has_value()) << name;
    EXPECT_NEAR(*seconds, 1.5, 1e-9) << name;
  }
  EXPECT_EQ(read("4711 (heddle)" + fields, 0), 0);  // clocks that disagree
  for (const char* text : {"", "4711 heddle S 1", "4711 (heddle) S 1 2 3"}) {
    EXPECT_FALSE(read(text, 10).has_value()) << text;
  }
}

}  // namespace
}  // namespace heddle
