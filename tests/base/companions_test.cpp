#include "base/companions.hpp"

#include <csignal>
#include <gtest/gtest.h>
#include <string>

#include "base/error.hpp"

namespace heddle {
namespace {

/// Doubles the numbers that it is told.
void double_all(const Conversation& parent) {
  for (int word = 0; parent.receive_value(word, Conversation::always);) {
    if (!parent.send_value(2 * word)) return;
  }
}

std::string refusal(const Companions& companions, std::size_t i) {
  try {
    static_cast<void>(companions.hear<int>(i));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
    return error.what();
  }
  ADD_FAILURE() << "it has answered";
  return {};
}

}  // namespace

TEST(Companions, answer_what_they_are_told_each_on_its_own) {
  Companions companions("doubles numbers");
  for (int i = 0; i < 3; ++i) companions.add(double_all);
  ASSERT_EQ(companions.count(), 3U);
  companions.tell_all(7);
  companions.tell(1, 8);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(companions.hear<int>(i), 14);
  EXPECT_EQ(companions.hear<int>(1), 16);
}

TEST(Companions, that_have_gone_are_told_of_with_what_they_did) {
  Companions companions("doubles numbers");
  for (int i = 0; i < 2; ++i) companions.add(double_all);
  ::kill(companions.process(0), SIGKILL);
  companions.tell_all(1);
  EXPECT_EQ(companions.hear<int>(1), 2);
  EXPECT_EQ(
      refusal(companions, 0),
      "a process that doubles numbers beside this one, as the nodes of a host do, ended or was "
      "silent for 60 s");
}

TEST(Companions, that_answer_otherwise_are_refused) {
  Companions companions("answers otherwise");
  companions.add([](const Conversation& parent) {
    static_cast<void>(parent.send_value('x'));
    for (int word = 0; parent.receive_value(word, Conversation::always);) {
    }
  });
  EXPECT_NE(refusal(companions, 0).find("answers otherwise"), std::string::npos);
}

}  // namespace heddle
