// What 004 section 5.1 says of its K80 node, and what follows for a DGX-1V.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "node-runtime/topology/files/topology_file.hpp"
#include "node-runtime/topology/mapping/congestion.hpp"
#include "node-runtime/topology/mapping/mapping.hpp"
#include "node-runtime/topology/mapping/phase.hpp"
#include "node-runtime/topology/mapping/random_mappings.hpp"
#include "node-runtime/topology/mapping/traffic_pattern.hpp"

namespace heddle::test {
namespace {

struct Selected {
  Traffic traffic;
  Mapping mapping;
  Mapping in_order;
};

Selected select(const std::string& pattern, const GpuTopology& topology,
                Selection selection = Selection::automatic) {
  Traffic traffic = traffic_of_pattern(pattern);
  Mapping mapping =
      map_traffic(traffic, topology, {.selection = selection, .metric = Metric::bandwidth});
  Mapping in_order =
      map_traffic(traffic, topology, {.selection = Selection::order, .metric = Metric::bandwidth});
  return {std::move(traffic), std::move(mapping), std::move(in_order)};
}

/// Bytes over the busiest link of each level.
std::vector<double> busiest(const Traffic& traffic, const GpuTopology& topology,
                            const Mapping& mapping) {
  std::vector<double> bytes;
  for (const LevelLoad& level : congestion(traffic, topology, mapping).levels) {
    bytes.push_back(level.bytes_max);
  }
  return bytes;
}

TEST(PaperFigures, costs_in_order_over_the_optimum_on_the_k80_node) {
  const GpuTopology topology = read_topology("k80-16");
  struct Case {
    const char* pattern;
    double ratio;
  };
  for (const Case& one : std::vector<Case>{{"2d 4x4", 1.11},
                                           {"2d 4x4 wrap", 1.00},
                                           {"2d 4x4 weight 3", 1.64},
                                           {"2d 4x4 wrap weight 3", 1.55},
                                           {"3d 2x2x4", 1.10},
                                           {"3d 2x2x4 wrap", 1.33},
                                           {"3d 2x2x4 weight 3", 1.67},
                                           {"3d 2x2x4 wrap weight 3", 1.97},
                                           {"alltoall 4x2x2", 2.22}}) {
    const Selected selected = select(one.pattern, topology);
    EXPECT_EQ(selected.mapping.method, MappingMethod::tree_subsets);
    EXPECT_TRUE(selected.mapping.is_optimal);
    EXPECT_EQ(selected.mapping.gap(), 0);
    EXPECT_NEAR(selected.mapping.cost_in_order / selected.mapping.cost, one.ratio, 0.005)
        << one.pattern;
    EXPECT_EQ(selected.mapping.cost_in_order, selected.in_order.cost);
    EXPECT_EQ(selected.in_order.method, MappingMethod::order);
  }
}

TEST(PaperFigures, loads_of_levels_on_the_k80_node) {
  const GpuTopology topology = read_topology("k80-16");
  const Selected plain = select("2d 4x4", topology);
  EXPECT_EQ(busiest(plain.traffic, topology, plain.in_order), (std::vector<double>{4, 5, 8, 4}));
  EXPECT_EQ(busiest(plain.traffic, topology, plain.mapping), (std::vector<double>{4, 5, 4, 4}));
  const Selected weighted = select("3d 2x2x4 weight 3", topology);
  EXPECT_EQ(busiest(weighted.traffic, topology, weighted.in_order),
            (std::vector<double>{6, 9, 16, 24}));
  EXPECT_EQ(busiest(weighted.traffic, topology, weighted.mapping),
            (std::vector<double>{6, 6, 6, 4}));
  EXPECT_NEAR(weighted.mapping.cost_in_order, 71.1, 0.05);
  EXPECT_NEAR(weighted.mapping.cost, 42.7, 0.05);
  EXPECT_EQ(weighted.mapping.largest_load_in_order, 24);
  EXPECT_NEAR(weighted.mapping.largest_load, 5.66, 0.005);
}

TEST(PaperFigures, a_2d_stencil_with_wrap_stays_in_order_on_the_k80_node) {
  const Selected selected = select("2d 4x4 wrap", read_topology("k80-16"));
  EXPECT_EQ(selected.mapping.gpu_of, selected.in_order.gpu_of);
}

TEST(PaperFigures, random_mappings_are_worse_than_order_on_the_k80_node) {
  const GpuTopology topology = read_topology("k80-16");
  for (const auto& [pattern, ratio] : {std::pair{"2d 4x4", 1.50}, {"3d 2x2x4 weight 3", 1.80}}) {
    const Selected selected = select(pattern, topology);
    const RandomMappings random =
        random_mappings(selected.traffic, topology, 1000, {.metric = Metric::bandwidth});
    EXPECT_NEAR(random.mean / selected.mapping.cost, ratio, 0.02) << pattern;
    EXPECT_GT(random.mean, selected.mapping.cost_in_order) << pattern;
    EXPECT_GE(random.best, selected.mapping.cost) << pattern;
    EXPECT_GT(random.deviation, 0) << pattern;
  }
}

TEST(PaperFigures, a_ring_on_the_dgx_1v_goes_over_double_links_only) {
  const GpuTopology topology = read_topology("dgx-1v");
  const Selected selected = select("ring 8", topology);
  EXPECT_EQ(selected.mapping.method, MappingMethod::enumeration);
  EXPECT_TRUE(selected.mapping.is_optimal);
  EXPECT_NEAR(selected.mapping.cost_in_order / selected.mapping.cost, 2.28, 0.005);
  EXPECT_NEAR(selected.mapping.largest_load_in_order / selected.mapping.largest_load, 4.84, 0.005);
  for (std::int32_t i = 0; i < 8; ++i) {
    const GpuRoute& route = topology.route(selected.mapping.gpu_of[SlotId{i}],
                                           selected.mapping.gpu_of[SlotId{(i + 1) % 8}]);
    EXPECT_EQ(route.rate, 46);
  }
  // Nothing shares a link, so the phase is as long as the busiest link is busy.
  EXPECT_NEAR(phase_seconds(selected.traffic, topology, selected.mapping),
              1e-9 * selected.mapping.largest_load, 1e-18);
}

TEST(PaperFigures, scotch_and_exchanges_come_within_two_percent_on_the_dgx_1v) {
  const GpuTopology topology = read_topology("dgx-1v");
  for (const char* pattern : {"ring 8", "2d 2x4", "2d 2x4 wrap", "2d 2x4 weight 3",
                              "3d 2x2x2 weight 3", "alltoall 2x2x2", "alltoall 4x2x1"}) {
    const Selected exact = select(pattern, topology);
    const Selected scotch = select(pattern, topology, Selection::scotch);
    EXPECT_EQ(exact.mapping.method, MappingMethod::enumeration);
    EXPECT_EQ(scotch.mapping.method, MappingMethod::scotch) << scotch.mapping.remark;
    EXPECT_LE(scotch.mapping.cost, exact.mapping.cost * 1.02) << pattern;
    EXPECT_LE(scotch.mapping.lower_bound, exact.mapping.cost * (1 + 1e-9)) << pattern;
  }
}

}  // namespace
}  // namespace heddle::test
