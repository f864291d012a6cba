#include "node-runtime/topology/mapping/metric.hpp"

#include <gtest/gtest.h>

#include "node-runtime/topology/files/topology_file.hpp"
#include "node-runtime/topology/mapping/traffic_pattern.hpp"

namespace heddle::test {
namespace {

double byte_cost(const RouteCosts& costs, std::int32_t from, std::int32_t to) {
  return costs.between(GpuId{from}, GpuId{to}).byte;
}

TEST(Metric, costs_on_the_k80_node_are_the_paper_s_ratios) {
  const GpuTopology topology = read_topology("k80-16");
  const RouteCosts bandwidth(topology, Metric::bandwidth);
  EXPECT_DOUBLE_EQ(byte_cost(bandwidth, 0, 1), 1 / 4.47);
  EXPECT_DOUBLE_EQ(byte_cost(bandwidth, 0, 2), 1 / 1.81);
  EXPECT_DOUBLE_EQ(byte_cost(bandwidth, 0, 4), 1 / 1.06);
  EXPECT_DOUBLE_EQ(byte_cost(bandwidth, 0, 8), 1);
  const RouteCosts latency(topology, Metric::latency);
  EXPECT_NEAR(byte_cost(latency, 0, 1), 1 / 1.57, 1e-12);
  EXPECT_NEAR(byte_cost(latency, 0, 2), 1.01 / 1.57, 1e-12);
  EXPECT_NEAR(byte_cost(latency, 0, 4), 1.17 / 1.57, 1e-12);
  EXPECT_NEAR(byte_cost(latency, 0, 8), 1, 1e-12);
  const RouteCosts distance(topology, Metric::distance);
  for (const auto& [to, cost] : {std::pair{1, 1.0}, {2, 2.0}, {4, 3.0}, {8, 4.0}}) {
    EXPECT_EQ(byte_cost(distance, 0, to), cost);
  }
  EXPECT_EQ(byte_cost(distance, 3, 3), 0);
}

TEST(Metric, costs_on_the_dgx_1v_go_by_measured_pairs) {
  const GpuTopology topology = read_topology("dgx-1v");
  const RouteCosts bandwidth(topology, Metric::bandwidth);
  EXPECT_DOUBLE_EQ(byte_cost(bandwidth, 0, 1), 9.0 / 23);
  EXPECT_DOUBLE_EQ(byte_cost(bandwidth, 0, 3), 9.0 / 46);
  EXPECT_DOUBLE_EQ(byte_cost(bandwidth, 0, 5), 1);
  const RouteCosts time(topology, Metric::time);
  EXPECT_DOUBLE_EQ(byte_cost(time, 0, 5), 1 / 9e9);
  EXPECT_DOUBLE_EQ(time.between(GpuId{0}, GpuId{5}).message, 20e-6);
  EXPECT_DOUBLE_EQ(time.between(GpuId{0}, GpuId{3}).message, 8e-6);
  // From memory of the other socket: s0 -> m0 is not slower than the socket's link.
  EXPECT_DOUBLE_EQ(bandwidth.of(topology.route(GpuId{0}, DomainId{1})).byte, 9.0 / 12);
}

TEST(Metric, pairs_cost_the_same_where_all_are_alike) {
  const GpuTopology topology = read_topology("dgx-2");
  for (const Metric metric : {Metric::time, Metric::bandwidth, Metric::latency, Metric::distance}) {
    const RouteCosts costs(topology, metric);
    EXPECT_EQ(byte_cost(costs, 0, 1), byte_cost(costs, 0, 15)) << name_of(metric);
    EXPECT_EQ(costs.between(GpuId{0}, GpuId{1}).message,
              costs.between(GpuId{0}, GpuId{15}).message);
  }
  EXPECT_NEAR(byte_cost(RouteCosts(topology, Metric::bandwidth), 0, 9), 1, 1e-12);
}

TEST(Metric, automatic_is_time_where_messages_are_counted) {
  EXPECT_EQ(metric_for(Metric::automatic, traffic_of_pattern("ring 8")), Metric::bandwidth);
  EXPECT_EQ(metric_for(Metric::automatic, traffic_of_pattern("ring 8 bytes 1MiB")), Metric::time);
  EXPECT_EQ(metric_for(Metric::distance, traffic_of_pattern("ring 8")), Metric::distance);
}

}  // namespace
}  // namespace heddle::test
