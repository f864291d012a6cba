#include "node-runtime/collectives/call_log.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>

namespace heddle::collectives {
namespace {

Call barrier(const char* name = "") {
  Call call;
  call.kind = CollectiveKind::barrier;
  call.options.name = name;
  return call;
}

/// Operation `number`, which never begins.
std::shared_ptr<Operation> never_begun(std::int64_t number) {
  Task task;
  task.schedule = std::make_shared<const CompiledSchedule>(Schedule{});
  task.place = [](std::int32_t) { return BlockPlace{0, 0, 0}; };
  task.element_bytes = 1;
  return std::make_shared<Operation>(std::move(task), std::make_shared<const GroupMessages>(),
                                     number);
}

/// A call that begins.
std::int64_t begin(CallLog& log, std::uint64_t seal, const char* name = "") {
  const std::int64_t number = log.take_number(barrier(name));
  EXPECT_FALSE(log.begin(number, log.seal_behind_others(seal), never_begun(number)).has_value());
  return number;
}

const Error wrong(ErrorCode::usage, "it is wrong");

}  // namespace

TEST(CallLog, numbers_calls_and_says_what_each_does) {
  CallLog log;
  EXPECT_EQ(log.state_of(1).text, "has not called anything");
  EXPECT_EQ(log.take_number(barrier("halo")), 1);
  EXPECT_EQ(log.state_of(1).text, "begins it");
  const auto one = never_begun(1);
  EXPECT_FALSE(log.begin(1, 5, one).has_value());
  EXPECT_EQ(log.state_of(1).operation, one);
  EXPECT_EQ(log.end(1), one);
  EXPECT_EQ(log.state_of(1).text, "has ended it");
  EXPECT_EQ(log.state_of(2).text, "has not called it; its last one is 1, 'halo', barrier");
  const std::int64_t at_board = log.take_number(barrier());
  EXPECT_FALSE(log.begin_at_board(at_board, 6).has_value());
  EXPECT_EQ(log.state_of(at_board).text, "is in it and waits: others at the board");
  log.end_at_board();
  EXPECT_EQ(log.state_of(at_board).text, "has ended it");
  EXPECT_TRUE(log.is_valid());
}

TEST(CallLog, has_so_many_operations_under_way_and_no_more) {
  CallLog log;
  for (std::int64_t k = 0; k < CallLog::under_way_max; ++k) begin(log, 1);
  EXPECT_THROW(static_cast<void>(log.take_number(barrier())), Error);
  log.end(2);
  EXPECT_THROW(static_cast<void>(log.take_number(barrier())), Error) << "number 1 is under way";
  log.end(1);
  EXPECT_EQ(log.take_number(barrier()), CallLog::under_way_max + 1);
  EXPECT_TRUE(log.is_valid());
}

TEST(CallLog, keeps_refusals_of_others_until_the_call_is_made) {
  CallLog log;
  EXPECT_EQ(log.hear_refusal(1, wrong), CallLog::Refusal::kept);
  const std::int64_t first = log.take_number(barrier());
  const auto why = log.begin(first, 1, never_begun(first));
  ASSERT_TRUE(why.has_value());
  EXPECT_STREQ(why->what(), "it is wrong");
  EXPECT_TRUE(log.was_refused(first));
  EXPECT_EQ(log.hear_refusal(first, wrong), CallLog::Refusal::ignored) << "from yet another one";
  const std::int64_t begun = begin(log, 2);
  EXPECT_EQ(log.hear_refusal(begun, wrong), CallLog::Refusal::too_late);
  const std::int64_t own = log.take_number(barrier());
  EXPECT_TRUE(log.refuse(own)) << "the others are told";
  EXPECT_EQ(log.hear_refusal(own + 1, wrong), CallLog::Refusal::kept);
  EXPECT_FALSE(log.refuse(log.take_number(barrier()))) << "they know";
  EXPECT_TRUE(log.is_valid());
}

TEST(CallLog, fails_from_a_call_on_and_later_from_an_earlier_one) {
  CallLog log;
  begin(log, 1);
  begin(log, 1);
  begin(log, 1);
  EXPECT_FALSE(log.failure().has_value());
  auto ends = log.fail(2, wrong);
  ASSERT_TRUE(ends.has_value());
  EXPECT_EQ(ends->size(), 2U);
  EXPECT_FALSE(log.failure_of(1).has_value()) << "it goes on";
  EXPECT_TRUE(log.failure_of(2).has_value());
  EXPECT_FALSE(log.fail(3, wrong).has_value()) << "it has failed from there on";
  EXPECT_TRUE(log.fail(0, Error(ErrorCode::communication, "a node is lost")).has_value());
  EXPECT_STREQ(log.failure_of(1).value().what(), "a node is lost");
  EXPECT_THROW(static_cast<void>(log.take_number(barrier())), Error);
}

TEST(CallLog, finds_the_first_call_that_two_members_have_made_differently) {
  CallLog one;
  CallLog other;
  for (CallLog* log : {&one, &other}) begin(*log, 1);
  constexpr std::size_t room = 4000;
  EXPECT_FALSE(one.first_difference(other.calls_up_to(9, room)).has_value());
  begin(one, 2, "left");
  begin(other, 3, "right");
  for (CallLog* log : {&one, &other}) begin(*log, 4);
  const auto found = one.first_difference(other.calls_up_to(9, room));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->number, 2) << "the next ones differ as well, by the digest";
  EXPECT_EQ(found->own, "'left', barrier");
  EXPECT_EQ(found->other, "'right', barrier");
  EXPECT_NE(one.seal_behind_others(5), other.seal_behind_others(5));
  EXPECT_LE(other.calls_up_to(9, 60).size(), 60U);
}

}  // namespace heddle::collectives
