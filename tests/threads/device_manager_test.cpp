#include "node-runtime/threads/device_manager.hpp"

#include <atomic>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>

#include "tests/threads/engine_on_devices.hpp"

namespace heddle {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the fixture and its kernels

using Status = JobResult::Status;

std::atomic<int> launches{0};

std::int64_t count_launch(const KernelArguments& arguments) {
  launches.fetch_add(1, std::memory_order_relaxed);
  return set_one(arguments);
}
std::int64_t fail_at_three(const KernelArguments& arguments) {
  arguments.tiles[0](2, 2) = -4;
  return 3;
}
std::int64_t throw_text(const KernelArguments& /*arguments*/) {
  throw std::runtime_error("the kernel's own words");
}
TileElement on_diagonal(const KernelParameters& /*parameters*/, std::int64_t info) {
  return {info - 1, info - 1};
}
constexpr Kernel counted{.name = "counted", .host = count_launch, .emulated = count_launch};
constexpr Kernel failing{.name = "failing",
                         .host = fail_at_three,
                         .emulated = fail_at_three,
                         .failing_element = on_diagonal};
constexpr Kernel throwing{.name = "throwing", .host = throw_text, .emulated = throw_text};

}  // namespace

TEST(DeviceManager, runs_tasks_of_its_device_one_after_the_other_where_they_depend) {
  EngineOnDevices on(1);
  const auto tiles = on.add_tiles({first_device, first_device});
  const auto job = on.start({{&test_set, {write(tiles[0])}},
                             {&test_next, {write(tiles[1]), read(tiles[0])}},
                             {&test_add, {read_write(tiles[1])}}});
  EXPECT_TRUE(on.manager(0).turn()) << "one task is ready";
  EXPECT_EQ(on.manager(0).in_flight(), 1U);
  EXPECT_EQ(on.finish(*job).status, Status::done);
  EXPECT_EQ(on.element(tiles[0]), 1);
  EXPECT_EQ(on.element(tiles[1]), 3);
  EXPECT_EQ(on.manager(0).in_flight(), 0U);
  EXPECT_FALSE(on.manager(0).turn());
}

TEST(DeviceManager, keeps_kernels_in_flight_on_all_streams_and_no_more) {
  constexpr std::size_t count = 20;
  EmulatedOptions emulated;
  emulated.kernel_seconds = [](const Kernel&, const KernelArguments&) { return 2e-3; };
  EngineOnDevices on(1, emulated);
  const auto tiles = on.add_tiles(std::vector(count, first_device));
  std::vector<TestTask> tasks;
  for (const TileRef& tile : tiles) tasks.push_back({&test_set, {write(tile)}});
  const auto job = on.start(tasks);
  EXPECT_TRUE(on.manager(0).turn());
  // Tasks of equal priority do not overtake: the urgent stream stays empty.
  const auto ordinary = static_cast<std::size_t>(on.engine().options().device_streams);
  EXPECT_EQ(on.manager(0).in_flight(), ordinary * StreamQueue::in_flight_max);
  EXPECT_EQ(on.finish(*job).status, Status::done);
}

TEST(DeviceManager, does_not_launch_the_task_of_a_cancelled_job) {
  EngineOnDevices on(1);
  const auto tiles = on.add_tiles({first_device});
  const auto job = on.start({{&counted, {write(tiles[0])}}});
  on.cancel(*job);
  launches.store(0, std::memory_order_relaxed);
  EXPECT_EQ(on.finish(*job).status, Status::cancelled);
  EXPECT_EQ(launches.load(std::memory_order_relaxed), 0);
  // The same task of a job that goes on is launched.
  const auto other = on.start({{&counted, {write(tiles[0])}}});
  EXPECT_EQ(on.finish(*other).status, Status::done);
  EXPECT_EQ(launches.load(std::memory_order_relaxed), 1);
}

TEST(DeviceManager, names_the_task_whose_event_fails) {
  EmulatedOptions emulated;
  emulated.faults.fail_kernel = 2;
  EngineOnDevices on(1, emulated);
  const auto tiles = on.add_tiles({first_device, first_device});
  static_cast<void>(
      on.start({{&test_set, {write(tiles[0])}}, {&test_add, {read_write(tiles[0])}}}));
  std::string text;
  try {
    static_cast<void>(on.turn_until([] { return false; }));
    ADD_FAILURE() << "nothing failed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
    text = error.what();
    on.engine().fail(error);
  }
  EXPECT_NE(text.find("its task: test_add on tile 0 of matrix 0"), std::string::npos) << text;
}

TEST(DeviceManager, reports_where_a_kernel_failed_numerically) {
  EngineOnDevices on(1);
  const auto tiles = on.add_tiles({first_device});
  const auto job = on.start({{&test_set, {write(tiles[0])}}, {&failing, {read_write(tiles[0])}}});
  const JobResult result = on.finish(*job);
  EXPECT_EQ(result.status, Status::numerical_failure);
  EXPECT_EQ(result.info, 3);
  EXPECT_EQ(result.pivot, -4);
}

TEST(DeviceManager, a_kernel_that_throws_fails_its_job_and_the_next_one_runs) {
  EngineOnDevices on(1);
  const auto tiles = on.add_tiles({first_device});
  const auto job = on.start({{&throwing, {write(tiles[0])}}});
  const JobResult result = on.finish(*job);
  EXPECT_EQ(result.status, Status::failed);
  EXPECT_NE(result.error.find("the kernel's own words"), std::string::npos) << result.error;
  EXPECT_FALSE(on.engine().failed());
  const auto next = on.start({{&test_set, {write(tiles[0])}}});
  EXPECT_EQ(on.finish(*next).status, Status::done);
  EXPECT_EQ(on.element(tiles[0]), 1);
}

TEST(DeviceManager, hands_tasks_to_the_workers_that_only_the_host_has_the_kernel_for) {
  EngineOnDevices on(1);
  const auto tiles = on.add_tiles({first_device});
  const auto job =
      on.start({{&test_set, {write(tiles[0])}}, {&test_staged, {read_write(tiles[0])}}});
  EXPECT_EQ(on.finish(*job).status, Status::done);
  EXPECT_EQ(on.element(tiles[0]), 2);
}

TEST(DeviceManager, requests_the_tiles_that_its_memory_lacks_and_waits_for_them) {
  constexpr std::size_t count = 60;
  EmulatedOptions emulated;
  emulated.memory_bytes = TileStore::least_device_bytes(EngineOnDevices::tile_bytes, 1);
  ASSERT_LT(emulated.memory_bytes, count * EngineOnDevices::tile_bytes);
  EngineOnDevices on(1, emulated);
  const auto tiles = on.add_tiles(std::vector(count, first_device));
  std::vector<TestTask> tasks;
  for (const TileRef& tile : tiles) tasks.push_back({&test_set, {write(tile)}});
  for (const TileRef& tile : tiles) tasks.push_back({&test_add, {read_write(tile)}});
  const auto job = on.start(tasks);
  std::size_t waited = 0;
  EXPECT_TRUE(on.turn_until([&] {
    waited = std::max(waited, on.manager(0).waiting());
    const std::scoped_lock lock(job->mutex);
    return job->is_done;
  }));
  EXPECT_GT(waited, 0U);
  EXPECT_EQ(on.manager(0).waiting(), 0U);
  EXPECT_GT(on.store().evictions(), 0U);
  EXPECT_TRUE(on.store().is_valid());
}

TEST(DeviceManager, ends_its_loop_when_the_engine_stops) {
  EngineOnDevices on(1);
  on.engine().stop();
  on.manager(0).run();
  on.copies().run();
  on.worker().run();
}

}  // namespace heddle
