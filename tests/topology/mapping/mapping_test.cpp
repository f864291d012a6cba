#include "node-runtime/topology/mapping/mapping.hpp"

#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <string>

#include "base/error.hpp"
#include "node-runtime/topology/files/topology_file.hpp"
#include "node-runtime/topology/mapping/congestion.hpp"
#include "node-runtime/topology/mapping/random_mappings.hpp"
#include "node-runtime/topology/mapping/traffic_pattern.hpp"
#include "tests/support/seeds.hpp"
#include "tests/topology/mapping/problems.hpp"

namespace heddle::test {
namespace {

std::vector<std::int32_t> gpus_of(const Mapping& mapping) {
  std::vector<std::int32_t> gpus;
  for (const GpuId gpu : mapping.gpu_of) gpus.push_back(gpu.value());
  return gpus;
}

Traffic random_traffic(std::mt19937_64& random, std::int32_t slots, std::int32_t devices) {
  std::vector<SlotTraffic> all;
  for (std::int32_t i = 0; i < slots; ++i) {
    SlotTraffic one;
    one.node = i / devices;
    one.device = i % devices;
    one.from_host = {1.0 * below(random, 50), 1};
    one.to_network = {1.0 * below(random, 50), 1};
    all.push_back(one);
  }
  Traffic traffic(all);
  for (std::int32_t i = 0; i < slots; ++i) {
    for (std::int32_t j = 0; j < slots; ++j) {
      if (i != j && below(random, 2) == 0)
        traffic.add(SlotId{i}, SlotId{j}, {1.0 + below(random, 1000), 1});
    }
  }
  return traffic;
}

using Wrong = std::pair<const char*, std::function<void(MapOptions&)>>;

TEST(Mapping, every_one_has_the_capacities_and_rules) {
  const std::vector<std::string_view> names = shipped_topologies();
  for (const std::uint64_t seed : simulation::seeds(60)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    const GpuTopology topology = read_topology(std::string(names[seed % names.size()]));
    const std::int32_t devices = 1 + below(random, 3);
    const Traffic traffic = random_traffic(random, 1 + below(random, 2 * topology.gpus()), devices);
    MapOptions options;
    options.metric = static_cast<Metric>(below(random, 5));
    options.objective = static_cast<Objective>(below(random, 2));
    options.seed = seed;
    const Mapping mapping = map_traffic(traffic, topology, options);
    std::vector<std::int32_t> taken(static_cast<std::size_t>(topology.gpus()));
    std::set<std::pair<std::int32_t, GpuId>> of_nodes;
    for (std::int32_t i = 0; i < traffic.slots(); ++i) {
      ++taken[static_cast<std::size_t>(mapping.gpu_of[SlotId{i}].value())];
      of_nodes.insert({traffic.slot(SlotId{i}).node, mapping.gpu_of[SlotId{i}]});
    }
    EXPECT_LE(std::ranges::max(taken) - std::ranges::min(taken), 1);
    EXPECT_EQ(of_nodes.size(), static_cast<std::size_t>(traffic.slots()));
    EXPECT_LE(mapping.value(), mapping.value_in_order() * (1 + 1e-9));
    EXPECT_LE(mapping.lower_bound, mapping.value());
    EXPECT_NEAR(congestion(traffic, topology, mapping).largest, mapping.largest_load,
                1e-9 * mapping.largest_load);
    // The same again, with others in between.
    const Mapping again = map_traffic(traffic, topology, options);
    EXPECT_EQ(again.gpu_of, mapping.gpu_of);
    EXPECT_EQ(again.cost, mapping.cost);
  }
}

TEST(Mapping, order_stays_where_all_is_alike) {
  for (const char* pattern : {"ring 16", "3d 2x2x4 weight 3", "2d 4x4 wrap bytes 1MiB"}) {
    const Mapping mapping = map_traffic(traffic_of_pattern(pattern), read_topology("dgx-2"));
    for (std::int32_t i = 0; i < 16; ++i) EXPECT_EQ(mapping.gpu_of[SlotId{i}], GpuId{i});
    EXPECT_TRUE(mapping.is_optimal);
  }
}

TEST(Mapping, order_stays_within_the_share_that_is_asked_for) {
  const GpuTopology topology = read_topology("k80-16");
  const Traffic traffic = traffic_of_pattern("2d 4x4");  // order costs 11 % more
  const Mapping strict = map_traffic(traffic, topology, {.order_within = 0.10});
  EXPECT_LT(strict.cost, strict.cost_in_order);
  const Mapping lenient = map_traffic(traffic, topology, {.order_within = 0.12});
  EXPECT_EQ(lenient.cost, lenient.cost_in_order);
  EXPECT_FALSE(lenient.is_optimal);
  EXPECT_DOUBLE_EQ(lenient.lower_bound, strict.cost);
  EXPECT_NEAR(lenient.gap(), 0.1118, 1e-4);
}

TEST(Mapping, of_equal_costs_the_lower_largest_link_wins) {
  // By distance all pairs of different sockets cost the same. In order slots 0 and 1 both send to
  // the other socket over a slow link.
  const GpuTopology topology = topology_from_yaml(R"(heddle_topology: 1
name: t
gpus: 4
numa: {m0: [g0, g1, g2], m1: [g3]}
switches: [s0, s1, s2]
links:
  - {between: [g0, s0], kind: pcie, rate: 10}
  - {between: [g1, s1], kind: pcie, rate: 2}
  - {between: [g2, s2], kind: pcie, rate: 10}
  - {between: [s0, m0], kind: pcie, rate: 10}
  - {between: [s1, m0], kind: pcie, rate: 10}
  - {between: [s2, m0], kind: pcie, rate: 10}
  - {between: [g3, m1], kind: pcie, rate: 10}
  - {between: [m0, m1], kind: socket, rate: 10}
peers_without_nvlink: pcie
)",
                                                  "t.yaml");
  Traffic traffic(4);
  traffic.add(SlotId{1}, SlotId{3}, {10, 1});
  traffic.add(SlotId{0}, SlotId{1}, {1, 1});
  const Mapping mapping = map_traffic(traffic, topology, {.metric = Metric::distance});
  EXPECT_EQ(mapping.largest_load_in_order, 5);
  EXPECT_LT(mapping.largest_load, 2);
  EXPECT_TRUE(mapping.is_optimal);
}

TEST(Mapping, host_memory_and_cards_decide_where_gpus_are_alike) {
  const GpuTopology topology = read_topology("hgx-h100-8");
  Traffic traffic(2);
  traffic.add(SlotId{0}, SlotId{1}, {1000, 1});
  traffic.slot(SlotId{0}).from_host = {100, 1};
  MapOptions options;
  options.domains = {DomainId{1}, DomainId{0}};
  const Mapping mapping = map_traffic(traffic, topology, options);
  EXPECT_EQ(topology.domain_of(mapping.gpu_of[SlotId{0}]), DomainId{1});
  EXPECT_EQ(mapping.domain_of[SlotId{0}], DomainId{1});

  // A card on the second socket only.
  const GpuTopology one_card = topology_from_yaml(R"(heddle_topology: 1
name: t
gpus: 2
numa: {m0: [g0], m1: [g1]}
cards: [c0]
links:
  - {between: [g0, m0], kind: pcie, rate: 10}
  - {between: [g1, m1], kind: pcie, rate: 10}
  - {between: [c0, m1], kind: pcie, rate: 10}
  - {between: [m0, m1], kind: socket, rate: 5}
)",
                                                  "t.yaml");
  Traffic outward(2);
  outward.slot(SlotId{0}).to_network = {100, 0};
  EXPECT_EQ(gpus_of(map_traffic(outward, one_card)), (std::vector<std::int32_t>{1, 0}));
}

TEST(Mapping, busy_gpus_stay_free_first) {
  const GpuTopology topology = read_topology("pcie-8");
  MapOptions options;
  options.busy = {GpuId{0}, GpuId{1}, GpuId{5}};
  const auto takes = [&](std::int32_t slots) {
    const Mapping mapping = map_traffic(Traffic(slots), topology, options);
    return gpus_of(mapping);
  };
  EXPECT_EQ(takes(2), (std::vector<std::int32_t>{2, 3}));
  EXPECT_EQ(takes(6), (std::vector<std::int32_t>{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(takes(8), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Mapping, slots_that_exchange_most_share_a_gpu) {
  Traffic traffic(8);
  for (std::int32_t i = 0; i < 4; ++i) {
    traffic.add(SlotId{i}, SlotId{7 - i}, {1000, 1});
    traffic.add(SlotId{i}, SlotId{i + 4}, {1, 1});
  }
  const Mapping mapping = map_traffic(traffic, read_topology("pairs-4"));
  for (std::int32_t i = 0; i < 4; ++i)
    EXPECT_EQ(mapping.gpu_of[SlotId{i}], mapping.gpu_of[SlotId{7 - i}]);
  EXPECT_TRUE(mapping.is_optimal);
}

TEST(Mapping, empty_traffic_is_taken_in_order) {
  const Mapping mapping = map_traffic(Traffic(3), read_topology("dgx-1v"));
  EXPECT_EQ(gpus_of(mapping), (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(mapping.method, MappingMethod::order);
  EXPECT_EQ(mapping.gap(), 0);
  EXPECT_NE(mapping.remark, "");
}

TEST(Mapping, a_given_one_is_taken_and_judged) {
  const GpuTopology topology = read_topology("dgx-1v");
  const Traffic traffic = traffic_of_pattern("ring 4");
  MapOptions options{.selection = Selection::given};
  options.given = {GpuId{0}, GpuId{5}, GpuId{5}, GpuId{7}};
  const Mapping mapping = map_traffic(traffic, topology, options);
  EXPECT_EQ(mapping.method, MappingMethod::given);
  EXPECT_EQ(gpus_of(mapping), (std::vector<std::int32_t>{0, 5, 5, 7}));
  EXPECT_GT(mapping.cost, mapping.lower_bound);
}

TEST(Mapping, bottleneck_lowers_the_largest_link_and_total_the_cost) {
  for (const std::uint64_t seed : simulation::seeds(30)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    const GpuTopology topology = read_topology(seed % 2 == 0 ? "ac922-6" : "pairs-4");
    const Traffic traffic = random_traffic(random, 2 + below(random, topology.gpus() - 1), 1);
    const Mapping total = map_traffic(traffic, topology);
    const Mapping bottleneck = map_traffic(traffic, topology, {.objective = Objective::bottleneck});
    EXPECT_TRUE(bottleneck.is_optimal);
    EXPECT_LE(bottleneck.largest_load, total.largest_load * (1 + 1e-9));
    EXPECT_LE(total.cost, bottleneck.cost * (1 + 1e-9));
    // No mapping has a lower largest link.
    std::vector<GpuId> gpus;
    double least = bottleneck.largest_load * 2;
    const auto place = [&](const auto& self) -> void {
      if (static_cast<std::int32_t>(gpus.size()) == traffic.slots()) {
        MapOptions options{.selection = Selection::given};
        options.given = gpus;
        least = std::min(least, map_traffic(traffic, topology, options).largest_load);
        return;
      }
      for (std::int32_t g = 0; g < topology.gpus(); ++g) {
        if (std::ranges::find(gpus, GpuId{g}) != gpus.end()) continue;
        gpus.emplace_back(g);
        self(self);
        gpus.pop_back();
      }
    };
    place(place);
    EXPECT_NEAR(bottleneck.largest_load, least, 1e-9 * least);
  }
}

TEST(Mapping, bottleneck_of_many_slots_is_never_above_total_and_its_bound_never_above_it) {
  for (const std::uint64_t seed : simulation::seeds(8)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    const Traffic traffic = random_traffic(random, 16, 1);
    const GpuTopology topology = read_topology("k80-16");
    const Mapping total = map_traffic(traffic, topology, {.metric = Metric::bandwidth});
    const Mapping bottleneck = map_traffic(
        traffic, topology, {.metric = Metric::bandwidth, .objective = Objective::bottleneck});
    EXPECT_LE(bottleneck.largest_load, total.largest_load * (1 + 1e-9));
    EXPECT_LE(bottleneck.lower_bound, bottleneck.largest_load);
    EXPECT_GT(bottleneck.lower_bound, 0);
  }
}

TEST(Mapping, scotch_and_exchanges_find_the_optimum_of_trees_nearly_always) {
  const GpuTopology topology = read_topology("k80-16");
  std::vector<double> ratios;
  for (const std::uint64_t seed : simulation::seeds(24)) {
    std::mt19937_64 random(seed);
    const Traffic traffic = random_traffic(random, 16, 1);
    const Mapping exact = map_traffic(traffic, topology,
                                      {.selection = Selection::exact, .metric = Metric::bandwidth});
    const Mapping scotch =
        map_traffic(traffic, topology,
                    {.selection = Selection::scotch, .metric = Metric::bandwidth, .seed = seed});
    EXPECT_LE(scotch.lower_bound, exact.cost * (1 + 1e-9));
    ratios.push_back(scotch.cost / exact.cost);
  }
  std::ranges::sort(ratios);
  EXPECT_LE(ratios[ratios.size() / 2], 1.01);
  EXPECT_LE(ratios.back(), 1.03);
}

TEST(Mapping, says_which_option_is_wrong) {
  const GpuTopology topology = read_topology("dgx-1v");
  const Traffic traffic(4);
  for (const auto& [expected, damage] :
       std::vector<Wrong>{{"'busy' names GPU 8", [](MapOptions& o) { o.busy = {GpuId{8}}; }},
                          {"'busy' names GPU 1 twice",
                           [](MapOptions& o) {
                             o.busy = {GpuId{1}, GpuId{1}};
                           }},
                          {"'domains' has 1 NUMA domains for 4 slots",
                           [](MapOptions& o) { o.domains = {DomainId{0}}; }},
                          {"'domains' names NUMA domain 2",
                           [](MapOptions& o) { o.domains.assign(4, DomainId{2}); }},
                          {"'given' has 0 GPUs for 4 slots",
                           [](MapOptions& o) { o.selection = Selection::given; }},
                          {"the selection is auto", [](MapOptions& o) { o.given = {GpuId{0}}; }},
                          {"'given' names GPU 9 for slot 3",
                           [](MapOptions& o) {
                             o.selection = Selection::given;
                             o.given = {GpuId{0}, GpuId{1}, GpuId{2}, GpuId{9}};
                           }},
                          {"'order_within' is -1", [](MapOptions& o) { o.order_within = -1; }}}) {
    MapOptions options;
    damage(options);
    try {
      static_cast<void>(map_traffic(traffic, topology, options));
      ADD_FAILURE() << "taken: " << expected;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
  }
}

TEST(Mapping, a_given_gpu_twice_for_one_node_is_refused) {
  const Traffic traffic({SlotTraffic{.node = 0, .device = 0}, SlotTraffic{.node = 0, .device = 1}});
  MapOptions options{.selection = Selection::given};
  options.given = {GpuId{1}, GpuId{1}};
  EXPECT_THROW(static_cast<void>(map_traffic(traffic, read_topology("pairs-4"), options)), Error);
}

TEST(Mapping, exact_is_refused_beyond_its_limits) {
  std::mt19937_64 random(1);
  const Traffic traffic = random_traffic(random, 16, 1);
  EXPECT_THROW(static_cast<void>(
                   map_traffic(traffic, read_topology("dgx-1v"), {.selection = Selection::exact})),
               Error);
  EXPECT_THROW(static_cast<void>(map_traffic(
                   traffic, read_topology("k80-16"),
                   {.selection = Selection::exact, .objective = Objective::bottleneck})),
               Error);
}

TEST(Mapping, traffic_with_a_negative_value_is_refused) {
  Traffic traffic(2);
  traffic.slot(SlotId{0}).to_host.bytes = -1;
  EXPECT_THROW(static_cast<void>(map_traffic(traffic, read_topology("pairs-4"))), Error);
}

TEST(RandomMappings, have_the_same_statistics_for_the_same_seed) {
  const GpuTopology topology = read_topology("dgx-1v");
  const Traffic traffic = traffic_of_pattern("2d 2x4 weight 3");
  const RandomMappings first = random_mappings(traffic, topology, 100, {.seed = 7});
  const RandomMappings again = random_mappings(traffic, topology, 100, {.seed = 7});
  EXPECT_EQ(first.mean, again.mean);
  EXPECT_EQ(first.deviation, again.deviation);
  EXPECT_NE(first.mean, random_mappings(traffic, topology, 100, {.seed = 8}).mean);
  EXPECT_EQ(random_mappings(traffic, topology, 1, {.seed = 7}).deviation, 0);
  EXPECT_THROW(static_cast<void>(random_mappings(traffic, topology, 0)), Error);
}

}  // namespace
}  // namespace heddle::test
