#include "base/require.hpp"

#include <gtest/gtest.h>
#include <string>

namespace heddle {

TEST(Require, throws_a_usage_error_that_shows_the_values) {
  EXPECT_NO_THROW(require(true, "never shown"));
  try {
    require(false, "a matrix of {} rows has no column {}", 3, 7);
    FAIL() << "it did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_EQ(std::string(error.what()), "a matrix of 3 rows has no column 7");
  }
}

}  // namespace heddle
