#include "node-runtime/collectives/call/shared_buffer.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/collectives/call/buffer_cases.hpp"

namespace heddle::collectives {
namespace {

/// All ranks say the same.
std::string way_of(const Case& of, std::uint32_t seed = 1) {
  const std::vector<std::string> said = run(of, seed);
  for (const std::string& one : said) EXPECT_EQ(one, said.front());
  return said.front();
}

}  // namespace

TEST(SharedBuffer, gives_the_same_bits_whatever_ends_first) {
  expect_the_same_bits(DeviceWay::gsb);
}

TEST(SharedBuffer, copies_as_it_is_asked_to) {
  Case of;
  of.fragment = 8000;
  of.copies = Copies::mapped;
  EXPECT_EQ(way_of(of), "gsb, 0 of 6 copies staged");
  of.copies = Copies::staged;
  EXPECT_EQ(way_of(of), "gsb, 6 of 6 copies staged");
  // 8000 bytes: the table stages all.
  of.copies = Copies::by_table;
  EXPECT_EQ(way_of(of), "gsb, 6 of 6 copies staged");
  of.kind = CollectiveKind::reduce;
  EXPECT_EQ(way_of(of), "gsb, 3 of 3 copies staged");
  of.copies = Copies::mapped;
  of.fragment = 4000;
  EXPECT_EQ(way_of(of), "gsb, 0 of 6 copies staged") << "two fragments";
}

TEST(SharedBuffer, stages_what_cannot_be_mapped) {
  Case of;
  of.fragment = 8000;
  of.copies = Copies::mapped;
  of.is_shareable = false;
  EXPECT_EQ(way_of(of), "gsb, 6 of 6 copies staged");
  of.is_shareable = true;
  of.on_host = {2};
  EXPECT_EQ(way_of(of), "gsb, 2 of 6 copies staged");
  // Asked for, refused, and asked for again; out of the buffer it is staged at once.
  of.on_host = {};
  of.refuses = {3};
  EXPECT_EQ(way_of(of), "gsb, 2 of 7 copies staged");
}

TEST(SharedBuffer, does_a_stuck_copy_again_and_uses_what_came_in_time) {
  for (const bool is_in_place : {false, true}) {
    Case of;
    of.ranks = 6;
    of.fragment = 8000;
    of.is_in_place = is_in_place;
    // The staged copy of the first one to come ends when nothing else can.
    of.is_stuck = [](const Event& e) { return e.is_elements; };
    EXPECT_EQ(way_of(of), "gsb, 1 of 11 copies staged");
    of.is_stuck = [](const Event& e) { return e.is_mapped; };
    EXPECT_EQ(way_of(of), "gsb, 10 of 11 copies staged");
  }
}

TEST(SharedBuffer, has_parts_that_do_not_overlap) {
  const SharedBufferLayout layout{{10'000, 1'000}, 3};
  EXPECT_EQ(layout.cut.fragments(), 10);
  std::vector<std::int64_t> begins;
  for (std::int64_t f = 0; f < layout.cut.places(); ++f) {
    for (std::int32_t m = 0; m < 3; ++m) begins.push_back(layout.slot(m, f));
    begins.push_back(layout.result(f));
    begins.push_back(layout.own(f));
  }
  begins.push_back(layout.again());
  begins.push_back(layout.all_bytes());
  std::ranges::sort(begins);
  EXPECT_EQ(begins.front(), 0);
  for (std::size_t k = 1; k < begins.size(); ++k) EXPECT_GE(begins[k] - begins[k - 1], 1'000);
  EXPECT_EQ(layout.slot(2, 4), layout.slot(2, 1)) << "a ring";
  EXPECT_EQ((SharedBufferLayout{{1'000, 1'000}, 3}.all_bytes()), 1'024 * (4 + 2)) << "one fragment";
}

}  // namespace heddle::collectives
