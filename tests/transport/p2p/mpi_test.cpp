#include <fmt/core.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/support/seeds.hpp"
#include "tests/threads/mpi_run.hpp"

namespace heddle {
namespace {

testing::MpiRun run(int nodes, std::uint64_t seed, const std::string& options) {
  return testing::run_nodes(nodes, HEDDLE_P2P_PROGRAM, fmt::format("--seed {} {}", seed, options));
}

void check(int nodes, const std::string& options, std::uint64_t seeds = 3) {
  for (const std::uint64_t seed : simulation::seeds(seeds)) {
    const testing::MpiRun result = run(nodes, seed, options);
    EXPECT_EQ(result.status, 0) << nodes << " nodes, " << options << ": " << result.output
                                << simulation::replay_hint(seed);
  }
}

TEST(EndpointsOverMpi, bring_small_messages_of_any_shape) {
  for (const int nodes : {1, 2, 4}) check(nodes, "--count 300 --scalars 1000");
}

TEST(EndpointsOverMpi, bring_large_messages_of_any_shape) {
  for (const int nodes : {2, 3}) check(nodes, "--count 30 --scalars 300000");
}

TEST(EndpointsOverMpi, need_nothing_but_mpi) {
  check(2, "--count 200 --scalars 1000 --apart");
  check(3, "--count 30 --scalars 200000 --apart --devices emulated", 1);
}

TEST(EndpointsOverMpi, bring_messages_of_devices_by_every_path) {
  for (const char* path : {"message", "shared", "get", "put", "ring"}) {
    check(2, fmt::format("--count 100 --scalars 50000 --devices emulated --path {}", path), 2);
  }
  for (const int nodes : {1, 2, 4}) {
    check(nodes, "--count 100 --scalars 50000 --devices emulated", 2);
  }
}

/// Host memory that one of a node's devices reaches goes to and from the memory of all of them.
TEST(EndpointsOverMpi, bring_messages_between_nodes_of_several_devices) {
  for (const char* path : {"", "--path get", "--path put", "--path ring"}) {
    check(2,
          fmt::format("--count 100 --scalars 20000 --devices emulated --device-count 2 {}", path),
          2);
  }
}

TEST(EndpointsOverMpi, do_without_mappings_that_are_refused) {
  check(2, "--count 100 --scalars 50000 --devices emulated --refusing-node 0", 2);
  const testing::MpiRun told = run(
      2, 1, "--count 100 --scalars 50000 --devices emulated --on-devices --refusing-node 0 --tell");
  EXPECT_NE(told.output.find("from node 1 to node 0: ring"), std::string::npos) << told.output;
  EXPECT_EQ(told.output.find("from node 1 to node 0: get"), std::string::npos);
}

/// Nobody waits for a node that is stopped; what it has not read comes whole and in order later.
TEST(EndpointsOverMpi, keep_notes_for_a_node_that_reads_late) {
  for (const int count : {100, 20'000}) {
    const testing::MpiRun result = run(2, 1, fmt::format("--late-notes {}", count));
    EXPECT_EQ(result.status, 0) << result.output;
    const char* const expected = count == 100 ? "behind: 0, unsent: 0" : "behind: 1, unsent: 1";
    EXPECT_NE(result.output.find(expected), std::string::npos) << result.output;
  }
  EXPECT_EQ(run(2, 1, "--apart --late-notes 20000").status, 0);
}

/// A node that ends with messages under way: the other hears of it, and ends too.
TEST(EndpointsOverMpi, survive_a_node_that_ends) {
  for (const char* devices : {"none", "emulated"}) {
    const testing::MpiRun result = testing::run_nodes(
        2, fmt::format("-disable-auto-cleanup {}", HEDDLE_P2P_PROGRAM),
        fmt::format("--seed 3 --count 200 --scalars 50000 --devices {} --leaving-node 1", devices));
    EXPECT_NE(result.output.find("requests failed with the lost node"), std::string::npos)
        << result.output;
  }
}

}  // namespace
}  // namespace heddle
