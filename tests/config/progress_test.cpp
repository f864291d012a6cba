#include <array>
#include <cstdio>
#include <gtest/gtest.h>
#include <memory>
#include <pty.h>
#include <string>
#include <termios.h>
#include <unistd.h>

#include "apps/report.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;

/// A terminal of which the test reads the other end.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) {
    winsize size{};
    size.ws_col = columns;
    size.ws_row = 24;
    termios raw{};
    ::cfmakeraw(&raw);
    int slave = -1;
    if (::openpty(&master_, &slave, nullptr, &raw, &size) != 0) throw std::runtime_error("openpty");
    stream_ = ::fdopen(slave, "w");
  }
  ~Terminal() {
    static_cast<void>(std::fclose(stream_));
    static_cast<void>(::close(master_));
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  [[nodiscard]] std::FILE* stream() const { return stream_; }

  /// What was written since the last call; ends it with a mark, so that it never blocks.
  [[nodiscard]] std::string output() const {
    static_cast<void>(std::fputs("\x04", stream_));
    static_cast<void>(std::fflush(stream_));
    std::string text;
    while (!text.ends_with('\x04')) {
      std::array<char, 256> part{};
      const ssize_t size = ::read(master_, part.data(), part.size());
      if (size <= 0) break;
      text.append(part.data(), static_cast<std::size_t>(size));
    }
    return text.substr(0, text.size() - 1);
  }

 private:
  int master_ = -1;
  std::FILE* stream_ = nullptr;
};

constexpr Progress halfway{"factorizing", 43e9 * 10, 100e9 * 10, 4.3};

TEST(ProgressText, ShowsPercentRateAndRemainingTime) {
  EXPECT_EQ(progress_text({"factorizing", 43e9, 100e9, 0.5}),
            "factorizing  43 %  86.0 GFLOP/s  ETA 1 s");
  EXPECT_EQ(progress_text({"solving", 1e9, 1000e9, 10}),
            "solving   0 %  0.1 GFLOP/s  ETA 2 h 46 min");
  EXPECT_EQ(progress_text({"solving", 5e9, 5e9, 1}), "solving  100 %  5.0 GFLOP/s  ETA 0 s");
}

TEST(ProgressText, LeavesOutWhatIsNotKnownYet) {
  EXPECT_EQ(progress_text({"reading", 0, 100, 5}), "reading   0 %");
  EXPECT_EQ(progress_text({"factorizing", 1e9, 100e9, 0.01}), "factorizing   1 %");
  EXPECT_EQ(progress_text({"factorizing", 0, 0, 0}), "factorizing  100 %");
  EXPECT_EQ(progress_text({"factorizing", 200, 100, 0}), "factorizing  100 %");
}

TEST(ProgressLine, WritesNothingWhereThereIsNoTerminal) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  {
    ProgressLine line(file);
    EXPECT_FALSE(line.active());
    line.update(halfway);
    line.clear();
  }
  EXPECT_EQ(std::ftell(file), 0);
  static_cast<void>(std::fclose(file));
}

TEST(ProgressLine, OverwritesItsLineAndClearsItAtTheEnd) {
  const Terminal terminal(80);
  auto line = std::make_unique<ProgressLine>(terminal.stream());
  EXPECT_TRUE(line->active());
  line->update(halfway, ProgressLine::Clock::time_point(1s));
  EXPECT_EQ(terminal.output(), "\rfactorizing  43 %  100.0 GFLOP/s  ETA 6 s\x1b[K");
  line.reset();
  EXPECT_EQ(terminal.output(), "\r\x1b[K");
}

TEST(ProgressLine, ShowsAtMostOneLineInAnIntervalButANewPhaseAtOnce) {
  const Terminal terminal(80);
  ProgressLine line(terminal.stream());
  const ProgressLine::Clock::time_point start(1s);
  line.update(halfway, start);
  EXPECT_NE(terminal.output(), "");
  line.update(halfway, start + ProgressLine::interval / 2);
  EXPECT_EQ(terminal.output(), "");
  line.update(halfway, start + ProgressLine::interval);
  EXPECT_NE(terminal.output(), "");
  line.update({"solving", 0, 1, 0}, start + ProgressLine::interval);
  EXPECT_EQ(terminal.output(), "\rsolving   0 %\x1b[K");
}

TEST(ProgressLine, ClearingTwiceOrBeforeAnyLineWritesNothingMore) {
  const Terminal terminal(80);
  ProgressLine line(terminal.stream());
  line.clear();
  EXPECT_EQ(terminal.output(), "");
  line.update(halfway);
  line.clear();
  static_cast<void>(terminal.output());
  line.clear();
  EXPECT_EQ(terminal.output(), "");
}

TEST(ProgressLine, IsCutToTheWidthOfTheTerminal) {
  const Terminal terminal(20);
  ProgressLine line(terminal.stream());
  line.update(halfway);
  EXPECT_EQ(terminal.output(), "\rfactorizing  43 %  \x1b[K");
}

}  // namespace
}  // namespace heddle
