#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "node-runtime/topology/files/topology_file.hpp"
#include "tests/topology/links/small_topologies.hpp"

namespace heddle::test {
namespace {

struct ShippedRoute {
  const char* topology;
  std::int32_t from;
  std::int32_t to;
  const char* way;
  double rate;
  std::int32_t level;
};

TEST(ShippedTopologies, have_the_routes_of_their_machines) {
  for (const ShippedRoute& one :
       std::vector<ShippedRoute>{{"k80-16", 0, 1, "g0 b0 g1", 4.47, 0},
                                 {"k80-16", 0, 2, "g0 b0 s0 b1 g2", 1.81, 1},
                                 {"k80-16", 0, 4, "g0 b0 s0 m0 s1 b2 g4", 1.06, 2},
                                 {"k80-16", 0, 8, "g0 b0 s0 m0 m1 s2 b4 g8", 1, 3},
                                 {"pcie-8", 0, 3, "g0 s0 g3", 12, 0},
                                 {"pcie-8", 0, 4, "g0 s0 m0 s1 g4", 12, 1},
                                 {"pcie-2x4", 3, 4, "g3 s0 m0 m1 s1 g4", 12, 2},
                                 {"dgx-1v", 0, 3, "g0 g3", 46, 0},
                                 {"dgx-1v", 0, 1, "g0 g1", 23, 0},
                                 {"dgx-1v", 3, 4, "g3 s1 m0 m1 s2 g4", 9, 3},
                                 {"dgx-2", 0, 7, "g0 n0 g7", 138, 0},
                                 {"dgx-2", 0, 8, "g0 n0 n1 g8", 138, 0},
                                 {"hgx-h100-8", 2, 5, "g2 n0 g5", 450, 0},
                                 {"ac922-6", 0, 2, "g0 g2", 46, 0},
                                 {"ac922-6", 0, 3, "g0 m0 m1 g3", 44, 2},
                                 {"pairs-4", 0, 1, "g0 g1", 56, 0},
                                 {"pairs-4", 1, 2, "g1 m0 m1 g2", 24, 2}}) {
    SCOPED_TRACE(one.topology);
    const GpuTopology topology = read_topology(one.topology);
    EXPECT_EQ(topology.name(), one.topology);
    EXPECT_TRUE(topology.is_valid());
    EXPECT_EQ(way(topology, one.from, one.to), one.way);
    const GpuRoute& route = topology.route(GpuId{one.from}, GpuId{one.to});
    EXPECT_DOUBLE_EQ(route.rate, one.rate);
    EXPECT_EQ(route.level, one.level);
  }
}

TEST(ShippedTopologies, have_the_paper_s_levels_on_the_k80_node) {
  const GpuTopology topology = read_topology("k80-16");
  ASSERT_EQ(topology.levels(), 4);
  std::vector<std::int32_t> pairs(4);
  for (std::int32_t from = 0; from < 16; ++from) {
    for (std::int32_t to = 0; to < 16; ++to) {
      if (from != to) {
        ++pairs[static_cast<std::size_t>(topology.route(GpuId{from}, GpuId{to}).level)];
      }
    }
  }
  EXPECT_EQ(pairs, (std::vector<std::int32_t>{16, 32, 64, 128}));
  const double level0 = topology.route(GpuId{0}, GpuId{1}).latency_us;
  EXPECT_NEAR(topology.route(GpuId{0}, GpuId{2}).latency_us / level0, 1.01, 1e-9);
  EXPECT_NEAR(topology.route(GpuId{0}, GpuId{4}).latency_us / level0, 1.17, 1e-9);
  EXPECT_NEAR(topology.route(GpuId{0}, GpuId{8}).latency_us / level0, 1.57, 1e-9);
}

TEST(ShippedTopologies, are_uniform_where_a_switch_joins_all) {
  for (const char* name : {"dgx-2", "hgx-h100-8"}) EXPECT_TRUE(read_topology(name).is_uniform());
  for (const char* name : {"k80-16", "pcie-8", "pcie-2x4", "dgx-1v", "ac922-6", "pairs-4"}) {
    EXPECT_FALSE(read_topology(name).is_uniform()) << name;
  }
}

TEST(ShippedTopologies, know_the_nearest_cards) {
  const GpuTopology topology = read_topology("dgx-1v");
  for (std::int32_t g = 0; g < 8; ++g) {
    EXPECT_EQ(topology.nearest_card(GpuId{g}), CardId{g / 2});
    EXPECT_EQ(topology.domain_of(GpuId{g}), DomainId{g / 4});
  }
  EXPECT_EQ(way(topology, topology.route(GpuId{1}, CardId{3})), "g1 s0 m0 m1 s3 c3");
  EXPECT_FALSE(read_topology("k80-16").nearest_card(GpuId{0}).has_value());
}

}  // namespace
}  // namespace heddle::test
