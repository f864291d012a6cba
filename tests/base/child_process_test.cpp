#include "base/child_process.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <gtest/gtest.h>
#include <optional>
#include <span>
#include <stdexcept>
#include <unistd.h>

namespace heddle {
namespace {

using namespace std::chrono_literals;

constexpr auto soon = 50ms;
constexpr auto at_last = 30s;

/// Adds one to each number until the other end goes.
void count_on(const Conversation& parent) {
  for (std::int64_t number = 0; parent.receive_value(number, at_last);) {
    if (!parent.send_value(number + 1)) return;
  }
}

}  // namespace

TEST(ChildProcess, answers_messages_one_by_one) {
  const ChildProcess child("count", count_on);
  EXPECT_NE(child.id(), ::getpid());
  for (const std::int64_t number : {1, 2, 300}) {
    ASSERT_TRUE(child.conversation().send_value(number));
    std::int64_t next = 0;
    ASSERT_TRUE(child.conversation().receive_value(next, at_last));
    EXPECT_EQ(next, number + 1);
  }
}

TEST(ChildProcess, has_what_its_parent_had_and_changes_only_its_own) {
  int value = 7;
  const ChildProcess child("look", [&](const Conversation& parent) {
    value += 1;
    static_cast<void>(parent.send_value(value));
  });
  int theirs = 0;
  ASSERT_TRUE(child.conversation().receive_value(theirs, at_last));
  EXPECT_EQ(theirs, 8);
  EXPECT_EQ(value, 7);
}

TEST(ChildProcess, messages_keep_their_own_lengths) {
  const ChildProcess child("speak", [](const Conversation& parent) {
    const std::array<double, 3> three{1, 2, 3};
    static_cast<void>(parent.send(std::as_bytes(std::span(three).first(2))));
    static_cast<void>(parent.send(std::as_bytes(std::span(three))));
    static_cast<void>(parent.send_value(1.0F));
  });
  std::array<double, 8> heard{};
  const auto next = [&] {
    return child.conversation().receive(std::as_writable_bytes(std::span(heard)), at_last);
  };
  EXPECT_EQ(next(), 2 * sizeof(double));
  EXPECT_EQ(next(), 3 * sizeof(double));
  EXPECT_EQ(heard[2], 3);
  double another_size = 0;
  EXPECT_FALSE(child.conversation().receive_value(another_size, at_last));
}

TEST(ChildProcess, that_ends_is_heard_no_more) {
  for (const bool throws : {false, true}) {
    const ChildProcess child("end", [&](const Conversation&) {
      if (throws) throw std::runtime_error("not the parent's");
    });
    int number = 0;
    EXPECT_FALSE(child.conversation().receive_value(number, at_last));
    EXPECT_FALSE(child.conversation().send_value(number));
  }
}

TEST(ChildProcess, that_is_silent_is_not_waited_for_longer_than_was_said) {
  const ChildProcess child("be silent", [](const Conversation& parent) {
    int number = 0;
    static_cast<void>(parent.receive_value(number, at_last));
  });
  int number = 0;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(child.conversation().receive_value(number, soon));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, soon);
}

TEST(ChildProcess, ends_with_its_object) {
  pid_t id = 0;
  {
    const ChildProcess child("sleep", [](const Conversation&) { ::pause(); });
    id = child.id();
    EXPECT_EQ(::kill(id, 0), 0);
  }
  EXPECT_EQ(::kill(id, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

}  // namespace heddle
