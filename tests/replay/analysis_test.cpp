#include "replay/analysis.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "tests/replay/run_builder.hpp"

namespace heddle::replay {
namespace {

using test::changes;
using test::reads;
using test::RunBuilder;

}  // namespace

TEST(Analysis, knows_the_bounds_of_a_run_by_hand) {
  RunBuilder build(1, 2);
  build.task(0, 0, "a", 0, 40, {changes(0, 0)});
  build.task(0, 1, "b", 0, 10, {changes(1, 0)});
  build.task(0, 0, "a", 40, 60, {changes(0, 1)});
  build.task(0, 1, "b", 70, 100, {changes(1, 1), reads(0, 2)});
  const RunTrace run = build.run();
  const Analysis analysis = analyze(run, 0);
  EXPECT_EQ(analysis.tasks, 4);
  EXPECT_EQ(analysis.dependencies, 3);
  EXPECT_NEAR(analysis.seconds(), 100e-6, 1e-12);
  EXPECT_NEAR(analysis.bounds.area_s, 50e-6, 1e-12);
  EXPECT_NEAR(analysis.bounds.critical_path_s, 90e-6, 1e-12);
  EXPECT_NEAR(analysis.busy_share(), 0.5, 1e-12);
  ASSERT_EQ(analysis.critical_path.size(), 2U);
  EXPECT_EQ(analysis.critical_path[0].what, "a");
  EXPECT_EQ(analysis.critical_path[0].count, 2);
  EXPECT_NEAR(analysis.critical_path[0].seconds, 60e-6, 1e-12);
}

TEST(Analysis, says_which_gaps_the_chain_to_the_end_has) {
  RunBuilder build(2, 1);
  build.task(0, 0, "make", 5, 40, {changes(0, 0)});
  build.task(1, 0, "use", 50, 60, {changes(1, 0), reads(0, 1)});
  build.task(1, 0, "other", 63, 70, {changes(2, 0)});
  const Analysis analysis = analyze(build.run(), 0);
  const auto seconds = [&](const std::string& what) {
    for (const PathPart& part : analysis.chain) {
      if (part.what == what) return part.seconds;
    }
    return -1.0;
  };
  EXPECT_NEAR(seconds("between tasks of two nodes"), 10e-6, 1e-12);
  EXPECT_NEAR(seconds("between tasks of a thread"), 3e-6, 1e-12);
  EXPECT_NEAR(seconds("make"), 35e-6, 1e-12);
}

TEST(Analysis, tells_of_kernels_how_they_spread) {
  RunBuilder build(1, 1);
  for (int i = 0; i < 100; ++i) {
    build.task(0, 0, "even", 100 * i, 100 * i + 10 + i % 3, {changes(i, 0)});
  }
  build.task(0, 0, "even", 100'000, 100'500, {changes(500, 0)});
  const Analysis analysis = analyze(build.run(), 0);
  ASSERT_EQ(analysis.kernels.size(), 1U);
  const KernelFigures& even = analysis.kernels[0];
  EXPECT_EQ(even.count, 101);
  EXPECT_EQ(even.median_us, 11);
  EXPECT_EQ(even.low_us, 10);
  EXPECT_EQ(even.high_us, 12);
  EXPECT_EQ(even.most_us, 500);
  EXPECT_EQ(even.outliers, 1);
}

TEST(Analysis, of_divided_tasks_is_of_their_fine_tasks) {
  RunBuilder build(1, 2);
  build.task(0, 0, "make", 0, 10, {changes(0, 0)});
  build.divided(0, "gsmm", 12, 60, {changes(1, 0), reads(0, 1)},
                {{0, 12, 30}, {1, 14, 34}, {1, 40, 59}});
  build.task(0, 0, "use", 62, 70, {changes(2, 0), reads(1, 1)});
  const RunTrace run = build.run();
  const Analysis analysis = analyze(run, 0);
  EXPECT_EQ(analysis.tasks, 5) << "the divided one is no task of its own";
  EXPECT_EQ(analysis.dependencies, 3 + 4 + 1) << "of fine tasks, of the divided one, of the last";
  EXPECT_NEAR(analysis.bounds.critical_path_s, (10 + 20 + 8) * 1e-6, 1e-12);
  EXPECT_NEAR(analysis.bounds.area_s, (10 + 18 + 20 + 19 + 8) / 2.0 * 1e-6, 1e-12);
  ASSERT_EQ(analysis.threads.size(), 2U);
  EXPECT_EQ(analysis.threads[1].busy_ns, 39'000);
  const auto idle = [&](std::size_t thread, IdleCause cause) {
    return analysis.threads[thread].idle_ns.at(static_cast<std::size_t>(cause)) / 1000;
  };
  EXPECT_EQ(idle(1, IdleCause::task_here), 10 + 6) << "for the maker, then for other fine tasks";
  EXPECT_EQ(idle(1, IdleCause::runtime), 4);
  EXPECT_EQ(idle(0, IdleCause::task_here), 30) << "until the divided task was over";
  std::vector<std::string> kernels;
  for (const KernelFigures& kernel : analysis.kernels) kernels.push_back(kernel.kernel);
  EXPECT_EQ(kernels, (std::vector<std::string>{"fine gsmm", "make", "use"}));
  EXPECT_TRUE(analysis.services.empty() || analysis.services[0].thread != run.tasks.back().thread);
}

TEST(Analysis, of_fine_tasks_tells_for_which_one_before_them_they_waited) {
  RunBuilder build(1, 2);
  build.task(0, 0, "make", 0, 10, {changes(0, 0)});
  build.divided(0, "gsmm", 10, 60, {changes(1, 0), reads(0, 1)},
                {{0, 10, 30, 0}, {1, 10, 20, 0}, {1, 34, 59, 1}});
  const RunTrace run = build.run();
  const Analysis analysis = analyze(run, 0);
  EXPECT_NEAR(analysis.bounds.critical_path_s, (10 + 20 + 25) * 1e-6, 1e-12);
  const ThreadTime& second = analysis.threads.at(1);
  const auto idle = [&](IdleCause cause) {
    return second.idle_ns.at(static_cast<std::size_t>(cause)) / 1000;
  };
  EXPECT_EQ(idle(IdleCause::task_here), 10 + 10) << "for the maker, then for the first fine task";
  EXPECT_EQ(idle(IdleCause::runtime), 4) << "since that was over";
}

TEST(Analysis, is_of_the_job_that_the_run_was_about) {
  RunBuilder build(1, 1);
  build.task(0, 0, "short", 0, 10, {changes(0, 0)}, 3);
  build.task(0, 0, "long", 10, 100, {changes(0, 0)}, 4);
  EXPECT_EQ(main_job(build.run()), 4);
  build.nodes()[0].info.metadata = R"({"run":"a","about":{"job":3}})";
  EXPECT_EQ(main_job(build.run()), 3);
  build.nodes()[0].info.metadata = R"({"run":"a","about":{"job":7}})";
  EXPECT_EQ(main_job(build.run()), 4) << "there are no tasks of job 7";
  EXPECT_FALSE(main_job(RunBuilder(1, 1).run()).has_value());
}

/// What is left of a run that failed: no report, and of its nodes one whose tasks read what nobody
/// has made, and one that ran nothing of the job.
TEST(Analysis, of_a_failed_run_is_of_what_there_is) {
  RunBuilder build(4, 1);
  build.task(0, 0, "lost", 0, 50, {changes(0, 0)});
  build.task(1, 0, "use", 100, 120, {changes(1, 0), reads(0, 1)});
  build.task(1, 0, "more", 125, 130, {changes(1, 1), reads(5, 3)});
  build.task(2, 0, "other", 0, 10, {changes(2, 0)}, 7);
  build.message(0, 1, 0, 1, 60, 95);
  build.nodes().erase(build.nodes().begin());
  const RunTrace run = build.run();
  ASSERT_EQ(run.damages.size(), 1U);
  ASSERT_EQ(main_job(run), 0);
  const Analysis analysis = analyze(run, 0);
  EXPECT_EQ(analysis.tasks, 2);
  EXPECT_EQ(analysis.dependencies, 1) << "the two tasks that are left, by tile 1";
  EXPECT_EQ(analysis.threads.size(), 3U);
  for (const ThreadTime& thread : analysis.threads) {
    EXPECT_EQ(thread.busy_ns + thread.idle(), analysis.span.ns());
  }
  EXPECT_EQ(analysis.threads[1].tasks, 0);
  EXPECT_NEAR(analysis.bounds.critical_path_s, 25e-6, 1e-12);
  EXPECT_LE(analysis.bounds.mixed_s, analysis.seconds());
  EXPECT_EQ(analysis.path.size(), 2U);
}

/// Records of a thread that end in the middle, as after a crash: a task's reader is there, and its
/// generation is not.
TEST(Analysis, of_threads_whose_records_end_early_accounts_for_their_time) {
  RunBuilder build(1, 2);
  build.task(0, 0, "a", 0, 50, {changes(0, 0)});
  build.task(0, 0, "a", 50, 80, {changes(0, 1)});
  build.task(0, 1, "b", 90, 100, {changes(1, 0), reads(0, 2)});
  build.generated(0, 0, 0);
  build.nodes()[0].threads[0].records.resize(2);  // the first task, with its accesses
  const RunTrace run = build.run();
  const Analysis analysis = analyze(run, 0);
  EXPECT_EQ(analysis.tasks, 2);
  EXPECT_EQ(analysis.dependencies, 0);
  for (const ThreadTime& thread : analysis.threads) {
    EXPECT_EQ(thread.busy_ns + thread.idle(), 100'000);
  }
  ASSERT_EQ(analysis.services.size(), 2U);
  for (const ServiceTime& service : analysis.services) EXPECT_EQ(service.unknown_ns, 100'000);
}

TEST(Analysis, of_a_job_without_tasks_names_those_that_have) {
  RunBuilder build(1, 1);
  build.task(0, 0, "a", 0, 10, {changes(0, 0)}, 3);
  const RunTrace run = build.run();
  try {
    static_cast<void>(analyze(run, 9));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("jobs 3"), std::string::npos) << error.what();
  }
}

}  // namespace heddle::replay
