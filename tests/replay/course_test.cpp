#include "replay/simulation/course.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <utility>
#include <vector>

#include "replay/graph.hpp"
#include "replay/run.hpp"
#include "replay/runtime_costs.hpp"
#include "replay/simulation/simulator.hpp"
#include "tests/replay/random_simulation.hpp"
#include "tests/replay/scripted_job.hpp"

namespace heddle::replay {
namespace {

using protocol::MatrixId;
using protocol::TileId;

TEST(Course, knows_what_it_was_told) {
  Course course(2);
  const TileId tile{MatrixId{3}, 7};
  course.add_task(NodeId{1}, 5, 2.5F);
  course.add_message(NodeId{0}, NodeId{1}, tile, Version{4}, 30e-6);
  EXPECT_EQ(course.share(NodeId{1}, 5), 2.5);
  for (const std::int64_t order : {0, 4, 6, 1000}) EXPECT_EQ(course.share(NodeId{1}, order), 1);
  EXPECT_EQ(course.share(NodeId{0}, 5), 1);
  course.add_waking(NodeId{1}, 5, 40e-6);
  EXPECT_EQ(course.waking_seconds(NodeId{1}, 5), 40e-6);
  EXPECT_FALSE(course.waking_seconds(NodeId{1}, 4) || course.waking_seconds(NodeId{0}, 5));
  EXPECT_EQ(course.message_seconds(NodeId{0}, NodeId{1}, tile, Version{4}), 30e-6);
  EXPECT_EQ(course.message_seconds(NodeId{1}, NodeId{0}, tile, Version{4}), 0);
  EXPECT_EQ(course.message_seconds(NodeId{0}, NodeId{1}, tile, Version{5}), 0);
  EXPECT_EQ(course.message_seconds(NodeId{0}, NodeId{1}, {MatrixId{3}, 8}, Version{4}), 0);
  EXPECT_EQ(course.message_seconds(NodeId{0}, NodeId{1}, {MatrixId{2}, 7}, Version{4}), 0);
}

/// One node writes a tile, the other one reads it.
class TwoTasks {
 public:
  TwoTasks() {
    simulation::ProgramWriter writer;
    a_ = writer.tile(0, 0);
    const TileId b = writer.tile(1, 0);
    writer.task({writer.read_write(a_)});
    writer.task({writer.read_write(b), writer.read(a_)});
    job_ = std::make_unique<ScriptedJob>(writer.program(), writer.matrices(),
                                         std::vector<TaskKind>{{"a", 1, 1, 50e-6, 0, 1}}, 8000);
  }
  /// Repeated by `course`.
  [[nodiscard]] RunTrace run(const Course& course, std::vector<double> paces = {}) {
    RepeatedJob repeated(*job_, course);
    SimulatedMachine machine = free_machine();
    machine.nodes = machine.nodes_per_host = 2;
    machine.worker_paces = std::move(paces);
    return make_run("simulated", simulate(machine, repeated, {.traces = true}).traces);
  }
  [[nodiscard]] TileId sent() const { return a_; }

 private:
  TileId a_;
  std::unique_ptr<ScriptedJob> job_;
};

TEST(RepeatedJob, has_each_task_and_message_take_its_own_time) {
  TwoTasks tasks;
  const RunTrace usual = tasks.run(Course(2));
  ASSERT_EQ(usual.tasks.size(), 2U);
  ASSERT_EQ(usual.messages.size(), 1U);
  EXPECT_EQ(usual.tasks[0].time.ns(), 50'000);
  const Version sent = usual.messages[0].version;

  Course course(2);
  for (const Task& task : usual.tasks) {
    const NodeId node = usual.at(task.thread).node;
    course.add_task(node, static_cast<std::int64_t>(task.order), node.value() == 0 ? 3 : 0.5F);
  }
  course.add_message(NodeId{0}, NodeId{1}, tasks.sent(), sent, 77e-6);
  const RunTrace own = tasks.run(course);
  ASSERT_EQ(own.tasks.size(), 2U);
  for (const Task& task : own.tasks) {
    EXPECT_EQ(task.time.ns(), own.at(task.thread).node.value() == 0 ? 150'000 : 25'000);
  }
  ASSERT_EQ(own.messages.size(), 1U);
  EXPECT_EQ(own.messages[0].time.ns(), 77'000);

  // The reader's worker waits for the message.
  const auto reader = [](const RunTrace& run) {
    return *std::ranges::find_if(
        run.tasks, [&](const Task& task) { return run.at(task.thread).node == NodeId{1}; });
  };
  EXPECT_EQ(reader(own).time.start_ns, own.messages[0].time.end_ns);
  course.add_waking(NodeId{1}, static_cast<std::int64_t>(reader(own).order), 9e-6);
  const RunTrace woken = tasks.run(course);
  EXPECT_EQ(reader(woken).time.start_ns, woken.messages[0].time.end_ns + 9'000);
  const std::vector<WokenTask> found = runtime_costs(woken, Graph(woken, 0), free_machine()).woken;
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(woken.at(found[0].task).order, reader(woken).order);
  EXPECT_NEAR(found[0].wake_s, 9e-6, 1e-12);
  EXPECT_NEAR(found[0].waited_s, static_cast<double>(woken.messages[0].time.end_ns) * 1e-9, 1e-12);
}

TEST(SimulatedMachine, knows_paces_by_node_then_worker) {
  SimulatedMachine machine = free_machine();
  machine.nodes = machine.cpu_workers = 2;
  EXPECT_EQ(machine.pace(NodeId{1}, 1), 1);
  machine.worker_paces = {1, 2, 3, 4};
  EXPECT_EQ(machine.pace(NodeId{0}, 1), 2);
  EXPECT_EQ(machine.pace(NodeId{1}, 0), 3);
}

TEST(SimulatedMachine, has_workers_that_are_slower_than_others) {
  TwoTasks tasks;
  const RunTrace run = tasks.run(Course(2), {1.5, 0.9});
  ASSERT_EQ(run.tasks.size(), 2U);
  for (const Task& task : run.tasks) {
    EXPECT_EQ(task.time.ns(), run.at(task.thread).node.value() == 0 ? 75'000 : 45'000);
  }
}

/// One node, whose tasks begin long after each other: all of its workers are idle then.
TEST(SimulatedMachine, gives_a_task_to_any_of_the_idle_workers_where_these_differ) {
  simulation::ProgramWriter writer;
  const TileId here = writer.tile(0, 0);
  const TileId elsewhere = writer.tile(1, 0);
  constexpr int rounds = 100;
  for (int i = 0; i < rounds; ++i) {  // the other node's task is before each of this one's
    writer.task({writer.read_write(elsewhere)});
    writer.task({writer.read_write(here), writer.read(elsewhere)});
    writer.task({writer.read_write(elsewhere), writer.read(here)});
  }
  ScriptedJob job(writer.program(), writer.matrices(),
                  std::vector<TaskKind>{{"a", 1, 1, 50e-6, 0, 1}}, 8000);
  SimulatedMachine machine = free_machine();
  machine.nodes = machine.nodes_per_host = 2;
  machine.cpu_workers = 2;
  const auto by_worker = [&](std::uint64_t seed) {
    const RunTrace run =
        make_run("simulated", simulate(machine, job, {.traces = true, .seed = seed}).traces);
    std::vector<int> counts(run.threads.size(), 0);
    for (const Task& task : run.tasks) ++counts[static_cast<std::size_t>(task.thread.value())];
    std::erase(counts, 0);
    return counts;
  };
  EXPECT_EQ(by_worker(1), (std::vector<int>{rounds, 2 * rounds}));  // alike: always the same one
  EXPECT_EQ(by_worker(2), by_worker(1));
  machine.worker_paces = {1, 1, 1, 2};
  const std::vector<int> drawn = by_worker(1);
  ASSERT_EQ(drawn.size(), 4U);
  for (const int count : drawn) EXPECT_GT(count, rounds / 4);
  EXPECT_EQ(by_worker(1), drawn);
  EXPECT_NE(by_worker(2), drawn);
}

}  // namespace
}  // namespace heddle::replay
