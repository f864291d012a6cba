#include "replay/simulation/priorities.hpp"

#include <gtest/gtest.h>
#include <set>

#include "replay/run.hpp"
#include "tests/replay/random_simulation.hpp"
#include "tests/support/seeds.hpp"

namespace heddle::replay {
namespace {

using protocol::TileId;
using simulation::ProgramWriter;

/// Independent tasks of which the third one has two behind it; priorities as given.
class Priorities : public ::testing::Test {
 protected:
  Priorities() {
    ProgramWriter writer;
    for (int i = 0; i < 5; ++i) tiles_.push_back(writer.tile(0, 0));
    for (const TileId tile : tiles_) writer.task({writer.read_write(tile)});
    for (int i = 0; i < 2; ++i) writer.task({writer.read_write(tiles_[2])});
    simulation::Program program = writer.program();
    const std::vector<std::int32_t> given{5, 3, 1, 4, 2, 0, 0};
    for (std::size_t i = 0; i < given.size(); ++i) program.statements[i].priority = given[i];
    job_ =
        std::make_unique<ScriptedJob>(std::move(program), writer.matrices(),
                                      std::vector<TaskKind>{{"work", 1, 1, 1e-6, 4e-7, 1}}, 8000);
    machine_ = free_machine();
    machine_.cpu_workers = 1;
  }
  /// Tiles in the order in which one worker writes them, by their number.
  [[nodiscard]] std::vector<int> order(PriorityRule rule, std::uint64_t seed = 1) {
    const TaskGraph graph(*job_, 1, 100);
    PriorityOf priority = priority_of(rule, seed, &graph, *job_, machine_);
    if (!priority) return run(*job_);
    PrioritizedJob job(*job_, std::move(priority));
    return run(job);
  }

 private:
  [[nodiscard]] std::vector<int> run(SimulatedJob& job) {
    const SimulationResult result = simulate(machine_, job, {.traces = true});
    std::vector<int> order;
    for (const Task& task : make_run("simulated", result.traces).tasks) {
      order.push_back(task.tile.index);
    }
    return order;
  }

  std::vector<TileId> tiles_;
  std::unique_ptr<ScriptedJob> job_;
  SimulatedMachine machine_;
};

// The first task finds the worker free, whatever its priority.

TEST_F(Priorities, of_the_program_are_the_given_ones) {
  EXPECT_EQ(order(PriorityRule::program), (std::vector<int>{0, 3, 1, 4, 2, 2, 2}));
}

TEST_F(Priorities, without_any_the_first_one_goes_first) {
  EXPECT_EQ(order(PriorityRule::fifo), (std::vector<int>{0, 1, 2, 3, 4, 2, 2}));
}

TEST_F(Priorities, reversed_the_least_urgent_one_goes_first) {
  EXPECT_EQ(order(PriorityRule::reverse), (std::vector<int>{0, 2, 2, 2, 4, 1, 3}));
}

TEST_F(Priorities, by_path_the_longest_way_to_the_end_goes_first) {
  EXPECT_EQ(order(PriorityRule::path), (std::vector<int>{0, 2, 2, 1, 3, 4, 2}));
}

TEST_F(Priorities, at_random_follow_the_seed) {
  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<int> one = order(PriorityRule::random, seed);
    EXPECT_EQ(one, order(PriorityRule::random, seed));
    orders.insert(one);
  }
  EXPECT_GT(orders.size(), 5U);
}

TEST(PrioritizedJob, runs_each_task_once_under_every_rule_and_seed) {
  for (const std::uint64_t seed : simulation::seeds(300)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    RandomSimulation random(seed);
    random.options.traces = false;
    const TaskGraph graph(*random.job, random.machine.nodes, 1000);
    for (const PriorityRule rule :
         {PriorityRule::fifo, PriorityRule::reverse, PriorityRule::random, PriorityRule::path}) {
      PrioritizedJob job(*random.job, priority_of(rule, seed, &graph, *random.job, random.machine));
      const SimulationResult result = simulate(random.machine, job, random.options);
      ASSERT_EQ(result.tasks, random.job->task_count()) << static_cast<int>(rule);
      ASSERT_LE(graph.critical_path_s(), result.seconds + 1e-12);
    }
  }
}

}  // namespace
}  // namespace heddle::replay
