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

TEST(Units, bytes_and_seconds_print_in_the_unit_that_fits) {
  EXPECT_EQ(format_bytes(320), "320 B");
  EXPECT_EQ(format_bytes(1610612736), "1.50 GiB");
  EXPECT_EQ(format_seconds(0.0000123), "12.3 us");
  EXPECT_EQ(format_seconds(1.234), "1.23 s");
  EXPECT_EQ(format_seconds(723), "12 min 3 s");
}

}  // namespace heddle
