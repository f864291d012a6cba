#include "node-runtime/collectives/schedule/copy_policy.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::collectives {
namespace {

constexpr CopyType mapped = CopyType::mapped;
constexpr CopyType staged = CopyType::staged;

/// "s0 m1 m2!": copies by type; done again with "!".
std::string text(const CopyStage::Assignments& assignments) {
  std::string all;
  for (const CopyStage::Assignment& one : assignments) {
    all += fmt::format("{}{}{}{}", all.empty() ? "" : " ", one.type == staged ? "s" : "m", one.copy,
                       one.is_again ? "!" : "");
  }
  return all;
}

/// All of a stage's copies arrive in the order of their numbers.
std::string all_arrive(CopyStage& stage, std::int32_t copies) {
  CopyStage::Assignments all;
  for (std::int32_t c = 0; c < copies; ++c) {
    const CopyStage::Assignments some = stage.arrived(c);
    all.insert(all.end(), some.begin(), some.end());
  }
  return text(all);
}

}  // namespace

TEST(StaticCopies, are_staged_by_arrival) {
  CopyPolicy policy = CopyPolicy::fixed(2);
  CopyStage stage(policy, 4, CopyStage::Repeats::last_slow_one);
  EXPECT_EQ(text(stage.arrived(3)), "s3");
  EXPECT_EQ(text(stage.arrived(0)), "s0");
  EXPECT_EQ(text(stage.arrived(2)), "m2");
  EXPECT_EQ(text(stage.ended(2, mapped)), "");
  EXPECT_EQ(text(stage.arrived(1)), "m1");
  EXPECT_EQ(text(stage.ended(1, mapped)), "");
  EXPECT_EQ(text(stage.ended(0, staged)), "");
  EXPECT_FALSE(stage.is_over());
  // The last one is not done again: the table knows.
  EXPECT_EQ(text(stage.ended(3, staged)), "");
  EXPECT_TRUE(stage.is_over());
}

TEST(StaticCopies, are_all_of_one_type_where_that_is_asked_for) {
  CopyPolicy none = CopyPolicy::of(Copies::mapped, CollectiveKind::all_reduce, 4, 8, {});
  CopyStage mapped_stage(none, 3, CopyStage::Repeats::last_slow_one);
  EXPECT_EQ(all_arrive(mapped_stage, 3), "m0 m1 m2");
  CopyPolicy all = CopyPolicy::of(Copies::staged, CollectiveKind::all_reduce, 4, 1 << 30, {});
  CopyStage staged_stage(all, 3, CopyStage::Repeats::last_slow_one);
  EXPECT_EQ(all_arrive(staged_stage, 3), "s0 s1 s2");
}

TEST(DynamicCopies, begin_with_one_of_each_type_and_then_wait) {
  CopyPolicy policy = CopyPolicy::dynamic();
  CopyStage stage(policy, 5, CopyStage::Repeats::last_slow_one);
  EXPECT_EQ(text(stage.arrived(4)), "s4");
  EXPECT_EQ(text(stage.arrived(2)), "m2");
  EXPECT_EQ(text(stage.arrived(0)), "");
  EXPECT_EQ(text(stage.arrived(1)), "");
  EXPECT_EQ(stage.state(4), CopyState::staged_assigned);
  EXPECT_EQ(stage.state(2), CopyState::mapped_assigned);
  EXPECT_EQ(stage.state(0), CopyState::ready);
  EXPECT_EQ(stage.state(3), CopyState::initial);
}

/// A slow type: mapped copies end, and the staged one does much later.
TEST(DynamicCopies, take_the_faster_type_two_to_the_difference_times) {
  CopyPolicy policy = CopyPolicy::dynamic();
  CopyStage stage(policy, 15, CopyStage::Repeats::last_slow_one);
  EXPECT_EQ(all_arrive(stage, 15), "s0 m1");
  // One mapped has ended, and no staged one: 2^1.
  EXPECT_EQ(text(stage.ended(1, mapped)), "m2 m3");
  // Two: 2^2.
  EXPECT_EQ(text(stage.ended(2, mapped)), "m4 m5 m6 m7");
  EXPECT_EQ(text(stage.ended(0, staged)), "s8") << "1 - 2 < 0: the slow type has one more";
  EXPECT_EQ(text(stage.ended(3, mapped)), "m9 m10 m11 m12") << "3 - 1: 2^2";
  EXPECT_EQ(text(stage.ended(8, staged)), "s13") << "2 - 3 < 0";
  EXPECT_EQ(text(stage.ended(13, staged)), "s14") << "3 - 3 = 0";
  for (const std::int32_t c : {4, 5, 6, 7, 9, 10, 11, 12}) {
    EXPECT_EQ(text(stage.ended(c, mapped)), "");
  }
  EXPECT_FALSE(stage.is_over());
  EXPECT_EQ(text(stage.ended(14, staged)), "") << "staged copies have ended before";
  EXPECT_TRUE(stage.is_over());
}

/// A stuck type: its first copy never ends in the stage.
TEST(DynamicCopies, do_the_last_slow_copy_again_and_leave_its_type_out_afterwards) {
  CopyPolicy policy = CopyPolicy::dynamic();
  {
    CopyStage gather(policy, 4, CopyStage::Repeats::last_slow_one);
    EXPECT_EQ(all_arrive(gather, 4), "s0 m1");
    EXPECT_EQ(text(gather.ended(1, mapped)), "m2 m3");
    EXPECT_EQ(text(gather.ended(2, mapped)), "");
    EXPECT_EQ(text(gather.ended(3, mapped)), "m0!");
    EXPECT_FALSE(gather.is_over());
    EXPECT_EQ(text(gather.ended(0, mapped)), "");
    EXPECT_EQ(gather.state(0), CopyState::mapped_ended);
    EXPECT_TRUE(gather.is_over()) << "the slow copy overlaps what follows";
  }
  CopyStage broadcast(policy, 4, CopyStage::Repeats::never);
  EXPECT_EQ(all_arrive(broadcast, 4), "m0 m1 m2 m3");
  // The slow copy of the first stage has ended now: its type may be used again.
  policy.ended(staged);
  CopyStage next(policy, 4, CopyStage::Repeats::never);
  EXPECT_EQ(all_arrive(next, 4), "s0 m1");
}

TEST(DynamicCopies, may_have_a_stuck_mapped_copy_as_well) {
  CopyPolicy policy = CopyPolicy::dynamic();
  CopyStage gather(policy, 3, CopyStage::Repeats::last_slow_one);
  EXPECT_EQ(all_arrive(gather, 3), "s0 m1");
  EXPECT_EQ(text(gather.ended(0, staged)), "s2");
  EXPECT_EQ(text(gather.ended(2, staged)), "s1!");
  // The slow one ends first after all; the other end is only a fact about its type.
  EXPECT_EQ(text(gather.ended(1, mapped)), "");
  EXPECT_TRUE(gather.is_over());
  EXPECT_EQ(gather.state(1), CopyState::mapped_ended);
  EXPECT_EQ(text(gather.ended(1, staged)), "");
  EXPECT_EQ(gather.state(1), CopyState::mapped_ended);
  CopyStage broadcast(policy, 3, CopyStage::Repeats::never);
  EXPECT_EQ(all_arrive(broadcast, 3), "s0 m1") << "both types have ended";
}

TEST(DynamicCopies, that_alternate_share_the_copies) {
  CopyPolicy policy = CopyPolicy::dynamic();
  CopyStage stage(policy, 6, CopyStage::Repeats::last_slow_one);
  EXPECT_EQ(all_arrive(stage, 6), "s0 m1");
  EXPECT_EQ(text(stage.ended(1, mapped)), "m2 m3");
  EXPECT_EQ(text(stage.ended(0, staged)), "s4") << "1 - 1 = 0";
  EXPECT_EQ(text(stage.ended(2, mapped)), "m5") << "2 - 1: 2^1, of which one is left";
  EXPECT_EQ(text(stage.ended(4, staged)), "");
  EXPECT_EQ(text(stage.ended(3, mapped)), "");
  EXPECT_EQ(text(stage.ended(5, mapped)), "");
  EXPECT_TRUE(stage.is_over());
}

TEST(DynamicCopies, that_arrive_late_take_what_was_granted) {
  CopyPolicy policy = CopyPolicy::dynamic();
  CopyStage stage(policy, 4, CopyStage::Repeats::last_slow_one);
  EXPECT_EQ(text(stage.arrived(0)), "s0");
  EXPECT_EQ(text(stage.ended(0, staged)), "") << "others have not come: nothing is done again";
  EXPECT_EQ(text(stage.arrived(1)), "m1") << "the second copy of all is of the other type";
  EXPECT_EQ(text(stage.arrived(2)), "s2");
  EXPECT_EQ(text(stage.arrived(3)), "s3") << "2^1 staged ones";
}

TEST(DynamicCopies, of_one_rank_are_mapped) {
  CopyPolicy policy = CopyPolicy::dynamic();
  CopyStage gather(policy, 1, CopyStage::Repeats::last_slow_one);
  EXPECT_EQ(text(gather.arrived(0)), "m0");
  EXPECT_EQ(text(gather.ended(0, mapped)), "");
  EXPECT_TRUE(gather.is_over());
}

TEST(Copies, that_cannot_be_mapped_are_staged) {
  CopyPolicy policy = CopyPolicy::dynamic();
  CopyStage stage(policy, 3, CopyStage::Repeats::last_slow_one);
  EXPECT_EQ(text(stage.arrived(0, false)), "s0");
  EXPECT_EQ(text(stage.arrived(1)), "m1");
  EXPECT_EQ(text(stage.refused(1)), "s1");
  EXPECT_EQ(stage.state(1), CopyState::staged_assigned);
  EXPECT_EQ(text(stage.arrived(2, false)), "");
  EXPECT_EQ(text(stage.ended(1, staged)), "s2");
  EXPECT_EQ(text(stage.ended(0, staged)), "");
  EXPECT_EQ(text(stage.ended(2, staged)), "");
  EXPECT_TRUE(stage.is_over());
  CopyPolicy all_mapped = CopyPolicy::fixed(0);
  CopyStage other(all_mapped, 2, CopyStage::Repeats::never);
  EXPECT_EQ(text(other.arrived(0, false)), "s0");
  EXPECT_EQ(text(other.arrived(1)), "m1");
}

TEST(Copies, done_again_by_a_mapping_that_is_refused_go_on_as_they_were) {
  CopyPolicy policy = CopyPolicy::dynamic();
  CopyStage stage(policy, 2, CopyStage::Repeats::last_slow_one);
  EXPECT_EQ(all_arrive(stage, 2), "s0 m1");
  EXPECT_EQ(text(stage.ended(1, mapped)), "m0!");
  EXPECT_EQ(text(stage.refused(0)), "");
  EXPECT_EQ(text(stage.ended(0, staged)), "");
  EXPECT_TRUE(stage.is_over());
  EXPECT_EQ(stage.state(0), CopyState::staged_ended);
}

TEST(Copies, have_the_eight_states_of_the_directory) {
  CopyPolicy policy = CopyPolicy::fixed(1);
  CopyStage stage(policy, 2, CopyStage::Repeats::never);
  std::vector<std::string_view> seen{name_of(stage.state(0))};
  static_cast<void>(stage.arrived(0));
  static_cast<void>(stage.arrived(1));
  for (const std::int32_t c : {0, 1}) {
    seen.push_back(name_of(stage.state(c)));
    stage.begun(c);
    seen.push_back(name_of(stage.state(c)));
    static_cast<void>(stage.ended(c, c == 0 ? staged : mapped));
    seen.push_back(name_of(stage.state(c)));
    stage.begun(c);
    EXPECT_EQ(name_of(stage.state(c)), seen.back()) << "it has ended, whenever that is told";
  }
  EXPECT_EQ(seen, (std::vector<std::string_view>{"INIT", "HS_ASGN", "HS_INIT", "HS_CMP", "IPC_ASGN",
                                                 "IPC_INIT", "IPC_CMP"}));
  CopyPolicy dynamic = CopyPolicy::dynamic();
  CopyStage waiting(dynamic, 3, CopyStage::Repeats::never);
  EXPECT_EQ(all_arrive(waiting, 3), "s0 m1");
  EXPECT_EQ(name_of(waiting.state(2)), "RTS");
}

}  // namespace heddle::collectives
