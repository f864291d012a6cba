#include "node-runtime/threads/cpu_worker.hpp"

#include <gtest/gtest.h>
#include <thread>

#include "tests/threads/engine_on_devices.hpp"

namespace heddle {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the fixture and its kernels

}  // namespace

TEST(YieldPolicy, yields_between_tasks_of_a_shared_core_and_not_for_each_tiny_one) {
  YieldPolicy shared(true);
  EXPECT_TRUE(shared.is_due(YieldPolicy::interval_ns));
  shared.yielded(1'000'000);
  EXPECT_FALSE(shared.is_due(1'000'000 + YieldPolicy::interval_ns - 1));
  EXPECT_TRUE(shared.is_due(1'000'000 + YieldPolicy::interval_ns));
  const YieldPolicy own(false);
  EXPECT_FALSE(own.is_due(1'000'000'000));
}

TEST(CpuWorker, reports_a_task_with_the_next_turn_and_runs_what_that_makes_ready) {
  EngineOnDevices on(0);
  const auto tiles = on.add_tiles({host_place});
  const auto job = on.start({{&test_set, {write(tiles[0])}}, {&test_add, {read_write(tiles[0])}}});
  EXPECT_TRUE(on.worker().turn());
  EXPECT_EQ(job->tasks_finished.load(std::memory_order_relaxed), 0) << "not reported yet";
  EXPECT_TRUE(on.worker().turn());
  EXPECT_EQ(job->tasks_finished.load(std::memory_order_relaxed), 1);
  EXPECT_FALSE(on.worker().turn()) << "there is no other task";
  EXPECT_EQ(on.finish(*job).status, JobResult::Status::done);
  EXPECT_EQ(on.element(tiles[0]), 2);
}

TEST(CpuWorker, skips_the_kernels_of_a_cancelled_job) {
  EngineOnDevices on(0);
  const auto tiles = on.add_tiles({host_place});
  const auto job = on.start({{&test_set, {write(tiles[0])}}, {&test_add, {read_write(tiles[0])}}});
  EXPECT_TRUE(on.worker().turn());
  on.cancel(*job);
  EXPECT_EQ(on.finish(*job).status, JobResult::Status::cancelled);
  EXPECT_EQ(on.element(tiles[0]), 1);
}

TEST(CpuWorker, sleeps_until_there_is_a_task_and_ends_when_the_engine_stops) {
  EngineOnDevices on(0);
  const auto tiles = on.add_tiles({host_place});
  std::thread working([&on] { on.worker().run(); });
  const auto job = on.start({{&test_set, {write(tiles[0])}}});
  {
    std::unique_lock lock(job->mutex);
    const bool has_ended =
        job->ended.wait_for(lock, std::chrono::seconds(10), [&] { return job->is_done; });
    EXPECT_TRUE(has_ended);
  }
  on.engine().stop();
  working.join();
  EXPECT_EQ(on.element(tiles[0]), 1);
}

}  // namespace heddle
