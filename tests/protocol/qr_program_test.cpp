#include "tests/support/qr_program.hpp"

#include <gtest/gtest.h>
#include <random>
#include <set>

#include "tests/support/seeds.hpp"
#include "tests/support/simulated_cluster.hpp"

namespace heddle::simulation {
namespace {

struct QrCase {
  TileLayout layout;
  Distribution distribution;
  ClusterOptions cluster;
  std::int32_t spare_count = 0;

  explicit QrCase(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n));
    };
    distribution = {1 + below(4), 1 + below(3), below(3)};
    layout.tile = 4;
    layout.small = 2;
    layout.strip = 2 * below(3);
    layout.columns = 1 + below(16);
    layout.rows = layout.columns + below(13);
    spare_count = 1 + below(4);
    cluster.nodes = distribution.node_count();
    cluster.places = 1 + distribution.devices;
    constexpr std::int32_t windows[] = {1, 2, 5, 20, 10000};
    cluster.window = windows[below(5)];
    constexpr std::int32_t extras[] = {0, 0, 1, 1000};
    cluster.extra_blocks = extras[below(4)];
    cluster.walk = static_cast<Walk>(below(3));
    cluster.fine_workers = fine_workers_of(seed);
    cluster.placement = placement_of(seed);
    cluster.extra_frames = extra_frames_of(seed);
    cluster.seed = random();
  }

  [[nodiscard]] Outcome run() const {
    const QrProgram qr = qr_program(layout, distribution, spare_count);
    SimulatedCluster simulation(cluster, qr.matrices);
    simulation.submit(qr.program);
    return simulation.run();
  }
};

}  // namespace

TEST(QrProgram, runs_as_the_sequential_program_would_on_random_grids_and_layouts) {
  const auto all = seeds(2000);
  std::int64_t lending = 0;  // seeds
  for (const std::uint64_t seed : all) {
    const QrCase c(seed);
    const Outcome outcome = c.run();
    ASSERT_TRUE(outcome.ok) << outcome.failure << '\n' << replay_hint(seed);
    ASSERT_EQ(std::ssize(outcome.tasks), qr_task_count(c.layout)) << replay_hint(seed);
    lending += outcome.lent > 0 ? 1 : 0;
  }
  if (!one_seed_only()) {
    EXPECT_GE(lending, std::ssize(all) / 20);
  }
}

TEST(QrProgram, meets_all_kinds_of_instances_but_that_of_minor_outputs_elsewhere_on_the_node) {
  std::set<protocol::InstanceKind> kinds;
  for (const std::uint64_t seed : seeds(60)) {
    QrCase c(seed);
    c.cluster.walk = Walk::full;
    const Outcome outcome = c.run();
    ASSERT_TRUE(outcome.ok) << outcome.failure << '\n' << replay_hint(seed);
    kinds.insert(outcome.kinds_seen.begin(), outcome.kinds_seen.end());
  }
  if (!one_seed_only()) {
    // The tiles of a column of a node live at one place.
    EXPECT_EQ(kinds.size(), 7U);
    EXPECT_FALSE(kinds.contains(protocol::InstanceKind::intranode_source_minor_output));
  }
}

TEST(QrProgram, renames_the_tile_of_r_while_updates_read_v_there) {
  std::int64_t renamings = 0;
  const auto all = seeds(60);
  for (const std::uint64_t seed : all) renamings += QrCase(seed).run().renamings;
  if (!one_seed_only()) {
    EXPECT_GT(renamings, std::ssize(all));
  }
}

TEST(QrProgram, is_found_to_be_wrong_when_v_is_overwritten_while_an_update_still_reads_it) {
  std::int32_t injected = 0;
  const auto all = seeds(400);
  for (const std::uint64_t seed : all) {
    QrCase c(seed);
    c.layout.columns = 24;
    c.layout.rows = 28;
    c.cluster.window = 10000;
    c.spare_count = 4;
    c.cluster.fault = Fault::old_version_overwritten;
    const Outcome outcome = c.run();
    if (!outcome.fault_injected) continue;
    ++injected;
    ASSERT_FALSE(outcome.ok) << "not found\n" << replay_hint(seed);
    EXPECT_EQ(outcome.check, Check::reads) << outcome.failure << '\n' << replay_hint(seed);
  }
  if (!one_seed_only()) {
    EXPECT_GE(injected, std::ssize(all) / 100);
  }
}

}  // namespace heddle::simulation
