#include "node-runtime/device/populate.hpp"

#include <gtest/gtest.h>

#include "tests/device/fresh_memory.hpp"

namespace heddle {
namespace {

using testing::FreshMemory;

TEST(PopulatePages, gives_pages_to_all_of_it_and_keeps_what_is_there) {
  const std::size_t page = FreshMemory::page_bytes();
  const std::size_t bytes = std::size_t{33} << 20;
  const FreshMemory memory(bytes);
  memory.address()[page + 7] = 5;
  populate_pages(memory.address() + 100, bytes - 200);
  if (!memory.can_populate()) GTEST_SKIP() << "this system cannot populate pages";
  EXPECT_EQ(memory.pages(0, bytes), bytes / page);
  EXPECT_EQ(memory.address()[page + 7], 5);
  EXPECT_EQ(memory.address()[bytes - 1], 0);
}

TEST(PopulatePages, leaves_what_lies_beside_it) {
  const std::size_t page = FreshMemory::page_bytes();
  const FreshMemory memory(64 * page);
  memory.keep_pages_small();
  populate_pages(memory.address() + 8 * page, 8 * page);
  populate_pages(memory.address() + 40 * page, 0);
  EXPECT_EQ(memory.pages(0, 8 * page), 0U);
  EXPECT_EQ(memory.pages(16 * page, 64 * page), 0U);
}

}  // namespace
}  // namespace heddle
