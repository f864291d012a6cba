#include <gtest/gtest.h>
#include <vector>

#include "replay/simulation/copy_lanes.hpp"
#include "replay/simulation/progress_thread.hpp"
#include "replay/simulation/simulated_node.hpp"
#include "tests/replay/random_simulation.hpp"

/// Parts of a simulated node, without the node.
namespace heddle::replay {
namespace {

using protocol::CopyAction;
using simulation::ProgramWriter;

constexpr std::uint64_t bytes_of_tile = 8000;

/// A node whose copies take 1000 ns in each direction.
struct LoneWorld {
  LoneWorld()
      : machine(free_machine()), job(writer.program(), writer.matrices(), {}, bytes_of_tile) {
    machine.devices = 1;
    machine.to_device = machine.to_host = {0, 8e9};
  }

  ProgramWriter writer;
  SimulatedMachine machine;
  ScriptedJob job;
  SimulationOptions options;
  SimulatedWorld world{machine, job, options};
};

CopyAction copy(PlaceId from, PlaceId to, std::int32_t priority) {
  CopyAction action;
  action.from_place = from;
  action.to_place = to;
  action.priority = priority;
  return action;
}

struct Ended {
  std::int32_t priority = 0;
  std::int64_t time_ns = 0;
  friend bool operator==(const Ended&, const Ended&) = default;
};

/// Handles all events of copies.
std::vector<Ended> run(SimulatedWorld& world, CopyLanes& lanes) {
  std::vector<Ended> ended;
  while (!world.events.empty()) {
    const auto next = world.events.pop();
    world.now_ns = next.time_ns;
    if (next.event.kind == Event::Kind::lane_is_free) {
      lanes.lane_is_free(next.event.number);
    } else {
      EXPECT_EQ(next.event.kind, Event::Kind::copy_ends);
      ended.push_back({lanes.take_ended(next.event.number).action.priority, world.now_ns});
    }
    EXPECT_TRUE(lanes.is_valid());
  }
  return ended;
}

}  // namespace

TEST(CopyLanes, copies_in_a_direction_follow_each_other_by_priority) {
  LoneWorld lone;
  Records<MemoryWait> waits;
  CopyLanes lanes(lone.world, NodeId{0}, waits);
  for (const std::int32_t priority : {1, 2, 4, 3}) {
    lanes.post(copy(host_place, PlaceId{1}, priority));
    EXPECT_TRUE(lanes.is_valid());
  }
  EXPECT_EQ(run(lone.world, lanes),
            (std::vector<Ended>{{1, 1000}, {4, 2000}, {3, 3000}, {2, 4000}}))
      << "the first one began before the others came";
  EXPECT_EQ(lone.world.result.copies, 4);
  EXPECT_EQ(lone.world.result.copied_bytes, 4 * bytes_of_tile);
}

TEST(CopyLanes, the_two_directions_do_not_wait_for_each_other) {
  LoneWorld lone;
  Records<MemoryWait> waits;
  CopyLanes lanes(lone.world, NodeId{0}, waits);
  lanes.post(copy(host_place, PlaceId{1}, 1));
  lanes.post(copy(PlaceId{1}, host_place, 2));
  EXPECT_EQ(run(lone.world, lanes), (std::vector<Ended>{{1, 1000}, {2, 1000}}));
}

TEST(ProgressThread, work_from_other_nodes_waits_for_the_next_poll) {
  LoneWorld lone;
  lone.machine.pause_s = 40e-6;
  const std::vector<std::int32_t> idle;
  SimulationTrace trace(NodeId{0}, lone.machine, false);
  SimulatedNodeTotals totals;
  ProgressThread thread(lone.world, NodeId{0}, idle, trace, totals);
  lone.world.now_ns = 100'000;
  const Event seen{Event::Kind::grant_seen, NodeId{0}, 7};
  thread.arrives({seen, 2e-6});
  EXPECT_TRUE(thread.is_valid());
  const auto poll = lone.world.events.pop();
  EXPECT_EQ(poll.event.kind, Event::Kind::progress_looks);
  EXPECT_EQ(poll.time_ns, 30'000 + 2 * 40'000) << "two pauses after it stopped polling";
  lone.world.now_ns = poll.time_ns;
  thread.looks();
  EXPECT_TRUE(thread.is_valid());
  const auto event = lone.world.events.pop();
  EXPECT_EQ(event.event.kind, seen.kind);
  EXPECT_EQ(event.event.number, 7);
  EXPECT_EQ(event.time_ns, poll.time_ns + 2000);
  EXPECT_DOUBLE_EQ(totals.messages_s, 2e-6);
  EXPECT_TRUE(lone.world.events.empty());
}

}  // namespace heddle::replay
