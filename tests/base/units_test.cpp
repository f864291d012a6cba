#include "base/units.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace heddle {

TEST(Units, bytes_read_back_what_a_person_writes) {
  EXPECT_EQ(parse_bytes("4096"), 4096U);
  EXPECT_EQ(parse_bytes("1.5GiB"), 1610612736U);
  EXPECT_EQ(parse_bytes("512 MiB"), 536870912U);
  EXPECT_EQ(parse_bytes("100kB"), 100000U);
}

TEST(Units, bytes_refuse_what_is_no_size) {
  for (const char* text : {"", "GiB", "-1", "4 apples", "nan", "1e40", "inf"}) {
    EXPECT_THROW(static_cast<void>(parse_bytes(text)), Error) << text;
  }
}

TEST(Units, bytes_tell_what_is_too_large_from_what_is_no_size) {
  const auto refusal = [](const char* text) -> std::string {
    try {
      static_cast<void>(parse_bytes(text));
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_EQ(refusal("1e400GiB"),
            "the size '1e400GiB' is too large; at most 4194304.00 TiB can be asked for");
  EXPECT_EQ(refusal("5000000TiB"),
            "the size '5000000TiB' is too large; at most 4194304.00 TiB can be asked for");
  EXPECT_EQ(refusal("4 apples"),
            "'4 apples' is not a size; write a number and a unit, such as 512MiB");
}

TEST(Units, bytes_and_seconds_print_in_the_unit_that_fits) {
  EXPECT_EQ(format_bytes(320), "320 B");
  EXPECT_EQ(format_bytes(1610612736), "1.50 GiB");
  EXPECT_EQ(format_seconds(0.0000123), "12.3 us");
  EXPECT_EQ(format_seconds(1.234), "1.23 s");
  EXPECT_EQ(format_seconds(723), "12 min 3 s");
}

}  // namespace heddle
