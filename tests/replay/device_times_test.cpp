#include "replay/device_times.hpp"

#include <gtest/gtest.h>

#include "replay/simulation/simulator.hpp"
#include "tests/replay/random_simulation.hpp"
#include "tests/replay/run_builder.hpp"
#include "tests/support/seeds.hpp"

namespace heddle::replay {
namespace {

TEST(DeviceTimes, tasks_side_by_side_share_each_instant) {
  test::RunBuilder builder(1, 2);
  builder.nodes()[0].threads[1].name = "device 0";
  builder.task(0, 0, "gsmm", 0, 10, {test::changes(0, 0)});
  builder.task(0, 1, "gsmm", 0, 12, {test::changes(1, 0)});
  builder.task(0, 1, "gsmm", 4, 8, {test::changes(2, 0)});
  builder.task(0, 1, "gsmm", 12, 15, {test::changes(3, 0)});
  builder.task(0, 1, "gsmm", 20, 30, {test::changes(4, 0)});
  const RunTrace run = builder.run();
  ASSERT_EQ(run.at(run.at(TaskId{1}).thread).role, Role::device);
  const std::vector<double> seconds = own_seconds(run);
  ASSERT_EQ(seconds.size(), 5U);
  EXPECT_NEAR(seconds[0], 10e-6, 1e-12);  // a worker's own
  EXPECT_NEAR(seconds[1], 10e-6, 1e-12);
  EXPECT_NEAR(seconds[2], 2e-6, 1e-12);
  EXPECT_NEAR(seconds[3], 3e-6, 1e-12);
  EXPECT_NEAR(seconds[4], 10e-6, 1e-12);
  EXPECT_EQ(side_by_side(run), 2);
}

TEST(DeviceTimes, copies_tell_latency_and_rate_where_sizes_differ) {
  test::RunBuilder builder(1, 1);
  RunTrace run = builder.run();
  EXPECT_FALSE(copy_ways(run).to_device.has_value());
  const auto copy = [&](PlaceId from, PlaceId to, std::uint64_t bytes, std::int64_t ns) {
    Copy one;
    one.from = from;
    one.to = to;
    one.bytes = bytes;
    one.time = {1000, 1000 + ns};
    run.copies.push_back(one);
  };
  for (const std::uint64_t bytes : {1000U, 8000U, 20000U}) {
    copy(host_place, PlaceId{1}, bytes, 500 + static_cast<std::int64_t>(bytes) / 4);
    copy(PlaceId{1}, host_place, 8000, 2000);
  }
  const CopyWays ways = copy_ways(run);
  ASSERT_TRUE(ways.to_device && ways.to_host);
  EXPECT_FALSE(ways.to_peer.has_value());
  EXPECT_NEAR(ways.to_device->latency_s, 500e-9, 1e-12);
  EXPECT_NEAR(ways.to_device->bytes_per_s, 4e9, 1);
  EXPECT_EQ(ways.to_host->latency_s, 0);
  EXPECT_NEAR(ways.to_host->bytes_per_s, 4e9, 1);
  // Of ten copies to the host one was disturbed: it counts for three.
  for (int i = 0; i < 6; ++i) copy(PlaceId{1}, host_place, 8000, 2000);
  copy(PlaceId{1}, host_place, 8000, 900'000);
  EXPECT_NEAR(copy_ways(run).to_host->bytes_per_s, 4e9 * 10 / 12, 1);
}

TEST(DeviceTimes, are_those_that_a_simulation_was_given_under_every_seed) {
  for (const std::uint64_t seed : simulation::seeds(300)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    RandomSimulation random(seed);
    const SimulationResult result = simulate(random.machine, *random.job, random.options);
    if (result.tasks == 0) continue;
    const RunTrace run = make_run("simulated", result.traces);
    const std::vector<double> seconds = own_seconds(run);
    EXPECT_LE(side_by_side(run), random.machine.device_streams);
    double devices = 0;
    for (const SimulatedNodeTotals& node : result.nodes) devices += node.busy_devices_s;
    for (std::size_t i = 0; i < run.tasks.size(); ++i) {
      const Task& task = run.tasks[i];
      if (run.at(task.thread).role != Role::device) continue;
      devices -= seconds[i];
      const std::string& kernel = run.kernel_of(task);
      const double given = kernel == "a" ? 2e-6 : kernel == "b" ? 3e-6 : 50e-6;
      // Ends are whole nanoseconds, each of them shared again.
      ASSERT_NEAR(seconds[i], given, 1e-7) << kernel;
    }
    ASSERT_NEAR(devices, 0, 1e-9);
  }
}

}  // namespace
}  // namespace heddle::replay
