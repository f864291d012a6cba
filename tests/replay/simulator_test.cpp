#include "replay/simulation/simulator.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "replay/analysis.hpp"
#include "replay/run.hpp"
#include "tests/replay/random_simulation.hpp"
#include "tests/replay/scripted_job.hpp"
#include "tests/support/seeds.hpp"

namespace heddle::replay {
namespace {

using protocol::TileId;
using simulation::ProgramWriter;

/// One kind of task: 1000 ns on the host, 400 on a device. Tiles of 8000 bytes.
ScriptedJob job_of(const ProgramWriter& writer) {
  return {writer.program(), writer.matrices(), {{"work", 1, 1, 1e-6, 4e-7, 1}}, 8000};
}

/// So many tasks, each on a tile of its own.
ScriptedJob job_of_tasks_apart(int count) {
  ProgramWriter writer;
  for (int i = 0; i < count; ++i) {
    const TileId tile = writer.tile(0, 0);
    writer.task({writer.read_write(tile)});
  }
  return job_of(writer);
}

std::int64_t ns(const SimulationResult& result) {
  return std::llround(result.seconds * 1e9);
}

TEST(Simulator, tasks_that_wait_for_each_other_follow_each_other) {
  ProgramWriter writer;
  const TileId a = writer.tile(0, 0);
  for (int i = 0; i < 3; ++i) writer.task({writer.read_write(a)});
  SimulatedMachine machine = free_machine();
  machine.cpu_workers = 2;
  ScriptedJob job = job_of(writer);
  const SimulationResult result = simulate(machine, job, {});
  EXPECT_EQ(ns(result), 3000);
  EXPECT_EQ(result.tasks, 3);
  EXPECT_DOUBLE_EQ(result.flops, 3);
  // A worker's time between tasks, and the first one's way out of its sleep.
  machine.task_s = 50e-9;
  machine.wake_s = 7e-9;
  EXPECT_EQ(ns(simulate(machine, job, {})), 3000 + 2 * 50 + 7);
}

TEST(Simulator, workers_share_what_is_independent) {
  SimulatedMachine machine = free_machine();
  machine.cpu_workers = 3;
  ScriptedJob job = job_of_tasks_apart(7);
  const SimulationResult result = simulate(machine, job, {});
  EXPECT_EQ(ns(result), 3000);
  EXPECT_NEAR(result.nodes.at(0).busy_workers_s, 7e-6, 1e-15);
}

TEST(Simulator, workers_divide_tasks_and_run_the_fine_ones_together) {
  // Four fine tasks: two, then one that waits for both, and one beside. Named by their kernels'
  // areas.
  static constexpr Kernel step{.name = "step"};
  const auto rows = [](std::int64_t from, std::int64_t count) {
    return TileArea{0, from, 0, count, 1};
  };
  FineTasks tasks;
  tasks.add(step, {}, {writes(rows(0, 1))});
  tasks.add(step, {}, {writes(rows(1, 1))});
  tasks.add(step, {}, {writes(rows(0, 2))});
  tasks.add(step, {}, {writes(rows(2, 1))});
  const auto fine = std::make_shared<FineKind>(FineKind{FineGraph(tasks), {}});
  fine->seconds.assign(4, 100e-9);
  ProgramWriter writer;
  const TileId a = writer.tile(0, 0);
  for (int i = 0; i < 3; ++i) writer.task({writer.read_write(a)});
  ScriptedJob job(writer.program(), writer.matrices(), {{"work", 1, 1, 200e-9, 0, 1, fine}}, 8000);
  SimulatedMachine machine = free_machine();
  machine.cpu_workers = 2;
  SimulationOptions options;
  options.traces = true;
  const SimulationResult result = simulate(machine, job, options);
  EXPECT_EQ(ns(result), 3 * 200) << "two at a time";
  EXPECT_EQ(result.tasks, 12);
  EXPECT_DOUBLE_EQ(result.flops, 3);
  machine.cpu_workers = 1;
  EXPECT_EQ(ns(simulate(machine, job, {})), 3 * 400);
  machine.cpu_workers = 5;
  EXPECT_EQ(ns(simulate(machine, job, {})), 3 * 200) << "the longest way";
  const RunTrace run = make_run("simulated", result.traces);
  const Analysis analysis = analyze(run, 0);
  EXPECT_EQ(analysis.tasks, 12);
  EXPECT_NEAR(analysis.bounds.area_s, 600e-9, 1e-12);
}

TEST(Simulator, a_worker_s_first_tasks_take_longer) {
  SimulatedMachine machine = free_machine();
  machine.cpu_workers = 2;
  machine.first_tasks = {3, 1.5};
  ScriptedJob job = job_of_tasks_apart(8);
  EXPECT_EQ(ns(simulate(machine, job, {})), 3000 + 1500 + 2 * 1000);
}

TEST(Simulator, waking_takes_by_how_long_a_worker_has_waited) {
  // One worker runs four tasks, the other one a task, waits for 3000 ns, and runs the last one.
  ProgramWriter writer;
  const TileId a = writer.tile(0, 0);
  const TileId b = writer.tile(0, 0);
  const TileId c = writer.tile(0, 0);
  for (int i = 0; i < 4; ++i) writer.task({writer.read_write(a)});
  writer.task({writer.read_write(b)});
  writer.task({writer.read_write(b), writer.read(a)});
  writer.task({writer.read_write(c), writer.read(a)});
  SimulatedMachine machine = free_machine();
  machine.cpu_workers = 2;
  ScriptedJob job = job_of(writer);
  const auto seconds = [&](double at_once, double soon, double late) {
    machine.wakings = {{0, {at_once}}, {100e-9, {soon}}, {4e-6, {late}}};
    return ns(simulate(machine, job, {}));
  };
  EXPECT_EQ(seconds(0, 0, 0), 5000);
  EXPECT_EQ(seconds(9e-9, 0, 0), 5000) << "nobody waits for less than 100 ns";
  EXPECT_EQ(seconds(0, 5e-9, 0), 5005);
  EXPECT_EQ(seconds(0, 0, 7e-9), 5007) << "the first tasks' workers have waited since ever";
  // What several wakings took is drawn, by the seed alone.
  machine.wakings = {{0, {1e-9, 2e-9, 4e-9, 8e-9}}};
  std::set<std::int64_t> met;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    met.insert(ns(simulate(machine, job, {.seed = seed})));
    EXPECT_TRUE(met.contains(ns(simulate(machine, job, {.seed = seed}))));
  }
  EXPECT_GT(met.size(), 3U);
  EXPECT_GE(*met.begin(), 5000 + 1);
  EXPECT_LE(*met.rbegin(), 5000 + 2 * 8);
  EXPECT_EQ(machine.waking_s(1, 0), 1e-9);
  machine.wakings.clear();
  EXPECT_EQ(machine.waking_s(1, 0), machine.wake_s);
}

TEST(Simulator, generation_takes_its_time) {
  SimulatedMachine machine = free_machine();
  machine.cpu_workers = 8;
  machine.append_s = 2e-6;
  ScriptedJob job = job_of_tasks_apart(5);
  // Items of turns 1, 2, 4: the third turn begins when three items have been appended.
  EXPECT_EQ(ns(simulate(machine, job, {})), 3 * 2000 + 1000);
}

TEST(Simulator, a_window_of_one_leaves_one_task_at_a_time) {
  SimulatedMachine machine = free_machine();
  machine.cpu_workers = 8;
  ScriptedJob job = job_of_tasks_apart(5);
  EXPECT_EQ(ns(simulate(machine, job, {.window = 1})), 5000);
}

TEST(Simulator, says_in_its_trace_that_the_window_was_full) {
  ProgramWriter writer;
  for (const std::int32_t place : {1, 0, 1}) {
    const TileId tile = writer.tile(0, place);
    writer.task({writer.read_write(tile)});
  }
  SimulatedMachine machine = free_machine();
  machine.devices = 1;
  ScriptedJob job = job_of(writer);
  const SimulationResult result = simulate(machine, job, {.window = 1, .traces = true});
  const Analysis analysis = analyze(make_run("simulated", result.traces), 0);
  const auto idle = [&](std::size_t thread, IdleCause cause) {
    return analysis.threads[thread].idle_ns.at(static_cast<std::size_t>(cause));
  };
  ASSERT_EQ(analysis.threads.size(), 2U);
  EXPECT_EQ(idle(0, IdleCause::window), 400) << "the worker's task comes behind the device's";
  EXPECT_EQ(idle(1, IdleCause::window), 1000);
  EXPECT_EQ(idle(1, IdleCause::runtime), 0);
}

/// A task on node 0 and one on node 1 that reads what it has made.
ProgramWriter handed_over() {
  ProgramWriter writer;
  const TileId a = writer.tile(0, 0);
  const TileId b = writer.tile(1, 0);
  writer.task({writer.read_write(a)});
  writer.task({writer.read_write(b), writer.read(a)});
  return writer;
}

TEST(Simulator, a_message_passes_both_progress_threads_and_the_network) {
  SimulatedMachine machine = free_machine();
  machine.nodes = 2;
  machine.network = {300e-9, 4e9};
  machine.message_s = 100e-9;
  const ProgramWriter writer = handed_over();
  ScriptedJob job = job_of(writer);
  const SimulationResult result = simulate(machine, job, {});
  // The grant is there before the first task ends: 100 + 300 + 100.
  EXPECT_EQ(ns(result), 1000 + 100 + 2000 + 300 + 100 + 1000);
  EXPECT_EQ(result.messages, 1);
  EXPECT_EQ(result.message_bytes, 8000U);
}

TEST(Simulator, neighbours_read_each_other_s_memory) {
  SimulatedMachine machine = free_machine();
  machine.nodes = machine.nodes_per_host = 2;
  machine.memory = {50e-9, 2e9};
  machine.network = {1, 1};
  const ProgramWriter writer = handed_over();
  ScriptedJob job = job_of(writer);
  EXPECT_EQ(ns(simulate(machine, job, {})), 1000 + 50 + 4000 + 1000);
}

TEST(Simulator, messages_share_an_interface) {
  ProgramWriter writer;
  const TileId a = writer.tile(0, 0);
  const TileId b = writer.tile(0, 0);
  const TileId there = writer.tile(1, 0);
  const TileId beyond = writer.tile(2, 0);
  writer.task({writer.read_write(there), writer.read(a)});
  writer.task({writer.read_write(beyond), writer.read(b)});
  SimulatedMachine machine = free_machine();
  machine.nodes = 3;
  machine.network = {0, 8e9};
  ScriptedJob job = job_of(writer);
  EXPECT_EQ(ns(simulate(machine, job, {})), 2000 + 1000);
}

TEST(Simulator, messages_to_one_node_follow_each_other) {
  ProgramWriter writer;
  const TileId a = writer.tile(0, 0);
  const TileId b = writer.tile(0, 0);
  const TileId one = writer.tile(1, 0);
  const TileId other = writer.tile(1, 0);
  writer.task({writer.read_write(one), writer.read(a)});
  writer.task({writer.read_write(other), writer.read(b)});
  SimulatedMachine machine = free_machine();
  machine.nodes = 2;
  machine.network = {0, 8e9};
  ScriptedJob job = job_of(writer);
  // The first task runs while the second one's data is on its way.
  EXPECT_EQ(ns(simulate(machine, job, {})), 1000 + 1000 + 1000);
}

TEST(Simulator, the_most_urgent_of_the_copies_that_wait_is_next) {
  ProgramWriter writer;
  std::vector<TileId> sources;
  for (int i = 0; i < 4; ++i) {
    sources.push_back(writer.tile(0, 0));
    const TileId target = writer.tile(0, 1);
    writer.task({writer.read_write(target), writer.read(sources.back())});
  }
  simulation::Program program = writer.program();
  const std::vector<std::int32_t> priorities{0, 1, 7, 3};
  for (std::size_t i = 0; i < priorities.size(); ++i) {
    program.statements[i].priority = priorities[i];
  }
  SimulatedMachine machine = free_machine();
  machine.devices = 1;
  ScriptedJob job(program, writer.matrices(), {{"work", 1, 1, 1e-6, 4e-7, 1}}, 8000);
  const SimulationResult result = simulate(machine, job, {.traces = true});
  std::vector<std::int32_t> tiles;
  for (const Copy& copy : make_run("simulated", result.traces).copies) {
    tiles.push_back(copy.tile.index);
  }
  // The first one found the lane free.
  EXPECT_EQ(tiles, (std::vector<std::int32_t>{sources[0].index, sources[2].index, sources[3].index,
                                              sources[1].index}));
}

TEST(Simulator, a_device_s_streams_share_it_and_copies_reach_it) {
  ProgramWriter writer;
  const TileId host = writer.tile(0, 0);
  const TileId one = writer.tile(0, 1);
  const TileId two = writer.tile(0, 1);
  writer.task({writer.read_write(one)});
  writer.task({writer.read_write(two)});
  writer.task({writer.read_write(one), writer.read(host)});
  SimulatedMachine machine = free_machine();
  machine.devices = 1;
  machine.device_streams = 2;
  machine.to_device = {20e-9, 80e9};
  ScriptedJob job = job_of(writer);
  const SimulationResult result = simulate(machine, job, {});
  EXPECT_EQ(ns(result), 800 + 400);  // two side by side, each at half; the copy is there by then
  EXPECT_EQ(result.copies, 1);
  EXPECT_EQ(result.copied_bytes, 8000U);
  EXPECT_NEAR(result.nodes.at(0).busy_devices_s, 1.2e-6, 1e-15);
  machine.launch_s = 30e-9;
  machine.notice_s = 5e-9;
  // Launched at 30 and 60: the first is done at 30 + 30 + 2 * 370 = 800, the third one launched
  // behind it at once, when it has been noticed.
  EXPECT_EQ(ns(simulate(machine, job, {})), 835 + 800 - 800 + 30 + 400 - 30 + 5);
}

TEST(Simulator, says_which_kernel_nobody_has_timed) {
  ProgramWriter writer;
  writer.task({writer.read_write(writer.tile(0, 1))});
  SimulatedMachine machine = free_machine();
  machine.devices = 1;
  ScriptedJob job(writer.program(), writer.matrices(), {{"work", 3, 4, 1e-6, 0, 1}}, 8000);
  try {
    static_cast<void>(simulate(machine, job, {}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_STREQ(error.what(),
                 "machine 'free' has no time for kernel 'work' on 3 x 4 tiles on devices");
  }
}

void all_time_is_accounted_for(const Analysis& analysis) {
  const std::int64_t span = analysis.span.ns();
  for (const ThreadTime& thread : analysis.threads) ASSERT_EQ(thread.busy_ns + thread.idle(), span);
  for (const ThreadTime& stream : analysis.streams) ASSERT_EQ(stream.busy_ns + stream.idle(), span);
  for (const ServiceTime& service : analysis.services) {
    const auto& waits = service.waiting_ns;
    ASSERT_EQ(std::accumulate(waits.begin(), waits.end(), service.busy_ns + service.unknown_ns),
              span);
  }
}

/// As ScriptedJob::expected().
std::multiset<ScriptedJob::Expected> tasks_of(const RunTrace& run) {
  std::multiset<ScriptedJob::Expected> all;
  for (const Task& task : run.tasks) {
    ScriptedJob::Expected one;
    one.kernel = run.kernel_of(task);
    for (const Access& access : run.accesses_of(task)) {
      const bool reads = access.mode != trace::AccessMode::write;
      const bool writes = access.mode != trace::AccessMode::read;
      const std::int32_t found = access.version.value();
      if (reads) one.reads.push_back({access.tile.matrix, access.tile.index, found});
      if (writes) one.writes.push_back({access.tile.matrix, access.tile.index, found + 1});
    }
    all.insert(std::move(one));
  }
  return all;
}

TEST(Simulator, runs_each_task_once_and_beats_no_bound_under_every_seed) {
  for (const std::uint64_t seed : simulation::seeds(1500)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    const RandomSimulation random(seed);
    const SimulationResult result = simulate(random.machine, *random.job, random.options);
    ASSERT_EQ(result.tasks, random.job->task_count());
    for (const trace::NodeTrace& trace : result.traces) ASSERT_NO_THROW(check(trace, "simulated"));
    const RunTrace run = make_run("simulated", result.traces);
    ASSERT_EQ(tasks_of(run), random.job->expected());
    ASSERT_EQ(std::ssize(run.counters), std::ssize(run.tasks)) << "ready tasks, with each one";
    ASSERT_EQ(std::ssize(run.tasks), result.tasks);
    ASSERT_EQ(std::ssize(run.messages), result.messages);
    ASSERT_EQ(std::ssize(run.copies), result.copies);
    if (run.tasks.empty()) continue;
    const Analysis analysis = analyze(run, 0);
    const Bounds& bounds = analysis.bounds;
    ASSERT_LE(bounds.mixed_s, analysis.seconds() + 1e-12);
    ASSERT_GE(bounds.mixed_s, std::max({bounds.area_s, bounds.placed_s, bounds.critical_path_s}));
    ASSERT_LE(bounds.area_s, bounds.placed_s * (1 + 1e-12));
    ASSERT_NO_FATAL_FAILURE(all_time_is_accounted_for(analysis));
  }
}

TEST(Simulator, does_the_same_again) {
  for (const std::uint64_t seed : simulation::seeds(50)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    const RandomSimulation one(seed);
    const RandomSimulation two(seed);
    const SimulationResult first = simulate(one.machine, *one.job, one.options);
    const SimulationResult second = simulate(two.machine, *two.job, two.options);
    ASSERT_EQ(first.seconds, second.seconds);
    ASSERT_EQ(first.events, second.events);
    ASSERT_TRUE(first.traces == second.traces);
  }
}

}  // namespace
}  // namespace heddle::replay
