#include "replay/graph.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/replay/run_builder.hpp"

namespace heddle::replay {
namespace {

using test::changes;
using test::reads;
using test::RunBuilder;

std::vector<std::string> kernels(const RunTrace& run, const std::vector<TaskId>& tasks) {
  std::vector<std::string> names;
  for (const TaskId task : tasks) names.push_back(run.kernel_of(run.at(task)));
  return names;
}

}  // namespace

/// Cholesky of 2 x 2 tiles: tile 0 is (0, 0), 1 is (1, 0), 2 is (1, 1).
TEST(Graph, has_the_dependencies_of_a_small_factorization) {
  RunBuilder build(2, 1);
  build.task(0, 0, "potrf", 0, 10, {changes(0, 0)});
  build.task(1, 0, "trsm", 20, 40, {changes(1, 0), reads(0, 1)});
  build.task(0, 0, "syrk", 50, 55, {changes(2, 0), reads(1, 1)});
  build.task(0, 0, "potrf", 60, 90, {changes(2, 1)});
  const RunTrace run = build.run();
  const Graph graph(run, 0);
  ASSERT_EQ(graph.tasks().size(), 4U);
  EXPECT_EQ(graph.edges(), 3);
  EXPECT_TRUE(graph.before(0).empty());
  for (std::size_t i = 1; i < 4; ++i) {
    ASSERT_EQ(graph.before(i).size(), 1U);
    EXPECT_EQ(graph.before(i)[0], graph.tasks()[i - 1]);
  }
  EXPECT_EQ(kernels(run, graph.longest_path()),
            (std::vector<std::string>{"potrf", "trsm", "syrk", "potrf"}));
}

TEST(Graph, takes_the_longest_of_several_chains_not_the_one_with_most_tasks) {
  RunBuilder build(1, 2);
  build.task(0, 0, "a", 0, 1, {changes(0, 0)});
  build.task(0, 0, "b", 1, 2, {changes(0, 1)});
  build.task(0, 0, "c", 2, 3, {changes(0, 2)});
  build.task(0, 1, "long", 0, 100, {changes(1, 0)});
  build.task(0, 1, "last", 100, 101, {changes(2, 0), reads(0, 3), reads(1, 1)});
  const RunTrace run = build.run();
  const Graph graph(run, 0);
  EXPECT_EQ(graph.edges(), 4);
  EXPECT_EQ(kernels(run, graph.longest_path()), (std::vector<std::string>{"long", "last"}));
}

TEST(Graph, counts_a_task_once_whose_output_is_read_twice) {
  RunBuilder build(1, 1);
  build.task(0, 0, "a", 0, 1, {changes(0, 0), changes(1, 0)});
  build.task(0, 0, "b", 1, 2, {reads(0, 1), reads(1, 1)});
  const RunTrace run = build.run();
  EXPECT_EQ(Graph(run, 0).edges(), 1);
}

/// A factorization in three fine tasks on two workers, of which the third waited for the first,
/// after another task and before a third one.
TEST(Graph, has_fine_tasks_wait_for_the_last_before_them) {
  const auto graph_of = [](std::uint32_t after, RunTrace& run) {
    RunBuilder build(1, 2);
    build.task(0, 0, "a", 0, 10, {changes(0, 0)});
    build.divided(0, "b", 12, 60, {changes(0, 1)},
                  {{0, 12, 30, 0}, {1, 12, 25, 0}, {1, 30, 60, after}});
    build.task(0, 0, "c", 70, 80, {changes(0, 2)});
    run = build.run();
    return Graph(run, 0);
  };
  RunTrace run;
  const Graph known = graph_of(1, run);
  EXPECT_EQ(kernels(run, known.longest_path()),
            (std::vector<std::string>{"a", "fine b", "fine b", "b", "c"}));
  EXPECT_EQ(known.heads().back(), 10'000 + 18'000 + 30'000);
  EXPECT_EQ(known.edges(), 3 + 3 + 1 + 1) << "of fine tasks, of the divided one (its input, too)";
  // Where the one before was not recorded, or nobody tells which it was, they wait for what the
  // divided one waits for.
  for (const std::uint32_t after : {7U, trace::unknown_number}) {
    const Graph graph = graph_of(after, run);
    EXPECT_EQ(kernels(run, graph.longest_path()),
              (std::vector<std::string>{"a", "fine b", "b", "c"}));
    EXPECT_EQ(graph.heads().back(), 10'000 + 30'000);
  }
}

TEST(Graph, of_one_job_does_not_see_the_others) {
  RunBuilder build(1, 1);
  build.task(0, 0, "a", 0, 1, {changes(0, 0)}, 0);
  build.task(0, 0, "b", 1, 2, {changes(0, 0)}, 1);  // versions count from 0 in each job
  build.task(0, 0, "c", 2, 3, {reads(0, 1)}, 1);
  const RunTrace run = build.run();
  EXPECT_EQ(Graph(run, 0).edges(), 0);
  EXPECT_EQ(Graph(run, 1).edges(), 1);
  EXPECT_TRUE(Graph(run, 2).longest_path().empty());
  const std::vector<JobTime> jobs = jobs_of(run);
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[1].tasks, 2);
  EXPECT_EQ(jobs[1].span.ns(), 2000);
}

TEST(Graph, leaves_out_what_was_not_recorded) {
  RunBuilder build(1, 1);
  build.task(0, 0, "b", 1, 2, {reads(0, 7), changes(1, 3)});
  const RunTrace run = build.run();
  EXPECT_EQ(Graph(run, 0).edges(), 0);
}

}  // namespace heddle::replay
