#include "node-runtime/topology/links/gpu_topology.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/topology/links/small_topologies.hpp"

namespace heddle::test {
namespace {

TEST(GpuTopology, ways_between_peers_turn_at_their_nearest_common_vertex) {
  const GpuTopology topology = three_gpus().topology();
  EXPECT_TRUE(topology.is_valid());
  EXPECT_EQ(way(topology, 0, 1), "g0 s0 g1");
  EXPECT_EQ(way(topology, 1, 0), "g1 s0 g0");
  EXPECT_EQ(way(topology, 0, 2), "g0 s0 m0 m1 g2");
  const GpuRoute& near = topology.route(GpuId{0}, GpuId{1});
  EXPECT_EQ(near.rate, 6);
  EXPECT_EQ(near.latency_us, 8);
  const GpuRoute& far = topology.route(GpuId{0}, GpuId{2});
  EXPECT_EQ(far.rate, 10);
  EXPECT_EQ(far.latency_us, 11);
}

TEST(GpuTopology, peers_without_access_go_through_host_memory) {
  PartsBuilder builder = three_gpus();
  builder.parts().peers_without_nvlink = PeerWay::host;
  const GpuTopology topology = builder.topology();
  EXPECT_EQ(way(topology, 0, 1), "g0 s0 m0 s0 g1");
  EXPECT_EQ(topology.route(GpuId{0}, GpuId{1}).latency_us, 10);
  EXPECT_EQ(topology.route(GpuId{0}, GpuId{1}).level, 1);
}

TEST(GpuTopology, ways_to_domains_and_cards_go_along_the_tree) {
  const GpuTopology topology = three_gpus().topology();
  EXPECT_EQ(way(topology, topology.route(GpuId{0}, DomainId{1})), "g0 s0 m0 m1");
  EXPECT_EQ(way(topology, topology.route(DomainId{1}, GpuId{0})), "m1 m0 s0 g0");
  EXPECT_EQ(way(topology, topology.route(GpuId{1}, CardId{0})), "g1 s0 c0");
  EXPECT_EQ(way(topology, topology.route(CardId{0}, GpuId{2})), "c0 s0 m0 m1 g2");
  EXPECT_EQ(topology.domain_of(GpuId{1}), DomainId{0});
  EXPECT_EQ(topology.domain_of(GpuId{2}), DomainId{1});
  EXPECT_EQ(topology.nearest_card(GpuId{2}), CardId{0});
}

TEST(GpuTopology, levels_are_heights_of_the_highest_link) {
  const GpuTopology topology = three_gpus().topology();
  EXPECT_EQ(topology.levels(), 3);
  EXPECT_EQ(topology.route(GpuId{0}, GpuId{1}).level, 0);
  EXPECT_EQ(topology.route(GpuId{0}, GpuId{2}).level, 2);
  EXPECT_EQ(topology.route(GpuId{0}, DomainId{0}).level, 1);
}

TEST(GpuTopology, nvlinks_are_level_0_and_all_others_are_above) {
  PartsBuilder builder = three_gpus();
  builder.link(VertexId{1}, VertexId{2}, LinkKind::nvlink, 23, 8, 2);
  const GpuTopology topology = builder.topology();
  EXPECT_EQ(topology.levels(), 4);
  EXPECT_EQ(way(topology, 1, 2), "g1 g2");
  EXPECT_EQ(topology.route(GpuId{1}, GpuId{2}).rate, 46);
  EXPECT_EQ(topology.route(GpuId{1}, GpuId{2}).level, 0);
  EXPECT_EQ(topology.route(GpuId{0}, GpuId{1}).level, 1);
  // A GPU hands on nothing: there is no way from 0 over 1 to 2.
  EXPECT_EQ(way(topology, 0, 2), "g0 s0 m0 m1 g2");
}

TEST(GpuTopology, of_paths_with_as_many_links_the_faster_one_is_taken) {
  PartsBuilder builder = three_gpus();
  const VertexId slow = builder.add(VertexKind::switch_chip, "n0");
  const VertexId fast = builder.add(VertexKind::switch_chip, "n1");
  for (const auto& [chip, rate] : {std::pair{slow, 20.0}, std::pair{fast, 25.0}}) {
    builder.link(VertexId{0}, chip, LinkKind::nvlink, rate);
    builder.link(VertexId{2}, chip, LinkKind::nvlink, rate);
  }
  EXPECT_EQ(way(builder.topology(), 0, 2), "g0 n1 g2");
}

TEST(GpuTopology, measured_pairs_replace_rates_and_leave_the_links) {
  PartsBuilder builder = three_gpus();
  builder.parts().pairs.push_back({GpuId{0}, GpuId{2}, 5, 20});
  const GpuTopology topology = builder.topology();
  EXPECT_EQ(topology.route(GpuId{0}, GpuId{2}).rate, 5);
  EXPECT_EQ(topology.route(GpuId{0}, GpuId{2}).latency_us, 20);
  EXPECT_EQ(topology.route(GpuId{2}, GpuId{0}).rate, 10);
  EXPECT_EQ(way(topology, 0, 2), "g0 s0 m0 m1 g2");
}

TEST(GpuTopology, is_uniform_where_pairs_are_alike_within_five_percent) {
  PartsBuilder builder(3);
  const VertexId domain = builder.add(VertexKind::domain, "m0");
  for (std::int32_t g = 0; g < 3; ++g) builder.link(VertexId{g}, domain, LinkKind::pcie, 12, 4);
  EXPECT_TRUE(builder.topology().is_uniform());
  builder.parts().pairs.push_back({GpuId{0}, GpuId{1}, 11.5, 8});
  EXPECT_TRUE(builder.topology().is_uniform());
  EXPECT_FALSE(builder.topology().is_uniform(0.01));
  builder.parts().pairs.back().rate = 11;
  EXPECT_FALSE(builder.topology().is_uniform());
}

TEST(GpuTopology, refuses_indices_that_are_not_there) {
  const GpuTopology topology = three_gpus().topology();
  EXPECT_THROW(static_cast<void>(topology.route(GpuId{0}, GpuId{3})), Error);
  EXPECT_THROW(static_cast<void>(topology.route(GpuId{-1}, DomainId{0})), Error);
  EXPECT_THROW(static_cast<void>(topology.route(GpuId{0}, CardId{1})), Error);
}

}  // namespace
}  // namespace heddle::test
