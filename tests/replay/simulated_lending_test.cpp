#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <vector>

#include "replay/analysis.hpp"
#include "replay/run.hpp"
#include "replay/simulation/simulator.hpp"
#include "tests/replay/random_simulation.hpp"
#include "tests/replay/scripted_job.hpp"
#include "tests/support/seeds.hpp"

/// Tasks of devices' places that simulated CPU workers run.
namespace heddle::replay {
namespace {

using protocol::TileId;
using simulation::ProgramWriter;

constexpr SimulationOptions dynamic{.lends = true, .traces = true};

/// Four workers and a device, whose streams are given little ahead.
SimulatedMachine with_device() {
  SimulatedMachine machine = free_machine();
  machine.cpu_workers = 4;
  machine.devices = 1;
  machine.device_streams = 1;
  machine.stream_depth = 2;
  machine.to_device = machine.to_host = {0, 80e9};  // 100 ns for a tile
  return machine;
}

/// `times` tasks in a row on each of `tiles` tiles of the device; 4000 ns on a worker.
ScriptedJob rows(int tiles, int times, double seconds_device) {
  ProgramWriter writer;
  std::vector<TileId> all;
  all.reserve(static_cast<std::size_t>(tiles));
  for (int i = 0; i < tiles; ++i) all.push_back(writer.tile(0, 1));
  for (int t = 0; t < times; ++t) {
    for (const TileId tile : all) writer.task({writer.read_write(tile)});
  }
  return {writer.program(), writer.matrices(), {{"work", 1, 1, 4e-6, seconds_device, 1}}, 8000};
}

/// A task that workers divide into four, of 1000 ns each.
std::shared_ptr<const FineKind> four_parts() {
  static constexpr Kernel step{.name = "step"};
  FineTasks tasks;
  for (int i = 0; i < 4; ++i) tasks.add(step, {}, {writes(TileArea{0, i, 0, 1, 1})});
  auto fine = std::make_shared<FineKind>(FineKind{FineGraph(tasks), {}});
  fine->seconds.assign(4, 1e-6);
  return fine;
}

std::set<std::uint64_t> orders_of(const SimulationResult& result) {
  std::set<std::uint64_t> orders;
  for (const Task& task : make_run("simulated", result.traces).tasks) orders.insert(task.order);
  return orders;
}

}  // namespace

TEST(SimulatedLending, a_lent_task_waits_for_its_tile_and_runs_on_the_host) {
  SimulatedMachine machine = with_device();
  machine.cpu_workers = 1;
  ScriptedJob job = rows(4, 1, 4e-6);
  // Two go to the device; of the other two one to the worker, behind a copy of 100 ns.
  const SimulationResult result = simulate(machine, job, dynamic);
  EXPECT_EQ(result.tasks_lent, 2);
  EXPECT_EQ(result.write_backs, 2);
  EXPECT_EQ(result.written_bytes, 16000U);
  EXPECT_EQ(result.fetches, 0);
  EXPECT_EQ(result.copies, 0);
  EXPECT_EQ(std::llround(result.seconds * 1e9), 100 + 2 * 4000);
  const RunTrace run = make_run("simulated", result.traces);
  EXPECT_EQ(std::ranges::count(run.tasks, host_place, &Task::place), 2);
  EXPECT_EQ(run.copies.size(), 2U);
}

TEST(SimulatedLending, what_the_host_has_written_comes_back_when_the_device_needs_it) {
  // The first tasks are worth lending, the second ones are not.
  ProgramWriter writer;
  std::vector<TileId> tiles;
  tiles.reserve(12);
  for (int i = 0; i < 12; ++i) tiles.push_back(writer.tile(0, 1));
  for (int t = 0; t < 2; ++t) {
    for (const TileId tile : tiles) writer.task({writer.read_write(tile)});
  }
  simulation::Program program = writer.program();
  for (std::size_t i = 12; i < 24; ++i) program.statements[i].work = 1;
  ScriptedJob job(program, writer.matrices(),
                  {{"even", 1, 1, 1e-6, 1e-6, 1}, {"device", 1, 1, 1e-3, 1e-6, 1}}, 8000);
  const SimulationResult result = simulate(with_device(), job, dynamic);
  EXPECT_GT(result.tasks_lent, 4);
  EXPECT_EQ(result.write_backs, result.tasks_lent);
  EXPECT_EQ(result.fetches, result.tasks_lent);
  EXPECT_EQ(result.fetched_bytes, 8000U * static_cast<std::uint64_t>(result.tasks_lent));
  EXPECT_EQ(result.tasks, 24);
}

TEST(SimulatedLending, lent_tasks_are_divided) {
  ProgramWriter writer;
  for (int i = 0; i < 6; ++i) writer.task({writer.read_write(writer.tile(0, 1))});
  ScriptedJob job(writer.program(), writer.matrices(),
                  {{"work", 1, 1, 1e-6, 4e-6, 1, four_parts()}}, 8000);
  const SimulationResult result = simulate(with_device(), job, dynamic);
  EXPECT_GT(result.tasks_lent, 2);
  EXPECT_EQ(result.tasks, 6 + 3 * result.tasks_lent) << "four for each that was lent";
  EXPECT_DOUBLE_EQ(result.flops, 6);
}

/// The first of four tasks is of a kernel that no device has, and that four workers divide.
TEST(SimulatedLending, workers_divide_what_a_device_cannot_run) {
  ProgramWriter writer;
  const TileId tile = writer.tile(0, 1);
  for (int i = 0; i < 4; ++i) writer.task({writer.read_write(tile)});
  simulation::Program program = writer.program();
  program.statements.front().work = 1;
  ScriptedJob job(program, writer.matrices(),
                  {{"work", 1, 1, 4e-6, 1e-6, 1}, {"host's", 1, 1, 1e-6, 0, 1, four_parts()}},
                  8000);
  const SimulationResult result = simulate(with_device(), job, dynamic);
  EXPECT_EQ(result.tasks, 4 + 3);
  EXPECT_EQ(result.tasks_lent, 1);
  const RunTrace run = make_run("simulated", result.traces);
  EXPECT_EQ(std::ranges::count(run.tasks, PlaceId{1}, &Task::place), 3);
  EXPECT_NEAR(result.seconds, 100e-9 + 1e-6 + 100e-9 + 3e-6, 1e-12) << "there, and back";
}

TEST(SimulatedLending, gains_beside_a_device_a_few_times_as_fast_as_the_workers) {
  // Of all workers together three times.
  ScriptedJob job = rows(100, 6, 4e-6 / 4 / 3);
  const SimulationResult fixed = simulate(with_device(), job, {.traces = true});
  const SimulationResult lent = simulate(with_device(), job, dynamic);
  EXPECT_EQ(fixed.tasks_lent, 0);
  EXPECT_NEAR(static_cast<double>(lent.tasks_lent), 600.0 / 4, 30) << "a quarter of the rates";
  EXPECT_LT(lent.seconds, 0.8 * fixed.seconds) << "at best three quarters";
  EXPECT_EQ(orders_of(lent), orders_of(fixed));
  EXPECT_EQ(lent.tasks, 600);
}

/// Beside a device of three times their rate; beside one of 40 times they are not worth it.
TEST(SimulatedLending, many_workers_that_divide_tasks_do_their_share) {
  const SimulatedMachine machine = with_device();
  for (const double times : {3.0, 40.0}) {
    ProgramWriter writer;
    for (int i = 0; i < 400; ++i) writer.task({writer.read_write(writer.tile(0, 1))});
    ScriptedJob job(writer.program(), writer.matrices(),
                    {{"work", 1, 1, 1e-6, 1e-6 / times, 1, four_parts()}}, 800);
    const SimulationResult fixed = simulate(machine, job, {});
    const SimulationResult lent = simulate(machine, job, dynamic);
    if (times > 16) {
      EXPECT_EQ(lent.tasks_lent, 0);
      EXPECT_EQ(lent.seconds, fixed.seconds);
      continue;
    }
    EXPECT_NEAR(static_cast<double>(lent.tasks_lent), 400 / (1 + times), 10);
    EXPECT_LT(lent.seconds, 1.05 * fixed.seconds * times / (1 + times));
  }
}

TEST(SimulatedLending, loses_nothing_beside_a_device_a_hundred_times_as_fast) {
  for (const int tiles : {3, 20, 300}) {
    ScriptedJob job = rows(tiles, 8, 4e-6 / 4 / 100);
    const SimulationResult fixed = simulate(with_device(), job, {});
    const SimulationResult lent = simulate(with_device(), job, dynamic);
    EXPECT_LT(lent.seconds, 1.02 * fixed.seconds) << tiles;
  }
}

TEST(SimulatedLending, runs_each_task_once_under_every_seed) {
  std::int64_t lent = 0;
  std::int64_t fetches = 0;
  for (const std::uint64_t seed : simulation::seeds(2500)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    RandomSimulation random(seed);
    for (Way* way : {&random.machine.to_host, &random.machine.to_device}) *way = {1e-6, 50e9};
    random.machine.device_streams = random.machine.stream_depth = 1;  // more of them wait
    const SimulationResult fixed = simulate(random.machine, *random.job, random.options);
    random.options.lends = true;
    const SimulationResult result = simulate(random.machine, *random.job, random.options);
    ASSERT_EQ(result.tasks, random.job->task_count());
    ASSERT_EQ(result.flops, fixed.flops);
    ASSERT_EQ(result.messages, fixed.messages);
    const RunTrace run = make_run("simulated", result.traces);
    ASSERT_EQ(std::ssize(run.tasks), result.tasks);
    ASSERT_EQ(std::ssize(run.copies), result.copies + result.fetches + result.write_backs);
    ASSERT_EQ(orders_of(result), orders_of(fixed));
    lent += result.tasks_lent;
    fetches += result.fetches;
    if (random.machine.devices == 0) {
      ASSERT_EQ(result.seconds, fixed.seconds);
    }
    if (run.tasks.empty()) continue;
    const Bounds bounds = analyze(run, 0).bounds;
    ASSERT_LE(bounds.mixed_s, result.seconds + 1e-12);
  }
  const std::int64_t seeds = std::ssize(simulation::seeds(2500));
  if (seeds < 100) return;  // a few need not lend
  EXPECT_GT(lent, seeds / 4);
  EXPECT_GT(fetches, seeds / 8);
}

TEST(SimulatedLending, does_the_same_again) {
  for (const std::uint64_t seed : simulation::seeds(50)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    const RandomSimulation random(seed);
    const RandomSimulation same(seed);
    SimulationOptions options = random.options;
    options.lends = true;
    const SimulationResult first = simulate(random.machine, *random.job, options);
    const SimulationResult second = simulate(same.machine, *same.job, options);
    ASSERT_EQ(first.seconds, second.seconds);
    ASSERT_EQ(first.events, second.events);
    ASSERT_TRUE(first.traces == second.traces);
  }
}

}  // namespace heddle::replay
