#include "node-runtime/topology/mapping/congestion.hpp"

#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>

#include "base/error.hpp"
#include "node-runtime/topology/files/topology_file.hpp"
#include "node-runtime/topology/mapping/phase.hpp"
#include "node-runtime/topology/mapping/traffic_pattern.hpp"
#include "tests/support/seeds.hpp"
#include "tests/topology/mapping/problems.hpp"

namespace heddle::test {
namespace {

Mapping in_order(const Traffic& traffic, const GpuTopology& topology) {
  return map_traffic(traffic, topology, {.selection = Selection::order});
}

/// Bytes of each link that carries any.
std::map<std::string, double> loaded_links(const Traffic& traffic, const GpuTopology& topology,
                                           const Mapping& mapping) {
  std::map<std::string, double> bytes;
  const Congestion loads = congestion(traffic, topology, mapping);
  for (std::size_t l = 0; l < loads.links.size(); ++l) {
    const TopologyLinkId id{static_cast<std::int32_t>(l)};
    if (loads.links[l].bytes > 0) bytes[topology.name_of(id)] = loads.links[l].bytes;
  }
  return bytes;
}

using Links = std::map<std::string, double>;

/// Each of the pairs sends its bytes, in order.
struct Sent {
  std::int32_t from;
  std::int32_t to;
  double bytes;
};

Links loads_of(const char* name, std::initializer_list<Sent> all) {
  const GpuTopology topology = read_topology(name);
  Traffic traffic(topology.gpus());
  for (const Sent& one : all) traffic.add(SlotId{one.from}, SlotId{one.to}, {one.bytes, 0});
  return loaded_links(traffic, topology, in_order(traffic, topology));
}

TEST(Congestion, goes_along_the_routes_of_each_shipped_topology) {
  EXPECT_EQ(loads_of("k80-16", {{0, 1, 1}, {0, 5, 10}, {15, 0, 100}}), (Links{{"g0 -> b0", 11},
                                                                              {"b0 -> g1", 1},
                                                                              {"b0 -> s0", 10},
                                                                              {"s0 -> m0", 10},
                                                                              {"m0 -> s1", 10},
                                                                              {"s1 -> b2", 10},
                                                                              {"b2 -> g5", 10},
                                                                              {"g15 -> b7", 100},
                                                                              {"b7 -> s3", 100},
                                                                              {"s3 -> m1", 100},
                                                                              {"m1 -> m0", 100},
                                                                              {"m0 -> s0", 100},
                                                                              {"s0 -> b0", 100},
                                                                              {"b0 -> g0", 100}}));
  EXPECT_EQ(loads_of("pcie-8", {{0, 1, 1}, {0, 4, 10}}), (Links{{"g0 -> s0", 11},
                                                                {"s0 -> g1", 1},
                                                                {"s0 -> m0", 10},
                                                                {"m0 -> s1", 10},
                                                                {"s1 -> g4", 10}}));
  EXPECT_EQ(loads_of("pcie-2x4", {{0, 4, 1}, {1, 4, 10}}), (Links{{"g0 -> s0", 1},
                                                                  {"g1 -> s0", 10},
                                                                  {"s0 -> m0", 11},
                                                                  {"m0 -> m1", 11},
                                                                  {"m1 -> s1", 11},
                                                                  {"s1 -> g4", 11}}));
  EXPECT_EQ(loads_of("dgx-1v", {{0, 3, 1}, {3, 4, 10}}), (Links{{"g0 -> g3", 1},
                                                                {"g3 -> s1", 10},
                                                                {"s1 -> m0", 10},
                                                                {"m0 -> m1", 10},
                                                                {"m1 -> s2", 10},
                                                                {"s2 -> g4", 10}}));
  EXPECT_EQ(loads_of("dgx-2", {{0, 1, 1}, {0, 8, 10}}),
            (Links{{"g0 -> n0", 11}, {"n0 -> g1", 1}, {"n0 -> n1", 10}, {"n1 -> g8", 10}}));
  EXPECT_EQ(loads_of("hgx-h100-8", {{0, 7, 1}}), (Links{{"g0 -> n0", 1}, {"n0 -> g7", 1}}));
  EXPECT_EQ(loads_of("ac922-6", {{0, 1, 1}, {2, 3, 10}}),
            (Links{{"g0 -> g1", 1}, {"g2 -> m0", 10}, {"m0 -> m1", 10}, {"m1 -> g3", 10}}));
  EXPECT_EQ(loads_of("pairs-4", {{0, 1, 1}, {0, 2, 10}}),
            (Links{{"g0 -> g1", 1}, {"g0 -> m0", 10}, {"m0 -> m1", 10}, {"m1 -> g2", 10}}));
}

TEST(Congestion, counts_host_memory_and_other_hosts) {
  const GpuTopology topology = read_topology("dgx-1v");
  Traffic traffic(2);
  traffic.slot(SlotId{0}).from_host = {1, 0};
  traffic.slot(SlotId{1}).to_host = {10, 0};
  traffic.slot(SlotId{1}).to_network = {100, 0};
  MapOptions options{.selection = Selection::order};
  options.domains = {DomainId{1}, DomainId{0}};
  EXPECT_EQ(loaded_links(traffic, topology, map_traffic(traffic, topology, options)),
            (Links{{"m1 -> m0", 1},
                   {"m0 -> s0", 1},
                   {"s0 -> g0", 1},
                   {"g1 -> s0", 110},
                   {"s0 -> m0", 10},
                   {"s0 -> c0", 100}}));
}

TEST(Congestion, sums_up_levels_and_names_the_worst_link) {
  const GpuTopology topology = read_topology("k80-16");
  const Traffic traffic = traffic_of_pattern("3d 2x2x4 weight 3");
  const Congestion loads = congestion(traffic, topology, in_order(traffic, topology));
  ASSERT_EQ(loads.levels.size(), 4);
  EXPECT_EQ(loads.levels[3].bytes_max, 24);
  EXPECT_EQ(loads.levels[3].bytes_sum, 48);
  EXPECT_DOUBLE_EQ(loads.levels[2].load_max, 16 / 1.06);
  EXPECT_EQ(loads.largest, 24);
  EXPECT_EQ(topology.name_of(loads.worst), "m0 -> m1");
}

TEST(Congestion, conserves_bytes_times_links) {
  const std::vector<std::string_view> names = shipped_topologies();
  for (const std::uint64_t seed : simulation::seeds(60)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    const GpuTopology topology = read_topology(std::string(names[seed % names.size()]));
    Traffic traffic(1 + below(random, 2 * topology.gpus()));
    for (std::int32_t i = 0; i < traffic.slots(); ++i) {
      traffic.slot(SlotId{i}).to_host = {1.0 + below(random, 9), 1};
      for (std::int32_t j = 0; j < traffic.slots(); ++j) {
        if (i != j) traffic.add(SlotId{i}, SlotId{j}, {1.0 + below(random, 99), 1});
      }
    }
    const Mapping mapping = in_order(traffic, topology);
    double expected = 0;
    for (std::int32_t i = 0; i < traffic.slots(); ++i) {
      const GpuId gpu = mapping.gpu_of[SlotId{i}];
      const auto hops =
          static_cast<double>(topology.route(gpu, topology.domain_of(gpu)).links.size());
      expected += hops * traffic.slot(SlotId{i}).to_host.bytes;
      for (std::int32_t j = 0; j < traffic.slots(); ++j) {
        const GpuId other = mapping.gpu_of[SlotId{j}];
        expected += traffic.flow(SlotId{i}, SlotId{j}).bytes *
                    static_cast<double>(topology.route(gpu, other).links.size());
      }
    }
    const Congestion loads = congestion(traffic, topology, mapping);
    EXPECT_NEAR(loads.byte_hops(), expected, 1e-9 * expected);
    EXPECT_NEAR(loads.largest, mapping.largest_load, 1e-9 * loads.largest);
    double sum = 0;
    for (const LevelLoad& level : loads.levels) sum += level.bytes_sum;
    EXPECT_NEAR(sum, expected, 1e-9 * expected);
    // The phase cannot end before the busiest link has carried its bytes.
    EXPECT_GE(phase_seconds(traffic, topology, mapping), 1e-9 * loads.largest * (1 - 1e-9));
  }
}

TEST(Congestion, refuses_a_mapping_of_something_else) {
  const GpuTopology topology = read_topology("pairs-4");
  const Traffic traffic = traffic_of_pattern("ring 4");
  const Mapping mapping = in_order(traffic, topology);
  EXPECT_THROW(static_cast<void>(congestion(traffic_of_pattern("ring 3"), topology, mapping)),
               Error);
  Mapping wrong = mapping;
  wrong.gpu_of[SlotId{0}] = GpuId{4};
  EXPECT_THROW(static_cast<void>(congestion(traffic, topology, wrong)), Error);
  EXPECT_THROW(static_cast<void>(phase_seconds(traffic, topology, wrong)), Error);
}

TEST(Phase, shares_links_fairly) {
  const GpuTopology topology = read_topology("pcie-2x4");
  const auto seconds = [&](std::initializer_list<Sent> all, double messages) {
    Traffic traffic(8);
    for (const Sent& one : all)
      traffic.add(SlotId{one.from}, SlotId{one.to}, {one.bytes, messages});
    return phase_seconds(traffic, topology, in_order(traffic, topology));
  };
  // Alone: 12 GB/s; 8 us for each message.
  EXPECT_NEAR(seconds({{0, 1, 12e6}}, 0), 1e-3, 1e-12);
  EXPECT_NEAR(seconds({{0, 1, 12e6}}, 2), 1e-3 + 16e-6, 1e-12);
  // Two share what leaves GPU 0; a third one has its own links.
  EXPECT_NEAR(seconds({{0, 1, 12e6}, {0, 2, 12e6}, {3, 0, 12e6}}, 0), 2e-3, 1e-12);
  // The short one ends after 1 ms at 6 GB/s, then the long one has all 12: (18 - 6) / 12 ms more.
  EXPECT_NEAR(seconds({{0, 1, 6e6}, {0, 2, 18e6}}, 0), 2e-3, 1e-12);
  // Both directions of a link are two links.
  EXPECT_NEAR(seconds({{0, 1, 12e6}, {1, 0, 12e6}}, 0), 1e-3, 1e-12);
  EXPECT_EQ(seconds({}, 0), 0);
}

TEST(Phase, is_bounded_by_the_slowest_pair_and_link) {
  const GpuTopology topology = read_topology("dgx-1v");
  Traffic traffic(8);
  traffic.add(SlotId{3}, SlotId{4}, {9e6, 0});  // a measured pair of 9 GB/s on links of 12
  EXPECT_NEAR(phase_seconds(traffic, topology, in_order(traffic, topology)), 1e-3, 1e-12);
  traffic.add(SlotId{2}, SlotId{4}, {9e6, 0});  // shares s1 -> m0
  EXPECT_NEAR(phase_seconds(traffic, topology, in_order(traffic, topology)), 1.5e-3, 1e-12);
}

}  // namespace
}  // namespace heddle::test
