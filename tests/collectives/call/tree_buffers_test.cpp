#include "node-runtime/collectives/call/tree_buffers.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/collectives/call/buffer_cases.hpp"

namespace heddle::collectives {
namespace {

using Said = std::vector<std::string>;

/// "0 of 2", by rank.
Said staged_of(const Case& of) {
  Said all;
  for (const std::string& one : run(of, 1)) {
    EXPECT_TRUE(one.starts_with("btb, ")) << one;
    all.push_back(one.substr(5, one.find(" copies") - 5));
  }
  return all;
}

}  // namespace

TEST(TreeBuffers, give_the_same_bits_whatever_ends_first) {
  expect_the_same_bits(DeviceWay::btb);
}

/// Rank 0 copies with 1 and 2, and 2 with 3: once in each direction.
TEST(TreeBuffers, copy_as_they_are_asked_to) {
  Case of;
  of.way = DeviceWay::btb;
  of.fragment = 8000;
  for (const Copies copies : {Copies::mapped, Copies::automatic, Copies::by_speed}) {
    of.copies = copies;
    EXPECT_EQ(staged_of(of), (Said{"0 of 4", "0 of 2", "0 of 4", "0 of 2"}));
  }
  // 8000 bytes: the table stages all.
  for (const Copies copies : {Copies::staged, Copies::by_table}) {
    of.copies = copies;
    EXPECT_EQ(staged_of(of), (Said{"4 of 4", "2 of 2", "4 of 4", "2 of 2"}));
  }
  // 100,000 bytes: of 15 copies 2, so of 7 the first one, that of rank 1.
  of.ranks = 8;
  of.count = 12'500;
  of.fragment = 100'000;
  of.copies = Copies::by_table;
  EXPECT_EQ(staged_of(of),
            (Said{"2 of 6", "2 of 2", "0 of 4", "0 of 2", "0 of 6", "0 of 2", "0 of 4", "0 of 2"}));
}

TEST(TreeBuffers, are_rings_of_fragments) {
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::reduce, CollectiveKind::broadcast}) {
    Case of;
    of.way = DeviceWay::btb;
    of.kind = kind;
    of.ranks = 7;
    of.root = kind == CollectiveKind::all_reduce ? 0 : 6;
    of.fragment = 80;
    of.copies = Copies::mapped;
    for (const std::string& one : run(of, 3)) EXPECT_TRUE(one.starts_with("btb, 0 of ")) << one;
  }
}

TEST(TreeBuffers, stage_what_cannot_be_mapped) {
  Case of;
  of.way = DeviceWay::btb;
  of.fragment = 8000;
  of.copies = Copies::mapped;
  of.is_shareable = false;
  EXPECT_EQ(staged_of(of), (Said{"4 of 4", "2 of 2", "4 of 4", "2 of 2"}));
  of.is_shareable = true;
  // Rank 2 has a buffer on its device all the same.
  of.on_host = {1, 2};
  EXPECT_EQ(staged_of(of), (Said{"2 of 4", "2 of 2", "0 of 4", "0 of 2"}));
  // Asked for, refused, and asked for again; out of the buffer it is staged at once.
  of.on_host = {};
  of.refuses = {3};
  EXPECT_EQ(staged_of(of), (Said{"0 of 4", "0 of 2", "2 of 5", "2 of 3"}));
}

TEST(TreeBuffers, have_parts_that_do_not_overlap) {
  const TreeBufferLayout layout{{10'000, 1'000}, true};
  EXPECT_EQ(layout.value(4), layout.value(1)) << "a ring";
  EXPECT_EQ(layout.value(2), 2 * 1'024);
  EXPECT_EQ(layout.incoming(0), 3 * 1'024);
  EXPECT_EQ(layout.all_bytes(), 6 * 1'024);
  EXPECT_EQ((TreeBufferLayout{{10'000, 1'000}, false}.all_bytes()), 3 * 1'024) << "a broadcast";
  EXPECT_EQ((TreeBufferLayout{{1'000, 1'000}, true}.all_bytes()), 2 * 1'024) << "one fragment";
}

}  // namespace heddle::collectives
