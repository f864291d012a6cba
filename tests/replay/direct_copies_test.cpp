#include <array>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "replay/run.hpp"
#include "tests/replay/random_simulation.hpp"

/// Messages between nodes of a host whose sides are on devices.
namespace heddle::replay {
namespace {

using protocol::TileId;
using simulation::ProgramWriter;

constexpr double tile_bytes = 8000;
constexpr std::int64_t on_host_ns = 1000;
constexpr std::int64_t on_device_ns = 400;

/// Nodes of one host with a device each. Reading takes 8000 ns, a copy between devices 2000.
SimulatedMachine neighbours(std::int32_t nodes) {
  SimulatedMachine machine = free_machine();
  machine.nodes = machine.nodes_per_host = nodes;
  machine.devices = 1;
  machine.memory = {0, 1e9};
  machine.to_peer = {0, 4e9};
  return machine;
}

struct Place {
  std::int32_t node = 0;
  std::int32_t place = 0;
};

/// A task at each of the second places reads a tile that is at the first one.
SimulationResult sent_at_once(const SimulatedMachine& machine,
                              const std::vector<std::array<Place, 2>>& ways, bool traces = false) {
  ProgramWriter writer;
  for (const auto& [from, to] : ways) {
    const TileId there = writer.tile(to.node, to.place);
    const TileId here = writer.tile(from.node, from.place);
    writer.task({writer.read_write(there), writer.read(here)});
  }
  ScriptedJob job(writer.program(), writer.matrices(),
                  {{"work", 1, 1, on_host_ns * 1e-9, on_device_ns * 1e-9, 1}},
                  static_cast<std::uint64_t>(tile_bytes));
  return simulate(machine, job, {.traces = traces});
}

std::int64_t ns(const SimulationResult& result) {
  return std::llround(result.seconds * 1e9);
}

TEST(DirectCopies, take_the_rate_between_devices) {
  SimulatedMachine machine = neighbours(2);
  machine.memory = {50e-9, 1e9};
  machine.to_peer = {300e-9, 4e9};
  machine.message_s = 100e-9;
  const SimulationResult result = sent_at_once(machine, {{{{0, 1}, {1, 1}}}}, true);
  // Grant and note, each at both progress threads; the second one has the copy begin.
  const std::int64_t begins_ns = 2 * (100 + 50 + 100);
  EXPECT_EQ(ns(result), begins_ns + 2000 + 300 + 100 + on_device_ns);
  EXPECT_EQ(result.messages, 1);
  EXPECT_EQ(result.message_bytes, 8000U);
  const RunTrace run = make_run("simulated", result.traces);
  ASSERT_EQ(run.messages.size(), 1U);
  EXPECT_EQ(run.messages[0].time.end_ns, begins_ns + 2000 + 300 + 100);
}

TEST(DirectCopies, leave_the_progress_thread_to_other_messages) {
  const SimulatedMachine machine = neighbours(2);
  const std::array<Place, 2> by_thread{{{0, 0}, {1, 0}}};
  const std::array<Place, 2> by_device{{{0, 1}, {1, 1}}};
  const SimulationResult both = sent_at_once(machine, {by_device, by_thread});
  EXPECT_EQ(ns(both), 8000 + on_host_ns);
  EXPECT_DOUBLE_EQ(both.nodes[1].messages_s, 8000e-9);
  const SimulationResult copied = sent_at_once(machine, {by_device});
  EXPECT_EQ(ns(copied), 2000 + on_device_ns);
  EXPECT_DOUBLE_EQ(copied.nodes[1].messages_s, 0);
  EXPECT_EQ(ns(sent_at_once(machine, {by_thread, by_thread})), 2 * 8000 + on_host_ns);
}

TEST(DirectCopies, share_the_links_of_their_devices) {
  const SimulatedMachine machine = neighbours(4);
  const auto copies_ns = [&](const std::vector<std::array<Place, 2>>& ways) {
    return ns(sent_at_once(machine, ways)) - on_device_ns;
  };
  EXPECT_EQ(copies_ns({{{{0, 1}, {1, 1}}}, {{{2, 1}, {3, 1}}}}), 2000);
  EXPECT_EQ(copies_ns({{{{0, 1}, {1, 1}}}, {{{1, 1}, {0, 1}}}}), 2000) << "one each way";
  EXPECT_EQ(copies_ns({{{{0, 1}, {1, 1}}}, {{{0, 1}, {2, 1}}}}), 4000) << "of one sender";
  EXPECT_EQ(copies_ns({{{{0, 1}, {2, 1}}}, {{{1, 1}, {2, 1}}}}), 4000 + on_device_ns)
      << "of one receiver, whose two tasks share the device, too";
}

TEST(DirectCopies, are_not_between_hosts) {
  SimulatedMachine machine = neighbours(2);
  machine.nodes_per_host = 1;
  machine.network = machine.to_host = machine.to_device = {0, 2e9};
  EXPECT_EQ(ns(sent_at_once(machine, {{{{0, 1}, {1, 1}}}})), 4000 + on_device_ns);
}

/// Host memory of tiles is not page-locked: a core copies between it and what the device reaches.
TEST(DirectCopies, are_not_from_or_to_host_memory_which_a_core_copies_as_fast_as_the_link) {
  SimulatedMachine machine = neighbours(2);
  machine.memory = {0, 4e9};
  machine.to_host = {0, 1e9};
  machine.to_device = {0, 2e9};
  const SimulationResult to_host = sent_at_once(machine, {{{{0, 1}, {1, 0}}}});
  EXPECT_EQ(ns(to_host), 8000 + on_host_ns);
  EXPECT_DOUBLE_EQ(to_host.nodes[1].messages_s, 8000e-9);
  EXPECT_EQ(ns(sent_at_once(machine, {{{{0, 0}, {1, 1}}}})), 4000 + on_device_ns);
  EXPECT_EQ(ns(sent_at_once(machine, {{{{0, 0}, {1, 0}}}})), 2000 + on_host_ns);
  machine.to_host = machine.to_device = {0, 8e9};
  EXPECT_EQ(ns(sent_at_once(machine, {{{{0, 1}, {1, 0}}}})), 2000 + on_host_ns);
  EXPECT_EQ(ns(sent_at_once(machine, {{{{0, 0}, {1, 1}}}})), 2000 + on_device_ns);
}

/// What a message between two devices takes in ns, whose nodes have so many tiles each on a device
/// with room for 18: node 1 reads node 0's first one.
std::int64_t copied_out_of_core_ns(const SimulatedMachine& machine, int tiles_0, int tiles_1) {
  ProgramWriter writer;
  std::vector<TileId> of_0;
  std::vector<TileId> of_1;
  for (int i = 0; i < tiles_0; ++i) of_0.push_back(writer.tile(0, 1));
  for (int i = 0; i < tiles_1; ++i) of_1.push_back(writer.tile(1, 1));
  writer.task({writer.read_write(of_1.back()), writer.read(of_0.front())});
  for (const TileId tile : of_0) writer.task({writer.read_write(tile)});
  for (const TileId tile : of_1) writer.task({writer.read_write(tile)});
  ScriptedJob job(writer.program(), writer.matrices(),
                  {{"work", 1, 1, on_host_ns * 1e-9, on_device_ns * 1e-9, 1}},
                  static_cast<std::uint64_t>(tile_bytes));
  const RunTrace run = make_run("simulated", simulate(machine, job, {.traces = true}).traces);
  EXPECT_EQ(run.messages.size(), 1U);
  return run.messages.at(0).time.ns();
}

TEST(DirectCopies, are_from_or_to_host_memory_where_a_device_has_no_room) {
  SimulatedMachine machine = neighbours(2);
  machine.device_memory_bytes = 18 * static_cast<std::uint64_t>(tile_bytes);
  machine.to_host = {0, 1e9 / 2};
  machine.to_device = {0, 1e9 / 3};
  constexpr int fit = 10;
  constexpr int do_not_fit = 24;  // the first ones are on the host, and the last ones fill the room
  EXPECT_EQ(copied_out_of_core_ns(machine, fit, fit), 2000);
  EXPECT_EQ(copied_out_of_core_ns(machine, fit, do_not_fit), 16'000) << "to the host";
  EXPECT_EQ(copied_out_of_core_ns(machine, do_not_fit, fit), 24'000) << "from the host";
  EXPECT_EQ(copied_out_of_core_ns(machine, do_not_fit, do_not_fit), 8000) << "by a core";
}

TEST(SimulatedMachine, knows_the_way_between_any_two_places) {
  SimulatedMachine machine = neighbours(4);
  machine.nodes_per_host = 2;
  const auto way = [&](Place from, Place to) {
    return &machine.way(Location{NodeId{from.node}, PlaceId{from.place}},
                        Location{NodeId{to.node}, PlaceId{to.place}});
  };
  EXPECT_EQ(way({0, 1}, {1, 1}), &machine.to_peer);
  EXPECT_EQ(way({0, 1}, {0, 0}), &machine.to_host);
  EXPECT_EQ(way({0, 0}, {0, 1}), &machine.to_device);
  EXPECT_EQ(way({0, 0}, {1, 1}), &machine.memory);
  EXPECT_EQ(way({0, 1}, {1, 0}), &machine.memory);
  EXPECT_EQ(way({0, 1}, {2, 1}), &machine.network);
  EXPECT_EQ(way({0, 0}, {2, 0}), &machine.network);
}

}  // namespace
}  // namespace heddle::replay
