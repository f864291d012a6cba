#include "node-runtime/machine/host.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace heddle
