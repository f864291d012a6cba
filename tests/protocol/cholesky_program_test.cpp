#include "tests/support/cholesky_program.hpp"

#include <gtest/gtest.h>
#include <random>

#include "tests/support/seeds.hpp"
#include "tests/support/simulated_cluster.hpp"

namespace heddle::simulation {
namespace {

struct CholeskyCase {
  TileLayout layout;
  Distribution distribution;
  ClusterOptions cluster;
  bool releases = false;
  std::int32_t spare_count = 0;

  [[nodiscard]] Outcome run() const {
    CholeskyProgram cholesky = cholesky_program(layout, distribution, releases);
    cholesky.matrix.spare_count = spare_count;
    SimulatedCluster simulation(cluster, {cholesky.matrix});
    simulation.submit(cholesky.program);
    return simulation.run();
  }
};

ClusterOptions cluster_for(const Distribution& distribution, std::uint64_t seed) {
  ClusterOptions options;
  options.nodes = distribution.node_count();
  options.places = 1 + distribution.devices;
  options.seed = seed;
  return options;
}

/// Layouts with whole tiles, strips of several pieces, only strips, and edges cut anywhere.
TileLayout layout_of(std::int64_t tiles, std::int32_t shape) {
  constexpr std::int64_t strips[] = {0, 2, 4, 8};
  const std::int64_t n = tiles * 8 - std::int64_t{shape / 4 % 3} * 3;
  return {.rows = n, .columns = n, .tile = 8, .strip = strips[shape % 4], .small = 2};
}

CholeskyCase random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::int32_t n) {
    return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n));
  };
  CholeskyCase c;
  c.distribution = {1 + below(5), 1 + below(3), below(4)};
  c.layout = layout_of(1 + below(6), below(12));
  c.cluster = cluster_for(c.distribution, random());
  constexpr std::int32_t windows[] = {1, 2, 5, 20, 10000};
  c.cluster.window = windows[below(5)];
  constexpr std::int32_t extras[] = {0, 0, 1, 4, 1000};
  c.cluster.extra_blocks = extras[below(5)];
  c.cluster.walk = static_cast<Walk>(below(3));
  c.cluster.fine_workers = fine_workers_of(seed);
  c.cluster.placement = placement_of(seed);
  c.cluster.extra_frames = extra_frames_of(seed);
  c.releases = below(2) == 0;
  c.spare_count = below(2) * 3;
  return c;
}

}  // namespace

TEST(CholeskyProgram, runs_as_the_sequential_program_would_on_random_grids_and_layouts) {
  const auto all = seeds(3000);
  std::int64_t lending = 0;  // seeds
  for (const std::uint64_t seed : all) {
    const CholeskyCase c = random_case(seed);
    const Outcome outcome = c.run();
    ASSERT_TRUE(outcome.ok) << outcome.failure << '\n' << replay_hint(seed);
    ASSERT_EQ(std::ssize(outcome.tasks), cholesky_task_count(c.layout)) << replay_hint(seed);
    lending += outcome.lent > 0 ? 1 : 0;
  }
  if (!one_seed_only()) {
    EXPECT_GE(lending, std::ssize(all) / 20);
  }
}

TEST(CholeskyProgram, runs_on_every_grid_from_1x1_to_5x3_with_1_to_4_places) {
  for (const std::uint64_t seed : seeds(1)) {
    for (std::int32_t rows = 1; rows <= 5; ++rows) {
      for (std::int32_t columns = 1; columns <= 3; ++columns) {
        for (std::int32_t devices = 0; devices <= 3; ++devices) {
          CholeskyCase c;
          c.distribution = {rows, columns, devices};
          c.layout = layout_of(6, 1);
          c.cluster = cluster_for(c.distribution, seed);
          c.cluster.window = 20;
          c.cluster.walk = Walk::pruned;
          c.releases = true;
          const Outcome outcome = c.run();
          ASSERT_TRUE(outcome.ok) << rows << "x" << columns << " with " << devices
                                  << " devices: " << outcome.failure << '\n'
                                  << replay_hint(seed);
        }
      }
    }
  }
}

TEST(CholeskyProgram, leaves_the_same_tasks_and_messages_on_each_node_however_it_is_walked) {
  for (const std::uint64_t seed : seeds(150)) {
    CholeskyCase c = random_case(seed);
    c.cluster.walk = Walk::full;
    const Outcome full = c.run();
    ASSERT_TRUE(full.ok) << full.failure << '\n' << replay_hint(seed);
    for (const Walk walk : {Walk::pruned, Walk::announced}) {
      c.cluster.walk = walk;
      const Outcome pruned = c.run();
      ASSERT_TRUE(pruned.ok) << pruned.failure << '\n' << replay_hint(seed);
      EXPECT_EQ(pruned.tasks, full.tasks) << replay_hint(seed);
      EXPECT_EQ(pruned.messages, full.messages) << replay_hint(seed);
      EXPECT_EQ(pruned.copies, full.copies) << replay_hint(seed);
      EXPECT_LE(pruned.walked, full.walked) << replay_hint(seed);
    }
  }
}

TEST(CholeskyProgram, sends_a_finished_tile_once_to_each_node_that_reads_it) {
  // Three tile rows of one column each on a 3x1 grid: node i has row i.
  CholeskyCase c;
  c.layout = {.rows = 24, .columns = 24, .tile = 8};
  c.distribution = {.grid_rows = 3, .grid_columns = 1, .devices = 0};
  c.cluster = cluster_for(c.distribution, 1);

  const Outcome outcome = c.run();

  ASSERT_TRUE(outcome.ok) << outcome.failure;
  const auto message = [](std::int32_t from, std::int32_t to, std::int32_t tile,
                          std::int32_t version) {
    return MessageName{NodeId{from}, NodeId{to}, protocol::JobId{0},
                       protocol::TileId{protocol::MatrixId{0}, tile}, Version{version}};
  };
  // Tile i + 3 c is row i of column c: the factored diagonal tiles go down their column, the
  // solved tile of row 1 to the nodes of the rows below it.
  EXPECT_EQ(outcome.messages, (std::set<MessageName>{message(0, 1, 0, 1), message(0, 2, 0, 1),
                                                     message(1, 2, 1, 1), message(1, 2, 4, 2)}));
  EXPECT_EQ(std::ssize(outcome.tasks), 3 + 2 * 2 + 3);
}

TEST(CholeskyProgram, lets_a_node_walk_only_a_part_of_the_statements_when_it_is_pruned) {
  CholeskyCase c;
  c.distribution = {.grid_rows = 5, .grid_columns = 3, .devices = 0};
  c.layout = {.rows = 120, .columns = 120, .tile = 8};
  c.cluster = cluster_for(c.distribution, 1);
  c.cluster.window = 50;
  const Outcome full = c.run();
  c.cluster.walk = Walk::pruned;
  const Outcome pruned = c.run();

  const std::int64_t tasks = cholesky_task_count(c.layout);
  EXPECT_EQ(full.walked, 15 * tasks);
  EXPECT_LT(pruned.walked, 3 * tasks);  // each task touches its node and at most two others
}

TEST(CholeskyProgram, reaches_the_end_when_it_is_cancelled_anywhere) {
  for (const std::uint64_t seed : seeds(300)) {
    CholeskyCase c = random_case(seed);
    c.cluster.cancel_probability = 0.003;
    const Outcome outcome = c.run();
    ASSERT_TRUE(outcome.ok) << outcome.failure << '\n' << replay_hint(seed);
  }
}

}  // namespace heddle::simulation
