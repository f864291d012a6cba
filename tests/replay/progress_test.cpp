#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <utility>
#include <vector>

#include "replay/run.hpp"
#include "replay/simulation/simulator.hpp"
#include "tests/replay/random_simulation.hpp"
#include "tests/replay/scripted_job.hpp"

/// When simulated progress threads see messages.
namespace heddle::replay {
namespace {

using protocol::TileId;
using simulation::ProgramWriter;

/// What a statement runs: kinds of the job below.
enum class Long : std::uint8_t { us_1, us_50, us_80, us_90, us_500 };

/// Tiles of 8000 bytes.
class Script {
 public:
  TileId tile(std::int32_t node) { return writer_.tile(node, 0); }
  Script& task(Long work, TileId writes) { return add(work, {writer_.read_write(writes)}); }
  Script& task(Long work, TileId writes, TileId reads) {
    return add(work, {writer_.read_write(writes), writer_.read(reads)});
  }
  /// When the only message was there, in ns.
  [[nodiscard]] std::int64_t seen_ns(const SimulatedMachine& machine) const {
    const RunTrace run = run_on(machine);
    EXPECT_EQ(run.messages.size(), 1U);
    return run.messages.at(0).time.end_ns;
  }
  /// When all tasks of node 1 were over, in ns.
  [[nodiscard]] std::int64_t over_ns(const SimulatedMachine& machine) const {
    const RunTrace run = run_on(machine);
    std::int64_t last = 0;
    for (const Task& task : run.tasks) {
      if (run.at(task.thread).node == NodeId{1}) last = std::max(last, task.time.end_ns);
    }
    return last;
  }

 private:
  [[nodiscard]] RunTrace run_on(const SimulatedMachine& machine) const {
    simulation::Program program = writer_.program();
    for (std::size_t i = 0; i < works_.size(); ++i) program.statements[i].work = works_[i];
    ScriptedJob job(std::move(program), writer_.matrices(),
                    {{"a", 1, 1, 1e-6, 0, 1},
                     {"b", 1, 1, 50e-6, 0, 1},
                     {"c", 1, 1, 80e-6, 0, 1},
                     {"d", 1, 1, 90e-6, 0, 1},
                     {"e", 1, 1, 500e-6, 0, 1}},
                    8000);
    return make_run("simulated", simulate(machine, job, {.traces = true}).traces);
  }
  Script& add(Long work, std::vector<protocol::Access> accesses) {
    writer_.task(std::move(accesses));
    works_.push_back(static_cast<std::uint64_t>(work));
    return *this;
  }
  ProgramWriter writer_;
  std::vector<std::uint64_t> works_;
};

/// A message of 8 us that leaves at 50 us; its receiver has a task of its own.
Script received_beside(Long work) {
  Script script;
  const TileId a = script.tile(0);
  const TileId b = script.tile(1);
  script.task(Long::us_50, a).task(work, script.tile(1)).task(Long::us_1, b, a);
  return script;
}

TEST(ProgressThread, looks_again_after_a_pause_while_workers_compute) {
  SimulatedMachine machine = free_machine();
  machine.nodes = 2;
  const Script script = received_beside(Long::us_500);
  EXPECT_EQ(script.seen_ns(machine), 58'000);
  // Alert until 30 us behind its last work, at the beginning; then it looks every 100 us.
  machine.pause_s = 100e-6;
  EXPECT_EQ(script.seen_ns(machine), 130'000);
  machine.pause_s = 20e-6;
  EXPECT_EQ(script.seen_ns(machine), 70'000);
}

TEST(ProgressThread, looks_without_rest_while_a_worker_waits) {
  SimulatedMachine machine = free_machine();
  machine.nodes = 2;
  machine.pause_s = 100e-6;
  EXPECT_EQ(received_beside(Long::us_1).seen_ns(machine), 58'000);
  EXPECT_EQ(received_beside(Long::us_90).seen_ns(machine), 90'000) << "when it begins to wait";
}

TEST(ProgressThread, takes_its_time_beside_each_reading_of_a_neighbour) {
  Script script;
  const TileId a = script.tile(0);
  script.task(Long::us_1, a);
  script.task(Long::us_1, script.tile(1), a);
  SimulatedMachine machine = free_machine();
  machine.nodes = machine.nodes_per_host = 2;
  const std::int64_t seen_ns = script.seen_ns(machine);
  machine.read_s = 3e-6;
  EXPECT_EQ(script.seen_ns(machine), seen_ns + 3'000);
  machine.nodes_per_host = 1;
  const std::int64_t by_network_ns = script.seen_ns(machine);
  machine.read_s = 0;
  EXPECT_EQ(script.seen_ns(machine), by_network_ns) << "nobody is read";
}

TEST(ProgressThread, has_a_shared_core_when_its_worker_steps_aside) {
  Script script;
  const TileId a = script.tile(0);
  const TileId b = script.tile(1);
  script.task(Long::us_1, a);
  for (int i = 0; i < 4; ++i) script.task(Long::us_80, script.tile(1));
  script.task(Long::us_1, b, a);
  SimulatedMachine machine = free_machine();
  machine.nodes = machine.nodes_per_host = 2;
  machine.look_s = 7e-6;
  // The grant leaves while the tasks before it are appended, in no time.
  EXPECT_EQ(script.seen_ns(machine), 9'000) << "as many cores as threads want";
  machine.cores = 4;
  EXPECT_EQ(script.seen_ns(machine), 9'000) << "one of each worker, one of each progress thread";
  // On shared cores the grant leaves behind the second task, 100 us and more after the beginning,
  // and its answer is seen behind the fourth one, whose worker waits then.
  machine.cores = 3;
  EXPECT_EQ(script.seen_ns(machine), (4 * 80 + 7 + 8) * 1000);
}

TEST(ProgressThread, reads_on_a_shared_core_in_time_that_its_worker_gives) {
  Script script;
  const TileId a = script.tile(0);
  script.task(Long::us_1, a);
  for (int i = 0; i < 6; ++i) script.task(Long::us_80, script.tile(1));
  script.task(Long::us_1, script.tile(1), a);
  SimulatedMachine machine = free_machine();
  machine.nodes = machine.nodes_per_host = 2;
  machine.cores = 3;
  machine.look_s = 7e-6;
  SimulatedMachine slow = machine;
  slow.memory.bytes_per_s = machine.memory.bytes_per_s / 3;  // 24 us instead of 8
  EXPECT_EQ(script.over_ns(slow) - script.over_ns(machine), 16'000);
  machine.cores = slow.cores = 4;
  EXPECT_EQ(script.over_ns(slow), script.over_ns(machine)) << "it has a core of its own";
}

}  // namespace
}  // namespace heddle::replay
