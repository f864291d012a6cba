#include "node-runtime/collectives/schedule/copy_table.hpp"

#include <array>
#include <gtest/gtest.h>
#include <optional>

#include "node-runtime/collectives/schedule/copy_policy.hpp"

namespace heddle::collectives {
namespace {

using enum CollectiveKind;

/// Rows for 4 and 8 ranks.
CopyTable measured() {
  CopyTable table;
  table.rows = {{all_reduce, 8, 65536, 2},
                {all_reduce, 8, 4096, 7},
                {all_reduce, 8, 16384, 5},
                {all_reduce, 4, 4096, 3},
                {all_reduce, 4, 65536, 0}};
  return table;
}

/// Staged copies; -1: by speed.
std::int32_t staged_by(Copies copies, CollectiveKind kind, std::int32_t ranks, std::int64_t bytes,
                       const CopyTable& known) {
  const CopyPolicy policy = CopyPolicy::of(copies, kind, ranks, bytes, known);
  return policy.is_dynamic() ? -1 : policy.staged();
}

}  // namespace

TEST(CopyTable, has_the_row_of_the_next_larger_size) {
  const CopyTable table = measured();
  EXPECT_EQ(table.staged(all_reduce, 8, 8), 7);
  EXPECT_EQ(table.staged(all_reduce, 8, 4096), 7);
  EXPECT_EQ(table.staged(all_reduce, 8, 4097), 5);
  EXPECT_EQ(table.staged(all_reduce, 8, 65536), 2);
  EXPECT_EQ(table.staged(all_reduce, 8, 1 << 30), 2) << "the largest one";
  EXPECT_EQ(table.staged(broadcast, 8, 8), std::nullopt);
}

TEST(CopyTable, has_for_other_numbers_of_ranks_the_share_of_the_nearest) {
  const CopyTable table = measured();
  EXPECT_EQ(table.staged(all_reduce, 4, 8), 3);
  EXPECT_EQ(table.staged(all_reduce, 3, 8), 2) << "3 of 3";
  EXPECT_EQ(table.staged(all_reduce, 5, 8), 4);
  EXPECT_EQ(table.staged(all_reduce, 6, 30000), 0) << "as near to 4 as to 8: the smaller one";
  EXPECT_EQ(table.staged(all_reduce, 7, 8192), 4) << "5 of 7 are 4.3 of 6";
  EXPECT_EQ(table.staged(all_reduce, 15, 65536), 4) << "2 of 7";
}

TEST(CopyTable, that_is_published_is_that_of_the_paper) {
  const CopyTable table = published_copy_table();
  // 002 section 5.3.1: 11 of 15 for 64 KB of all_reduce; section 5.3.3: 2 for 128 KB.
  EXPECT_EQ(table.staged(all_reduce, 16, 65536), 11);
  EXPECT_EQ(table.staged(all_reduce, 16, 131072), 2);
  EXPECT_EQ(table.staged(CollectiveKind::reduce, 16, 65536), 11);
  // Section 5.2.1: 10 of 15 for 16 KB, of operations that do not reduce.
  EXPECT_EQ(table.staged(broadcast, 16, 16384), 10);
  EXPECT_EQ(table.staged(all_reduce, 16, 8), 15);
  EXPECT_EQ(table.staged(all_reduce, 16, 1 << 20), 0);
  // The same share of three copies: 11/15 of them are 2.2.
  EXPECT_EQ(table.staged(all_reduce, 4, 65536), 2);
  EXPECT_EQ(table.staged(all_reduce, 2, 8), 1);
}

TEST(CopyTable, knows_which_type_is_faster_by_far) {
  CopyTable table;
  EXPECT_EQ(table.faster(8), std::nullopt);
  // 10 us and 1 GB/s; 2 us and 0.1 GB/s.
  table.rates = {CopyTable::Rate{10e-6, 1e9}, CopyTable::Rate{2e-6, 0.1e9}};
  EXPECT_EQ(table.faster(8), CopyType::staged);
  EXPECT_EQ(table.faster(800), std::nullopt) << "10.8 and 10 us";
  EXPECT_EQ(table.faster(100'000), CopyType::mapped);
}

/// The choice, for all that a call may want.
TEST(Copies, are_chosen_by_what_is_known) {
  const CopyTable nothing;
  CopyTable rates;
  rates.rates = {CopyTable::Rate{10e-6, 1e9}, CopyTable::Rate{2e-6, 0.1e9}};
  CopyTable all = measured();
  all.rates = rates.rates;
  struct Case {
    Copies copies;
    std::int64_t bytes;
    std::array<std::int32_t, 3> staged;  ///< nothing is known; rates are; all is
  };
  for (const Case& c :
       {Case{Copies::automatic, 8, {-1, 8, 7}}, Case{Copies::automatic, 800, {-1, -1, 7}},
        Case{Copies::automatic, 16384, {-1, 0, 5}}, Case{Copies::automatic, 1 << 20, {-1, 0, 2}},
        Case{Copies::by_speed, 8, {-1, -1, -1}}, Case{Copies::by_table, 8, {7, 7, 7}},
        Case{Copies::by_table, 16384, {5, 5, 5}}, Case{Copies::by_table, 1 << 20, {0, 0, 2}},
        Case{Copies::mapped, 8, {0, 0, 0}}, Case{Copies::staged, 1 << 20, {8, 8, 8}}}) {
    SCOPED_TRACE(std::string(name_of(c.copies)) + " " + std::to_string(c.bytes));
    EXPECT_EQ(staged_by(c.copies, all_reduce, 8, c.bytes, nothing), c.staged[0]);
    EXPECT_EQ(staged_by(c.copies, all_reduce, 8, c.bytes, rates), c.staged[1]);
    EXPECT_EQ(staged_by(c.copies, all_reduce, 8, c.bytes, all), c.staged[2]);
  }
  // The operation has no rows.
  EXPECT_EQ(staged_by(Copies::automatic, broadcast, 8, 1 << 20, all), 0) << "by rates";
  EXPECT_EQ(staged_by(Copies::by_table, broadcast, 8, 16384, all), 5) << "published: 10 of 15";
}

}  // namespace heddle::collectives
