#include "replay/simulation/task_graph.hpp"

#include <gtest/gtest.h>

#include "replay/analysis.hpp"
#include "replay/run.hpp"
#include "tests/replay/random_simulation.hpp"
#include "tests/support/seeds.hpp"

namespace heddle::replay {
namespace {

using protocol::TileId;
using simulation::ProgramWriter;

/// Kinds of 1, 2 and 4 us on the host.
ScriptedJob job_of(const ProgramWriter& writer, const std::vector<std::uint64_t>& kinds) {
  simulation::Program program = writer.program();
  for (std::size_t i = 0; i < kinds.size(); ++i) program.statements[i].work = kinds[i];
  return {std::move(program),
          writer.matrices(),
          {{"a", 1, 1, 1e-6, 0, 1}, {"b", 1, 1, 2e-6, 0, 1}, {"c", 1, 1, 4e-6, 0, 1}},
          8000};
}

TEST(TaskGraph, tells_how_far_each_task_is_from_the_end) {
  ProgramWriter writer;
  const TileId a = writer.tile(0, 0);
  const TileId b = writer.tile(1, 0);
  writer.task({writer.read_write(a)});                  // c: 4
  writer.task({writer.read_write(b), writer.read(a)});  // b: 2, on node 1, behind the first one
  writer.task({writer.read_write(a)});                  // a: 1, behind the first one
  writer.task({writer.write(a)});                       // c: 4, waits for nobody
  ScriptedJob job = job_of(writer, {2, 1, 0, 2});
  const TaskGraph graph(job, 2, 100);
  ASSERT_TRUE(graph.is_complete());
  // Node 0's tasks first.
  EXPECT_EQ(std::vector<std::int64_t>(graph.first_of_node().begin(), graph.first_of_node().end()),
            (std::vector<std::int64_t>{0, 3, 4}));
  const std::vector<double> levels = graph.levels({});
  ASSERT_EQ(levels.size(), 4U);
  EXPECT_DOUBLE_EQ(levels[0], 6e-6);
  EXPECT_DOUBLE_EQ(levels[1], 1e-6);
  EXPECT_DOUBLE_EQ(levels[2], 4e-6);
  EXPECT_DOUBLE_EQ(levels[3], 2e-6);
  EXPECT_DOUBLE_EQ(graph.critical_path_s(), 6e-6);
  const auto transfer = [&](Location from, Location to, TileId tile, Version version) {
    EXPECT_EQ(from.node, NodeId{0});
    EXPECT_EQ(to.node, NodeId{1});
    EXPECT_EQ(tile, a);
    EXPECT_EQ(version, Version{1});
    return 3e-6;
  };
  EXPECT_DOUBLE_EQ(graph.levels(transfer)[0], 9e-6);
}

TEST(TaskGraph, keeps_nothing_of_a_job_that_is_too_large) {
  ProgramWriter writer;
  for (int i = 0; i < 4; ++i) writer.task({writer.read_write(writer.tile(0, 0))});
  ScriptedJob job = job_of(writer, {});
  EXPECT_TRUE(TaskGraph(job, 1, 4).is_complete());
  const TaskGraph graph(job, 1, 3);
  EXPECT_FALSE(graph.is_complete());
  EXPECT_EQ(graph.count(), 4);
}

TEST(TaskGraph, stops_walking_when_there_are_too_many_tasks) {
  ProgramWriter writer;
  for (int i = 0; i < 100; ++i) writer.task({writer.read_write(writer.tile(0, 0))});
  ScriptedJob job = job_of(writer, {});
  EXPECT_EQ(TaskGraph(job, 1, 3).count(), 4);
}

TEST(TaskGraph, has_the_critical_path_of_the_run_under_every_seed) {
  for (const std::uint64_t seed : simulation::seeds(500)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    RandomSimulation random(seed);
    random.machine.device_streams = 1;  // kernels side by side take longer than alone
    const TaskGraph graph(*random.job, random.machine.nodes, 1000);
    ASSERT_TRUE(graph.is_complete());
    const SimulationResult result = simulate(random.machine, *random.job, random.options);
    ASSERT_EQ(graph.count(), result.tasks);
    if (result.tasks == 0) continue;
    const Analysis analysis = analyze(make_run("simulated", result.traces), 0);
    ASSERT_NEAR(graph.critical_path_s(), analysis.bounds.critical_path_s, 1e-12);
  }
}

}  // namespace
}  // namespace heddle::replay
