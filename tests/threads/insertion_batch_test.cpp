#include "node-runtime/threads/insertion_batch.hpp"

#include <gtest/gtest.h>
#include <new>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "tests/threads/engine_parts.hpp"
#include "tests/threads/failing_allocation.hpp"

namespace heddle {
namespace {

using protocol::AccessMode;

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST(InsertionBatch, hands_tasks_over_in_order_with_their_options) {
  testing::LoneProtocol node;
  const auto job = node.begin("job");
  InsertionBatch batch(*job, NodeId{0});
  batch.begin(16, 100);
  for (std::int32_t t = 0; t < 5; ++t) {
    const protocol::Access accesses[] = {node.access(t, AccessMode::read_write),
                                         node.access(7, AccessMode::read)};
    TaskOptions options;
    options.priority = t;
    options.info_base = 10 * t;
    batch.insert(testing::nothing, options,
                 std::span(accesses).first(1 + static_cast<std::size_t>(t % 2)));
  }
  EXPECT_TRUE(batch.is_valid());
  batch.hand_over(node.protocol, node.actions);
  const auto ready = node.take_ready();
  ASSERT_EQ(ready.size(), 5U);
  for (std::int32_t t = 0; t < 5; ++t) {
    const protocol::Task& task = *ready[static_cast<std::size_t>(t)];
    EXPECT_EQ(task.priority, t);
    EXPECT_EQ(task.work.info_base, 10 * t);
    EXPECT_EQ(task.work.kernel, &testing::nothing);
    EXPECT_EQ(task.operand_count, 1 + t % 2);
    EXPECT_EQ(task.operands[0].tile.index, t);
  }
  batch.begin(16, 100);
  batch.hand_over(node.protocol, node.actions);
  EXPECT_TRUE(node.take_ready().empty()) << "begin() forgets what was handed over";
}

TEST(InsertionBatch, is_full_after_its_quantum) {
  testing::LoneProtocol node;
  const auto job = node.begin("job");
  InsertionBatch batch(*job, NodeId{0});
  batch.begin(2, 100);
  const protocol::Access tile[] = {node.access(0, AccessMode::write)};
  batch.insert(testing::nothing, {}, tile);
  EXPECT_TRUE(batch.has_room());
  batch.release(node.access(0, AccessMode::read));
  EXPECT_TRUE(batch.has_room()) << "a release is no insertion";
  batch.announce(node.access(0, AccessMode::read), NodeId{1}, 0);
  EXPECT_FALSE(batch.has_room());
  batch.insert(testing::nothing, {}, tile);
  EXPECT_TRUE(batch.is_valid()) << "what is not awaited may exceed it";
}

/// Whatever the tasks are: the window is never full before one of them.
TEST(InsertionBatch, leaves_the_window_room_for_each_item) {
  for (std::int32_t room = 1; room <= 6; ++room) {
    testing::LoneProtocol node;
    const auto job = node.begin("job", room);
    InsertionBatch batch(*job, NodeId{0});
    batch.begin(16, room);
    std::int32_t inserted = 0;
    for (std::int32_t t = 0; t < 6 && batch.has_room(); ++t, ++inserted) {
      // Elsewhere: two minor outputs to receive, and a version to send, which takes no room.
      const protocol::Access accesses[] = {node.access(0, AccessMode::write, 1),
                                           node.access(2 * t, AccessMode::read_write),
                                           node.access(2 * t + 1, AccessMode::write)};
      batch.insert(testing::nothing, {}, accesses);
    }
    EXPECT_EQ(inserted, (room + 1) / 2);
    batch.hand_over(node.protocol, node.actions);
    EXPECT_EQ(job->handle->unfinished, 2 * inserted);
    EXPECT_EQ(job->handle->pending_sends, inserted);
    EXPECT_LE(job->handle->unfinished, room + 1) << "one insertion may exceed it, as ever";
  }
}

TEST(InsertionBatch, counts_nothing_for_tasks_that_do_not_concern_the_node) {
  testing::LoneProtocol node;
  const auto job = node.begin("job", 1);
  InsertionBatch batch(*job, NodeId{0});
  batch.begin(100, 1);
  const protocol::Access elsewhere[] = {node.access(0, AccessMode::write, 1)};
  for (int t = 0; t < 99; ++t) {
    batch.insert(testing::nothing, {}, elsewhere);
    ASSERT_TRUE(batch.has_room());
  }
  batch.hand_over(node.protocol, node.actions);
  EXPECT_EQ(job->handle->counters.skipped, 99);
}

TEST(InsertionBatch, refuses_what_is_not_awaited_once_the_window_is_full) {
  testing::LoneProtocol node;
  const auto job = node.begin("job", 3);
  InsertionBatch batch(*job, NodeId{0});
  batch.begin(1, 3);
  const protocol::Access tile[] = {node.access(0, AccessMode::write)};
  const auto insert = [&] { batch.insert(testing::nothing, {}, tile); };
  for (int t = 0; t < 3; ++t) EXPECT_EQ(refusal(insert), "");
  EXPECT_EQ(refusal(insert), "'job' inserts without co_await: the window of 3 is full");
}

TEST(InsertionBatch, gives_tasks_of_the_node_the_priorities_of_the_plan) {
  testing::LoneProtocol node;
  const auto job = node.begin("job");
  job->priorities = {7, 9};
  InsertionBatch batch(*job, NodeId{0});
  batch.begin(16, 100);
  const protocol::Access here[] = {node.access(0, AccessMode::write)};
  const protocol::Access elsewhere[] = {node.access(0, AccessMode::write, 1)};
  batch.insert(testing::nothing, {}, here);
  batch.insert(testing::nothing, {}, elsewhere);
  batch.insert(testing::nothing, {}, here);
  EXPECT_EQ(refusal([&] { batch.insert(testing::nothing, {}, here); }),
            "'job' inserts more than the 2 tasks that it inserted when it was planned; a program "
            "must insert the same tasks each time it is called");
  batch.hand_over(node.protocol, node.actions);
  const auto ready = node.take_ready();
  ASSERT_EQ(ready.size(), 1U) << "the second one waits for the first one's tile";
  EXPECT_EQ(ready.front()->priority, 7);
}

namespace {

constexpr std::int32_t steps = 60;

/// A step of a program that is long enough to allocate several times: by turns a task with a
/// planned priority, a reader on another node, and a release.
void insert_step(InsertionBatch& batch, const testing::LoneProtocol& node, std::int32_t step) {
  const std::int32_t tile = step % testing::LoneProtocol::tiles;
  switch (step % 3) {
    case 0: {
      const protocol::Access accesses[] = {
          node.access(tile, AccessMode::read_write),
          node.access((tile + 1) % testing::LoneProtocol::tiles, AccessMode::read)};
      return batch.insert(testing::nothing, {}, accesses);
    }
    case 1:
      return batch.announce(node.access(tile, AccessMode::read), NodeId{1}, step);
    default:
      return batch.release(node.access(tile, AccessMode::read));
  }
}

/// False: an allocation failed.
bool try_step(InsertionBatch& batch, const testing::LoneProtocol& node, std::int32_t step) {
  try {
    insert_step(batch, node, step);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

/// Inserts steps until the allocation after `successes` others fails. The step that failed;
/// `steps`: none did.
std::int32_t insert_until_failure(InsertionBatch& batch, const testing::LoneProtocol& node,
                                  std::int64_t successes) {
  const testing::FailingAllocation allocation(successes);
  for (std::int32_t step = 0; step < steps; ++step) {
    if (!try_step(batch, node, step)) return step;
  }
  return steps;
}

std::shared_ptr<JobRecord> planned_job(testing::LoneProtocol& node) {
  auto job = node.begin("job");
  for (std::int32_t t = 0; t < steps / 3; ++t) {
    job->priorities.push_back(static_cast<std::int16_t>(100 + t));
  }
  return job;
}

/// Hands the batch over. Priorities of the job's unfinished tasks in the order of insertion, and -1
/// for each version to be sent.
std::vector<std::int32_t> handed_over(testing::LoneProtocol& node, const InsertionBatch& batch,
                                      const JobRecord& job) {
  batch.hand_over(node.protocol, node.actions);
  EXPECT_TRUE(node.protocol.is_valid());
  std::vector<std::int32_t> all;
  for (const protocol::Links* at = job.handle->items.next; at != &job.handle->items;
       at = at->next) {
    const auto& item = static_cast<const protocol::Item&>(*at);
    all.push_back(item.item_kind == protocol::Item::Kind::task
                      ? static_cast<const protocol::Task&>(item).priority
                      : -1);
  }
  return all;
}

/// What a batch hands over whose first `count` steps were inserted without a failure.
std::vector<std::int32_t> expected(std::int32_t count) {
  testing::LoneProtocol node;
  const auto job = planned_job(node);
  InsertionBatch batch(*job, NodeId{0});
  batch.begin(2 * steps, 2 * steps);
  for (std::int32_t step = 0; step < count; ++step) insert_step(batch, node, step);
  return handed_over(node, batch, *job);
}

}  // namespace

TEST(InsertionBatch, hands_over_all_steps_before_a_failed_allocation) {
  if (!testing::FailingAllocation::is_available()) GTEST_SKIP() << "sanitizers allocate themselves";
  std::int64_t failures = 0;
  for (;; ++failures) {
    SCOPED_TRACE(failures);
    testing::LoneProtocol node;
    const auto job = planned_job(node);
    InsertionBatch batch(*job, NodeId{0});
    batch.begin(2 * steps, 2 * steps);
    const std::int32_t failed = insert_until_failure(batch, node, failures);
    EXPECT_TRUE(batch.is_valid());
    EXPECT_EQ(job->tasks_inserted, static_cast<std::size_t>(failed + 2) / 3);
    EXPECT_EQ(handed_over(node, batch, *job), expected(failed));
    if (failed == steps) break;
  }
  EXPECT_GE(failures, 4) << "both lists of the batch have grown";
}

TEST(InsertionBatch, goes_on_after_a_failed_allocation) {
  if (!testing::FailingAllocation::is_available()) GTEST_SKIP() << "sanitizers allocate themselves";
  const std::vector<std::int32_t> all = expected(steps);
  for (std::int64_t failures = 0;; ++failures) {
    SCOPED_TRACE(failures);
    testing::LoneProtocol node;
    const auto job = planned_job(node);
    InsertionBatch batch(*job, NodeId{0});
    batch.begin(2 * steps, 2 * steps);
    const std::int32_t failed = insert_until_failure(batch, node, failures);
    for (std::int32_t step = failed; step < steps; ++step) {
      ASSERT_TRUE(try_step(batch, node, step));
      ASSERT_TRUE(batch.is_valid());
    }
    EXPECT_EQ(handed_over(node, batch, *job), all);
    batch.begin(2 * steps, 2 * steps);
    EXPECT_TRUE(batch.is_valid() && batch.has_room());
    if (failed == steps) break;
  }
}

}  // namespace heddle
