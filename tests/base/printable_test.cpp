#include "base/printable.hpp"

#include <gtest/gtest.h>
#include <string>

#include "base/error.hpp"

namespace heddle {

TEST(Printable, leaves_text_as_it_is) {
  EXPECT_EQ(printable("k.npy"), "k.npy");
  EXPECT_EQ(printable("für 行列 ∞ €"), "für 行列 ∞ €");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, writes_control_characters_as_in_c) {
  EXPECT_EQ(printable("\x1b[31mred"), "\\x1B[31mred");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("a\nb\rc\td\x7f"), "a\\nb\\rc\\td\\x7F");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\xC2\\x9B31m");  // the one-byte ESC [ of ISO 6429
}

TEST(Printable, writes_bytes_that_are_no_text_as_in_c) {
  EXPECT_EQ(printable("caf\xE9"), "caf\\xE9");
  EXPECT_EQ(printable("\xC3"), "\\xC3");
  EXPECT_EQ(printable("\xED\xA0"), "\\xED\\xA0");
}

TEST(Printable, keeps_the_line_breaks_of_a_message_only) {
  EXPECT_EQ(printable("one\ntwo\r", LineBreaks::kept), "one\ntwo\\r");
}

TEST(Printable, shortens_by_characters) {
  EXPECT_EQ(printable_start("äöü", 3), "äöü");
  EXPECT_EQ(printable_start("äöüß", 3), "äöü...");
  EXPECT_EQ(printable_start("\x1b\x1b\x1b", 2), "\\x1B\\x1B...");
}

TEST(Error, says_nothing_that_a_terminal_takes_for_a_command) {
  std::string message = "the value '1?2\x1b[2J' is none\nsecond";
  message[message.find('?')] = '\0';
  const Error error(ErrorCode::usage, message);
  EXPECT_EQ(std::string(error.what()), "the value '1\\x002\\x1B[2J' is none\nsecond");
}

}  // namespace heddle
