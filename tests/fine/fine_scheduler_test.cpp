#include "node-runtime/fine/fine_scheduler.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <utility>
#include <vector>

#include "kernels/kernels.hpp"
#include "node-runtime/protocol/records.hpp"
#include "tests/fine/counted_allocations.hpp"
#include "tests/support/seeds.hpp"

namespace heddle::test {
namespace {

FineGraph graph_of(const Kernel& kernel, std::int64_t tile, std::int64_t small) {
  std::vector<OperandShape> shapes{{tile, tile}};
  if (&kernel != &kernel::potrf) shapes.resize(3, {tile, tile});
  return FineGraph(
      fine_form({&kernel, KernelParameters(kernel::PieceParameters{}), shapes}, small));
}

/// Divides a task of this priority, and allocates nothing of its own.
void divide_unchecked(FineScheduler& fine, protocol::Task& task, std::int32_t priority,
                      const FineGraph& graph, std::int32_t worker = 0) {
  task.priority = priority;
  DividedTask& divided = fine.begin();
  FineScheduler::prepare(divided, task, priority, graph, {});
  fine.open(divided, worker);
}

void divide(FineScheduler& fine, protocol::Task& task, std::int32_t priority,
            const FineGraph& graph, std::int32_t worker = 0) {
  divide_unchecked(fine, task, priority, graph, worker);
  EXPECT_TRUE(fine.is_valid());
}

/// Runs what is there; how many fine tasks and completed tasks there were.
std::pair<int, int> run_all(FineScheduler& fine) {
  std::pair<int, int> counts{0, 0};
  while (const FineWork work = fine.take(0)) {
    ++counts.first;
    if (!fine.finish(work).completes_task) continue;
    fine.close(*work.of);
    ++counts.second;
  }
  return counts;
}

TEST(FineScheduler, RunsEachFineTaskOnceAndCompletesTheTask) {
  const FineGraph graph = graph_of(kernel::potrf, 50, 10);
  FineScheduler fine(3, {});
  protocol::Task task;
  divide(fine, task, 5, graph);
  EXPECT_EQ(fine.divided_count(), 1);
  EXPECT_EQ(fine.ready_count(), 1);  // the first diagonal block
  EXPECT_EQ(fine.top(), 5);
  EXPECT_EQ(run_all(fine), std::make_pair(graph.size(), 1));
  EXPECT_EQ(fine.divided_count(), 0);
  EXPECT_EQ(fine.ready_count(), 0);
  EXPECT_EQ(fine.top(), -1);
}

TEST(FineScheduler, KnowsWhichFineTaskMadeAnotherOneReady) {
  const FineGraph graph = graph_of(kernel::potrf, 50, 10);
  FineScheduler fine(2, {});
  protocol::Task task;
  divide(fine, task, 5, graph);
  std::vector<bool> is_over(static_cast<std::size_t>(graph.size()), false);
  int without = 0;
  while (const FineWork work = fine.take(0)) {
    const std::int32_t last = work.of->last_before(work.number);
    if (last < 0) {
      ++without;
      EXPECT_EQ(graph.missing()[static_cast<std::size_t>(work.number)], 0);
    } else {
      const auto after = graph.successors(last);
      EXPECT_NE(std::ranges::find(after, work.number), after.end());
      EXPECT_TRUE(is_over[static_cast<std::size_t>(last)]);
    }
    is_over[static_cast<std::size_t>(work.number)] = true;
    if (fine.finish(work).completes_task) fine.close(*work.of);
  }
  EXPECT_EQ(without, 1) << "the first diagonal block";
}

TEST(FineScheduler, TakesTheMostUrgentTaskFirstThenTheNearestThenTheOldest) {
  const FineGraph graph = graph_of(kernel::gsmm, 20, 10);
  // Workers 0 and 1 share a cache, 2 and 3 another one.
  FineScheduler fine(4, {0, 1, 2, 2, 1, 0, 2, 2, 2, 2, 0, 1, 2, 2, 1, 0});
  protocol::Task far;
  protocol::Task near;
  protocol::Task newer;
  protocol::Task urgent;
  divide(fine, far, 1, graph, 2);
  divide(fine, near, 1, graph, 1);
  divide(fine, newer, 1, graph, 1);
  EXPECT_EQ(fine.take(0).of->task, &near);
  EXPECT_EQ(fine.take(3).of->task, &far);
  divide(fine, urgent, 2, graph, 3);
  EXPECT_EQ(fine.top(), 2);
  EXPECT_EQ(fine.take(0).of->task, &urgent);
}

TEST(FineScheduler, TakesFineTasksWithTheLongestWayFirst) {
  const FineGraph graph = graph_of(kernel::potrf, 50, 10);
  FineScheduler fine(1, {});
  protocol::Task task;
  divide(fine, task, 0, graph);
  while (const FineWork work = fine.take(0)) {
    // Of the ready ones none is more urgent.
    const FineWork next = fine.take(0);
    if (next) {
      EXPECT_LT(work.number, next.number);
      static_cast<void>(fine.finish(next));
    }
    const bool is_last = fine.finish(work).completes_task;
    if (is_last) fine.close(*work.of);
  }
}

TEST(FineScheduler, HasRoomForEveryWorkerAndSomeToOvertake) {
  const FineGraph graph = graph_of(kernel::gsmm, 20, 10);
  FineScheduler fine(2, {});
  std::vector<protocol::Task> tasks(100);
  int divided = 0;
  for (; fine.may_begin(); ++divided) {
    divide(fine, tasks[static_cast<std::size_t>(divided)], divided, graph);
  }
  EXPECT_GT(divided, 2 + 8);
  EXPECT_EQ(run_all(fine).second, divided);
  EXPECT_TRUE(fine.may_begin());
}

TEST(FineScheduler, GivesBackWhatIsRunWhole) {
  FineScheduler fine(1, {});
  DividedTask& divided = fine.begin();
  EXPECT_EQ(fine.divided_count(), 1);
  fine.give_back(divided);
  EXPECT_EQ(fine.divided_count(), 0);
}

TEST(FineScheduler, KeepsItsInvariantWhileWorkersTakeAndFinishInAnyOrder) {
  const std::vector<FineGraph> graphs{graph_of(kernel::potrf, 50, 10),
                                      graph_of(kernel::gsmm, 20, 10),
                                      graph_of(kernel::potrf, 96, 8)};
  for (const FineGraph& graph : graphs) EXPECT_TRUE(graph.is_valid());
  for (const std::uint64_t seed : simulation::seeds(50)) {
    std::mt19937_64 random(seed);
    const auto workers = static_cast<std::int32_t>(1 + random() % 6);
    FineScheduler fine(workers, {});
    std::vector<protocol::Task> tasks(12);
    std::vector<FineWork> running;
    std::size_t begun = 0;
    std::size_t ended = 0;
    for (int turn = 0; ended < tasks.size(); ++turn) {
      ASSERT_LT(turn, 100'000) << simulation::replay_hint(seed);
      const auto worker = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(workers));
      if (begun < tasks.size() && fine.may_begin() && random() % 10 == 0) {
        divide(fine, tasks[begun++], static_cast<std::int32_t>(random() % 3),
               graphs[random() % graphs.size()], worker);
      } else if (running.empty() || (random() % 2 == 0 && std::ssize(running) < workers)) {
        if (const FineWork work = fine.take(worker)) running.push_back(work);
      } else {
        const std::size_t chosen = random() % running.size();
        const FineWork work = running[chosen];
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(chosen));
        if (fine.finish(work).completes_task) {
          fine.close(*work.of);
          ++ended;
        }
      }
      ASSERT_TRUE(fine.is_valid()) << simulation::replay_hint(seed);
    }
    EXPECT_EQ(fine.divided_count(), 0);
  }
}

TEST(FineScheduler, AllocatesNothingOnceItKnowsAShape) {
  if (!allocations_so_far()) GTEST_SKIP() << "nobody counts them";
  const FineGraph graph = graph_of(kernel::potrf, 96, 8);
  FineScheduler fine(4, {});
  std::vector<protocol::Task> tasks(20);
  const auto round = [&] {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      divide_unchecked(fine, tasks[i], static_cast<std::int32_t>(i), graph);
    }
    return run_all(fine);
  };
  static_cast<void>(round());
  const auto before = allocations_so_far();
  const auto counts = round();
  EXPECT_EQ(allocations_so_far(), before);
  EXPECT_EQ(counts.first, 20 * graph.size());
}

TEST(FineScheduler, AllocatesNothingForWhatItHasReserved) {
  if (!allocations_so_far()) GTEST_SKIP() << "nobody counts them";
  const FineGraph graph = graph_of(kernel::potrf, 96, 8);
  FineScheduler fine(4, {});
  std::vector<protocol::Task> tasks(20);
  fine.reserve(graph.size());
  const auto before = allocations_so_far();
  for (protocol::Task& task : tasks) divide_unchecked(fine, task, 1, graph);
  EXPECT_EQ(allocations_so_far(), before);
  EXPECT_EQ(run_all(fine).first, 20 * graph.size());
}

}  // namespace
}  // namespace heddle::test
