#include "apps/simulation/collective_machine_file.hpp"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

#include "base/error.hpp"
#include "replay/collectives/virtual_group.hpp"

namespace heddle {
namespace {

using replay::CollectiveMachine;
using replay::Reach;

std::string collective_file() {
  return (std::filesystem::temp_directory_path() /
          ("heddle-collective-machine-" + std::to_string(::getpid()) + ".yaml"))
      .string();
}

CollectiveMachine read_text(const std::string& text) {
  const std::string path = collective_file();
  std::ofstream(path) << text;
  try {
    const CollectiveMachine machine = read_collective_machine(path);
    std::filesystem::remove(path);
    return machine;
  } catch (const Error&) {
    std::filesystem::remove(path);
    throw;
  }
}

/// Why it is refused, with the file's name left out.
std::string refusal_of(const std::string& text) {
  try {
    static_cast<void>(read_text(text));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "";
}

constexpr const char* small_machine =
    "heddle_collective_machine: 1\nhosts: 2\nways: {network: {latency_us: 2, rate: 5}}\n";

CollectiveMachine machine_of_papers(const std::string& name) {
  return read_collective_machine(std::string(HEDDLE_CONFIG_FOLDER) + "/machines/" + name);
}

/// Seconds of a broadcast of 32 MiB by chains on the first GPUs of PSG.
double broadcast_on_psg(std::int32_t gpus, replay::RankMap map, std::uint64_t seed = 0) {
  const CollectiveMachine psg = machine_of_papers("psg.yaml");
  replay::VirtualOperation operation;
  operation.kind = collectives::CollectiveKind::broadcast;
  operation.count = std::int64_t{4} << 20U;
  operation.overrides = collectives::overrides_of("chain");
  operation.overrides.fragment_bytes = std::int64_t{256} << 10U;
  const replay::VirtualGroup group(psg, replay::slots_of_ranks(psg, gpus, map, seed));
  return group.run(operation).seconds;
}

}  // namespace

TEST(CollectiveMachineFile, those_of_the_papers_have_their_hosts_and_gpus) {
  const CollectiveMachine psg = machine_of_papers("psg.yaml");
  EXPECT_EQ(psg.slots(), 8 * 4);  // 000 section 5.3
  EXPECT_EQ(CollectiveMachine::reach(psg.place(0), psg.place(1)), Reach::pci_switch);
  EXPECT_EQ(CollectiveMachine::reach(psg.place(1), psg.place(2)), Reach::socket);
  const CollectiveMachine helios = machine_of_papers("helios.yaml");
  EXPECT_EQ(helios.slots(), 4 * 24);  // 002 section 4.3.1
  EXPECT_EQ(helios.place(23).gpu, 7);
  EXPECT_EQ(helios.place(23).socket, 0);
}

TEST(CollectiveMachineFile, a_broadcast_on_psg_does_not_depend_on_hosts_or_map) {
  // 000 Figures 5.5 and 5.6; the card's 5 GB/s are the bound.
  const double bound = 32.0 * (1 << 20) / 5e9;
  const double two_hosts = broadcast_on_psg(8, replay::RankMap::by_core);
  EXPECT_GE(two_hosts, bound);
  EXPECT_LE(broadcast_on_psg(32, replay::RankMap::by_core), 1.1 * two_hosts);
  const double by_core = broadcast_on_psg(24, replay::RankMap::by_core);
  EXPECT_NEAR(broadcast_on_psg(24, replay::RankMap::by_node), by_core, 0.05 * by_core);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_NEAR(broadcast_on_psg(24, replay::RankMap::random, seed), by_core, 0.05 * by_core);
  }
}

TEST(CollectiveMachineFile, says_all_that_a_machine_has) {
  const CollectiveMachine machine = read_text(
      "heddle_collective_machine: 1\nname: deep\nhosts: 3\nsockets: 2\nswitches: 2\ngpus: 3\n"
      "ranks: 4\ncard_socket: 1\nways:\n  gpu: {latency_us: 1, rate: 10}\n"
      "  switch: {latency_us: 2, rate: 20}\n  socket: {latency_us: 3, rate: 30}\n"
      "  host: {latency_us: 4, rate: 40}\n  network: {latency_us: 5, rate: 50}\n"
      "links: {gpu_memory: 1, gpu_lane: 2, switch_lane: 3, socket_link: 4, memory: 5, card: 6}\n"
      "messages: {core_us: 0.5, eager: 4KiB, rendezvous_us: 7}\n"
      "steps: {start_us: 8, reduce_rate: 60, copy_rate: 90}\n");
  EXPECT_EQ(machine.name, "deep");
  EXPECT_EQ(machine.slots(), 3 * 2 * 2 * 3 * 4);
  EXPECT_EQ(machine.card_socket, 1);
  for (std::size_t r = 0; r < replay::reaches; ++r) {
    EXPECT_DOUBLE_EQ(machine.ways.at(r).latency_s, static_cast<double>(r + 1) * 1e-6);
    EXPECT_DOUBLE_EQ(machine.ways.at(r).bytes_per_s, static_cast<double>(r + 1) * 1e10);
  }
  EXPECT_DOUBLE_EQ(machine.links.gpu_memory, 1e9);
  EXPECT_DOUBLE_EQ(machine.links.gpu_lane, 2e9);
  EXPECT_DOUBLE_EQ(machine.links.switch_lane, 3e9);
  EXPECT_DOUBLE_EQ(machine.links.socket_link, 4e9);
  EXPECT_DOUBLE_EQ(machine.links.memory, 5e9);
  EXPECT_DOUBLE_EQ(machine.links.card, 6e9);
  EXPECT_DOUBLE_EQ(machine.message_s, 0.5e-6);
  EXPECT_EQ(machine.eager_bytes, 4096);
  EXPECT_DOUBLE_EQ(machine.rendezvous_s, 7e-6);
  EXPECT_DOUBLE_EQ(machine.step_s, 8e-6);
  EXPECT_DOUBLE_EQ(machine.reduced_bytes_per_s, 60e9);
  EXPECT_DOUBLE_EQ(machine.copied_bytes_per_s, 90e9);
}

TEST(CollectiveMachineFile, needs_only_hosts_and_the_ways_that_there_are) {
  const CollectiveMachine machine = read_text(small_machine);
  EXPECT_EQ(machine.slots(), 2);
  EXPECT_DOUBLE_EQ(machine.way(Reach::network).bytes_per_s, 5e9);
  EXPECT_EQ(machine.name, collective_file());
  const std::string start = "heddle_collective_machine: 1\nhosts: 1\n";
  const auto misses = [&](const std::string& rest, const std::string& way) {
    EXPECT_NE(refusal_of(start + rest).find("the key 'ways." + way + "' is missing"),
              std::string::npos)
        << refusal_of(start + rest);
  };
  misses("ranks: 2\n", "socket");
  misses("gpus: 1\nranks: 2\n", "gpu");
  misses("gpus: 2\n", "switch");
  misses("gpus: 1\nswitches: 2\n", "socket");
  misses("sockets: 2\n", "host");
  EXPECT_NE(refusal_of("heddle_collective_machine: 1\nhosts: 2\nways: {}\n")
                .find("the key 'ways.network' is missing"),
            std::string::npos);
}

TEST(CollectiveMachineFile, what_is_wrong_is_named_with_its_place) {
  const auto refused = [](const std::string& text, const std::string& why) {
    EXPECT_NE(refusal_of(text).find(why), std::string::npos) << refusal_of(text);
  };
  const std::string good = small_machine;
  refused("- 1\n", "'machine' must be a map");
  refused("heddle_simulated_machine: 1\n",
          "it is no machine for collectives: the key 'heddle_collective_machine' is missing");
  refused("heddle_collective_machine: 2\nhosts: 1\n", "must be at most 1; found '2'");
  refused("heddle_collective_machine: 1\n", "the key 'hosts' is missing");
  refused(good + "gpu: 3\n", ":4:1: 'machine' has no key 'gpu'");
  refused(good + "gpu: 3\n", "did you mean 'machine.ways.gpu'?");
  refused(good + "gpuss: 3\n", "did you mean 'gpus'?");
  refused(good + "eagr: 3\n", "did you mean 'machine.messages.eager'?");
  refused(good + "links: {cards: 3}\n", "'links' has no key 'cards'");
  refused(good + "links: {card: 0}\n", "'card' must be positive; found '0'");
  refused(good + "links: {card: 1e9}\n", "'card' must be a rate in GB/s, 1e-3 to 1e6; found '1e9'");
  refused(good + "links: {card: .nan}\n", "'card' must be positive");
  refused(good + "steps: {start_us: -1}\n", "'start_us' must be microseconds, 0 to 1e6");
  refused(good + "steps: {start_us: fast}\n", "'start_us' must be microseconds, 0 to 1e6");
  refused(good + "messages: {eager: much}\n", "'eager': ");
  refused(good + "messages: {eager: 2TiB}\n", "'eager' must be at most 1 TiB; found '2TiB'");
  refused(good + "messages: 3\n", "'messages' must be a map");
  refused(good + "sockets: 0\n", "'sockets' must be at least 1; found '0'");
  refused(good + "card_socket: 1\n", "'card_socket' must be one of the sockets, 0 to 0; found '1'");
  refused(good + "ranks: 5001\n", "the machine has more than 10000 ranks");
  refused(good + "ranks: 10000\nsockets: 10000\ngpus: 10000\nswitches: 10000\n",
          "the machine has more than 10000 ranks");
  refused("heddle_collective_machine: 1\nhosts: 2\nways: {network: {latency_us: 2}}\n",
          "the key 'rate' is missing");
}

}  // namespace heddle
