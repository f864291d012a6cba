#include "replay/collectives/virtual_group.hpp"

#include <gtest/gtest.h>

namespace heddle::replay {
namespace {

using collectives::CollectiveKind;

CollectiveMachine cluster_of(std::int32_t hosts, std::int32_t ranks) {
  CollectiveMachine machine;
  machine.hosts = hosts;
  machine.ranks = ranks;
  machine.ways.fill({1e-6, 10e9});
  machine.ways.back() = {2e-6, 5e9};
  machine.links.card = 5e9;
  machine.links.memory = 10e9;
  machine.message_s = 0.2e-6;
  machine.eager_bytes = 4096;
  machine.rendezvous_s = 1e-6;
  machine.step_s = 0.1e-6;
  return machine;
}

VirtualGroup group_of(const CollectiveMachine& machine, RankMap map = RankMap::by_core) {
  return {machine, slots_of_ranks(machine, static_cast<std::int32_t>(machine.slots()), map, 1)};
}

}  // namespace

TEST(VirtualGroup, runs_every_operation_and_algorithm_on_any_map) {
  const CollectiveMachine machine = cluster_of(5, 3);
  for (const RankMap map : {RankMap::by_core, RankMap::by_node, RankMap::random}) {
    const VirtualGroup group = group_of(machine, map);
    for (int kind = 0; kind <= static_cast<int>(CollectiveKind::exclusive_scan); ++kind) {
      for (const char* const algorithm : {"auto", "flat", "chain", "binary", "binomial",
                                          "split_binary", "scatter_gather", "leaders", "bruck"}) {
        for (const std::int64_t count : {1, 100'000}) {
          VirtualOperation operation;
          operation.kind = static_cast<CollectiveKind>(kind);
          operation.count = count;
          operation.overrides = collectives::overrides_of(algorithm);
          const VirtualOutcome outcome = group.run(operation);
          // Each rank but one receives something, over the network from another host.
          EXPECT_GE(outcome.messages, 14);
          EXPECT_GE(outcome.seconds, 2.4e-6) << kind << " " << algorithm;
          EXPECT_LE(outcome.busiest_share, 1.0 + 1e-9);
          EXPECT_EQ(group.run(operation).seconds, outcome.seconds);
        }
      }
    }
  }
}

TEST(VirtualGroup, a_long_broadcast_takes_what_its_busiest_link_takes) {
  VirtualOperation operation;
  operation.kind = CollectiveKind::broadcast;
  operation.count = std::int64_t{4} << 20U;  // 32 MiB
  operation.overrides = collectives::overrides_of("chain");
  operation.overrides.fragment_bytes = std::int64_t{512} << 10U;
  const CollectiveMachine machine = cluster_of(4, 1);
  const VirtualOutcome outcome = group_of(machine).run(operation);
  const double once = 32.0 * (1 << 20) / 5e9;
  EXPECT_GE(outcome.seconds, once * (1 + 2.0 / 64));
  EXPECT_LE(outcome.seconds, once * (1 + 3.0 / 64));
  EXPECT_EQ(outcome.busiest.substr(0, 13), "card of host ");
  EXPECT_GE(outcome.busiest_share, 0.9);
}

TEST(VirtualGroup, a_group_of_ten_thousand_sums_a_number) {
  const CollectiveMachine machine = cluster_of(1000, 10);
  VirtualOperation operation;
  operation.kind = CollectiveKind::all_reduce;
  operation.count = 1;
  const VirtualOutcome outcome = group_of(machine).run(operation);
  // Up and down: a thousand hosts need ten rounds of the network, ten ranks four of memory.
  EXPECT_GE(outcome.seconds, 2 * (10 * 2.4e-6 + 4 * 1.4e-6) * 0.5);
  EXPECT_LE(outcome.seconds, 1e-3);
}

}  // namespace heddle::replay
