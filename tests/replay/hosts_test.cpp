#include <array>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "tests/replay/random_simulation.hpp"

/// Messages between simulated nodes by their hosts and network interfaces.
namespace heddle::replay {
namespace {

using protocol::TileId;
using simulation::ProgramWriter;

/// Tasks of 1000 ns on tiles of 8000 bytes.
std::int64_t ns_of_program(const SimulatedMachine& machine, const ProgramWriter& writer) {
  ScriptedJob job(writer.program(), writer.matrices(), {{"work", 1, 1, 1e-6, 0, 1}}, 8000);
  return std::llround(simulate(machine, job, {}).seconds * 1e9);
}

TEST(Hosts, dealing_nodes_round_hosts_changes_which_messages_leave_their_host) {
  SimulatedMachine machine = free_machine();
  machine.nodes = 4;
  machine.nodes_per_host = 2;
  machine.memory = {50e-9, 8e9};
  machine.network = {300e-9, 4e9};
  const std::int64_t by_memory_ns = 1000 + 50 + 1000 + 1000;
  const std::int64_t by_network_ns = 1000 + 300 + 2000 + 1000;
  const auto from_0_to = [&](std::int32_t node) {
    ProgramWriter writer;
    const TileId a = writer.tile(0, 0);
    const TileId b = writer.tile(node, 0);
    writer.task({writer.read_write(a)});
    writer.task({writer.read_write(b), writer.read(a)});
    return ns_of_program(machine, writer);
  };
  EXPECT_EQ(from_0_to(1), by_memory_ns);
  EXPECT_EQ(from_0_to(2), by_network_ns);
  machine.host_order = HostOrder::round;
  EXPECT_EQ(from_0_to(1), by_network_ns);
  EXPECT_EQ(from_0_to(2), by_memory_ns);
  machine.host_order = HostOrder::listed;
  machine.hosts = {0, 1, 1, 0};
  EXPECT_EQ(from_0_to(2), by_network_ns);
  EXPECT_EQ(from_0_to(3), by_memory_ns);
}

/// When tasks are over that read a tile of 8000 bytes of each sender, each on a node of its own.
std::int64_t sent_at_once_ns(const SimulatedMachine& machine,
                             const std::vector<std::array<std::int32_t, 2>>& nodes) {
  ProgramWriter writer;
  for (const auto& [from, to] : nodes) {
    const TileId there = writer.tile(to, 0);
    const TileId here = writer.tile(from, 0);
    writer.task({writer.read_write(there), writer.read(here)});
  }
  return ns_of_program(machine, writer);
}

TEST(Hosts, nodes_of_a_host_share_its_interface_in_each_direction) {
  SimulatedMachine machine = free_machine();
  machine.nodes = 6;
  machine.nodes_per_host = 2;
  machine.network = {0, 8e9};
  // Hosts: 0 and 1; 2 and 3; 4 and 5.
  machine.interface_owner = InterfaceOwner::node;
  EXPECT_EQ(sent_at_once_ns(machine, {{0, 2}, {1, 4}}), 1000 + 1000);
  EXPECT_EQ(sent_at_once_ns(machine, {{0, 2}, {1, 3}}), 1000 + 1000);
  EXPECT_EQ(sent_at_once_ns(machine, {{0, 4}, {2, 5}}), 1000 + 1000);
  machine.interface_owner = InterfaceOwner::host;
  EXPECT_EQ(sent_at_once_ns(machine, {{0, 2}, {1, 4}}), 2000 + 1000) << "from one host to two";
  EXPECT_EQ(sent_at_once_ns(machine, {{0, 2}, {1, 3}}), 2000 + 1000) << "from one host to another";
  EXPECT_EQ(sent_at_once_ns(machine, {{0, 4}, {2, 5}}), 2000 + 1000) << "from two hosts to one";
  EXPECT_EQ(sent_at_once_ns(machine, {{0, 2}, {3, 1}}), 1000 + 1000) << "one each way";
  EXPECT_EQ(sent_at_once_ns(machine, {{0, 2}}), 1000 + 1000) << "alone";
  // 0, 2 and 4 are on host 0 of two.
  machine.nodes_per_host = 3;
  machine.host_order = HostOrder::round;
  EXPECT_EQ(sent_at_once_ns(machine, {{0, 1}, {2, 3}, {4, 5}}), 3000 + 1000);
}

}  // namespace
}  // namespace heddle::replay
