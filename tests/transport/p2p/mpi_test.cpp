#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/seeds.hpp"
#include "tests/threads/mpi_run.hpp"

namespace heddle {
namespace {

void check(int nodes, int count, int scalars) {
  for (const std::uint64_t seed : simulation::seeds(3)) {
    const testing::MpiRun run = testing::run_nodes(nodes, HEDDLE_P2P_PROGRAM,
                                                   fmt::format("{} {} {}", seed, count, scalars));
    EXPECT_EQ(run.status, 0) << nodes << " nodes: " << run.output << simulation::replay_hint(seed);
  }
}

TEST(EndpointsOverMpi, bring_small_messages_of_any_shape) {
  for (const int nodes : {1, 2, 4}) check(nodes, 300, 1000);
}

TEST(EndpointsOverMpi, bring_large_messages_of_any_shape) {
  for (const int nodes : {2, 3}) check(nodes, 30, 300'000);
}

}  // namespace
}  // namespace heddle
