#include "node-runtime/threads/job_table.hpp"

#include <gtest/gtest.h>

#include "tests/threads/engine_parts.hpp"

namespace heddle {

TEST(JobTable, lets_programs_walk_in_turn_and_jobs_on_one_matrix_in_order) {
  testing::LoneProtocol node;
  JobTable table;
  EXPECT_EQ(table.next_turn().job, nullptr);
  const auto first = node.begin("first");
  const auto behind = node.begin("behind");
  const auto other = node.begin("other");
  other->spec.matrices.clear();
  for (const auto& job : {first, behind, other}) table.add(job);
  ASSERT_TRUE(table.is_valid());
  EXPECT_TRUE(table.is_behind(*behind));
  EXPECT_FALSE(table.is_behind(*other));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(table.next_turn().job, first.get());
    EXPECT_EQ(table.next_turn().job, other.get());
  }
  first->handle->generation_ended = true;
  EXPECT_EQ(table.next_turn().job, behind.get());
  EXPECT_EQ(table.find(other->id), other.get());
  EXPECT_EQ(table.take(*other), other);
  EXPECT_EQ(table.find(other->id), nullptr);
  EXPECT_EQ(table.next_turn().job, behind.get());
  EXPECT_TRUE(table.is_valid());
}

TEST(JobTable, does_not_give_a_turn_to_a_users_stream_before_its_end) {
  testing::LoneProtocol node;
  JobTable table;
  const auto stream = node.begin("stream");
  stream->external = true;
  table.add(stream);
  EXPECT_EQ(table.next_turn().job, nullptr);
  stream->stream_ended = true;
  EXPECT_EQ(table.next_turn().job, stream.get());
}

TEST(JobTable, gives_no_turn_to_a_program_whose_window_is_full_until_it_reopens) {
  testing::LoneProtocol node;
  JobTable table;
  const auto job = node.begin("job", 8);
  table.add(job);
  EXPECT_EQ(table.next_turn().room, 8);
  for (std::int32_t tile = 0; tile < 8; ++tile) node.append(*job, testing::nothing, tile);
  table.wait_for_window(*job);
  table.wait_for_window(*job);
  const JobTable::Turn turn = table.next_turn();
  EXPECT_EQ(turn.job, nullptr);
  EXPECT_TRUE(turn.waits_for_window);
  EXPECT_FALSE(table.reopen_windows());
  EXPECT_TRUE(table.is_valid());
  node.protocol.task_finished(*node.take_ready().front(), node.actions);
  EXPECT_TRUE(table.reopen_windows());
  EXPECT_FALSE(table.reopen_windows());
  EXPECT_EQ(table.next_turn().room, 1);
  EXPECT_TRUE(table.is_valid());
}

TEST(JobTable, forgets_a_waiter_that_is_taken_out) {
  testing::LoneProtocol node;
  JobTable table;
  const auto job = node.begin("job", 1);
  table.add(job);
  node.append(*job, testing::nothing, 0);
  table.wait_for_window(*job);
  static_cast<void>(table.take(*job));
  EXPECT_FALSE(table.next_turn().waits_for_window);
  EXPECT_TRUE(table.is_valid());
}

TEST(JobTable, names_the_jobs_that_have_failed) {
  testing::LoneProtocol node;
  JobTable table;
  const auto job = node.begin("job");
  table.add(job);
  EXPECT_EQ(table.failures(), "");
  job->result = failed_result(Error(ErrorCode::usage, "no such tile"), NodeId{2}, 4);
  EXPECT_EQ(table.failures(), "; job 'job' has failed: node 2: no such tile");
}

TEST(JobResult, weighs_a_failure_above_a_pivot_above_a_cancellation) {
  JobResult done;
  JobResult cancelled;
  cancelled.status = JobResult::Status::cancelled;
  JobResult third;
  third.status = JobResult::Status::numerical_failure;
  third.info = 3;
  JobResult second = third;
  second.info = 2;
  const JobResult failed = failed_result(Error(ErrorCode::internal, "x"), NodeId{0}, 1);
  const JobResult* const ascending[] = {&done, &cancelled, &third, &second, &failed};
  for (std::size_t a = 0; a < std::size(ascending); ++a) {
    for (std::size_t b = 0; b < std::size(ascending); ++b) {
      EXPECT_EQ(is_worse(*ascending[a], *ascending[b]), a > b) << a << ", " << b;
    }
  }
  EXPECT_EQ(failed.error, "x") << "of one node, which need not be named";
  const JobResult back = result_of(verdict_of(protocol::JobId{4}, second));
  EXPECT_EQ(back.status, second.status);
  EXPECT_EQ(back.info, 2);
}

}  // namespace heddle
