#include "replay/collectives/collective_machine.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "base/error.hpp"

namespace heddle::replay {
namespace {

using collectives::RankPlace;

/// Two hosts of two sockets, each with two switches of two GPUs with two ranks.
CollectiveMachine deep() {
  CollectiveMachine machine;
  machine.hosts = 2;
  machine.sockets = 2;
  machine.switches = 2;
  machine.gpus = 2;
  machine.ranks = 2;
  machine.links = {
      .gpu_memory = 1, .gpu_lane = 1, .switch_lane = 1, .socket_link = 1, .memory = 1, .card = 1};
  return machine;
}

std::vector<std::string> path(const CollectiveMachine& machine, std::int32_t from,
                              std::int32_t to) {
  LinkShares shares;
  MachineLinks links(machine, shares);
  std::vector<std::string> names;
  for (const LinkId link : links.path(machine.place(from), machine.place(to))) {
    names.push_back(links.describe(link));
  }
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST(CollectiveMachine, slots_go_by_gpu_switch_socket_and_host) {
  const CollectiveMachine machine = deep();
  EXPECT_TRUE(machine.is_valid());
  EXPECT_EQ(machine.slots(), 32);
  const RankPlace last = machine.place(31);
  EXPECT_EQ(last.host, 1);
  EXPECT_EQ(last.socket, 1);
  EXPECT_EQ(last.pci_switch, 3);
  EXPECT_EQ(last.gpu, 7);
  const auto reach = [&](std::int32_t a, std::int32_t b) {
    return CollectiveMachine::reach(machine.place(a), machine.place(b));
  };
  EXPECT_EQ(reach(0, 1), Reach::gpu);
  EXPECT_EQ(reach(0, 2), Reach::pci_switch);
  EXPECT_EQ(reach(0, 4), Reach::socket);
  EXPECT_EQ(reach(0, 8), Reach::host);
  EXPECT_EQ(reach(0, 16), Reach::network);
  CollectiveMachine cores;
  cores.sockets = 2;
  cores.ranks = 3;
  EXPECT_EQ(cores.place(4).gpu, RankPlace::no_gpu);
  EXPECT_EQ(cores.place(4).socket, 1);
  EXPECT_EQ(CollectiveMachine::reach(cores.place(0), cores.place(1)), Reach::socket);
}

TEST(CollectiveMachine, messages_pass_the_links_between_their_ranks) {
  CollectiveMachine machine = deep();
  EXPECT_EQ(path(machine, 0, 1), (Names{"memory of GPU 0 of host 0"}));
  EXPECT_EQ(path(machine, 0, 2),
            (Names{"lane of GPU 0 of host 0, out", "lane of GPU 1 of host 0, in"}));
  EXPECT_EQ(path(machine, 2, 4),
            (Names{"lane of GPU 1 of host 0, out", "lane of switch 0 of host 0, out",
                   "lane of switch 1 of host 0, in", "lane of GPU 2 of host 0, in"}));
  EXPECT_EQ(path(machine, 0, 8),
            (Names{"lane of GPU 0 of host 0, out", "lane of switch 0 of host 0, out",
                   "link of socket 0 of host 0, out", "link of socket 1 of host 0, in",
                   "lane of switch 2 of host 0, in", "lane of GPU 4 of host 0, in"}));
  EXPECT_EQ(path(machine, 0, 31),
            (Names{"lane of GPU 0 of host 0, out", "lane of switch 0 of host 0, out",
                   "card of host 0, out", "card of host 1, in", "link of socket 0 of host 1, out",
                   "link of socket 1 of host 1, in", "lane of switch 3 of host 1, in",
                   "lane of GPU 7 of host 1, in"}));
  machine.links = {.gpu_lane = 1};
  EXPECT_EQ(path(machine, 0, 31),
            (Names{"lane of GPU 0 of host 0, out", "lane of GPU 7 of host 1, in"}));
  machine.gpus = 0;
  machine.links = {.socket_link = 1, .memory = 1, .card = 1};
  EXPECT_EQ(path(machine, 0, 1), (Names{"memory of socket 0 of host 0"}));
  EXPECT_EQ(path(machine, 0, 2),
            (Names{"link of socket 0 of host 0, out", "link of socket 1 of host 0, in",
                   "memory of socket 1 of host 0"}));
  EXPECT_EQ(path(machine, 0, 4), (Names{"card of host 0, out", "card of host 1, in"}));
}

TEST(CollectiveMachine, choices_are_made_by_latency_and_both_cores) {
  CollectiveMachine machine = deep();
  machine.ways = {{{1, 10}, {2, 20}, {3, 30}, {4, 40}, {5, 50}}};
  machine.message_s = 0.5;
  machine.eager_bytes = 100;
  machine.rendezvous_s = 7;
  machine.reduced_bytes_per_s = 9;
  const collectives::CollectiveRates rates = machine.rates();
  EXPECT_DOUBLE_EQ(rates.levels[0].seconds(100), 1 + 1 + 10);
  EXPECT_DOUBLE_EQ(rates.levels[2].seconds(100), 4 + 1 + 2.5);
  EXPECT_DOUBLE_EQ(rates.levels[3].seconds(200), 5 + 1 + 7 + 4);
  EXPECT_DOUBLE_EQ(rates.reduced_bytes_per_s, 9);
  machine.sockets = 1;
  EXPECT_DOUBLE_EQ(machine.rates().levels[2].seconds(60), 3 + 1 + 2);
  machine.switches = 1;
  EXPECT_DOUBLE_EQ(machine.rates().levels[2].seconds(60), 2 + 1 + 3);
}

TEST(CollectiveMachine, ranks_are_dealt_by_core_by_node_or_at_random) {
  CollectiveMachine machine;
  machine.hosts = 4;
  machine.ranks = 2;
  using Slots = std::vector<std::int32_t>;
  EXPECT_EQ(slots_of_ranks(machine, 6, RankMap::by_core, 0), (Slots{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(slots_of_ranks(machine, 6, RankMap::by_node, 0), (Slots{0, 2, 4, 1, 3, 5}));
  std::set<Slots> drawn;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Slots slots = slots_of_ranks(machine, 8, RankMap::random, seed);
    EXPECT_EQ(slots, slots_of_ranks(machine, 8, RankMap::random, seed));
    EXPECT_TRUE(std::ranges::is_permutation(slots, Slots{0, 1, 2, 3, 4, 5, 6, 7}));
    drawn.insert(slots);
  }
  EXPECT_GE(drawn.size(), 19U);  // of 40320
  EXPECT_THROW(static_cast<void>(slots_of_ranks(machine, 9, RankMap::by_core, 0)), Error);
  EXPECT_THROW(static_cast<void>(slots_of_ranks(machine, 0, RankMap::by_core, 0)), Error);
}

}  // namespace heddle::replay
