#include <fmt/core.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/threads/mpi_run.hpp"

/// A program's own messages over MPI: messages_program does one thing on some nodes.
namespace heddle {
namespace {

testing::MpiRun run(int nodes, const std::string& what) {
  return testing::run_nodes(nodes, HEDDLE_MESSAGES_PROGRAM, what);
}

void check(int nodes, const std::string& what) {
  const testing::MpiRun result = run(nodes, what);
  EXPECT_EQ(result.status, 0) << nodes << " nodes, " << what << ":\n" << result.output;
}

TEST(Messages, throw_for_wrong_calls_with_the_values) {
  for (const int nodes : {1, 2}) check(nodes, "wrong_calls");
}

TEST(Messages, bring_any_datatype_between_host_and_device_memory) {
  for (const int nodes : {1, 2, 3}) check(nodes, "places");
}

TEST(Messages, come_in_order_and_by_wildcards) {
  for (const int nodes : {1, 2, 3}) check(nodes, "wildcards");
}

TEST(Messages, are_sent_and_received_by_many_threads_beside_jobs) {
  for (const int nodes : {1, 2}) check(nodes, "threads");
}

TEST(Messages, that_nobody_has_received_end_with_the_node) {
  for (const int nodes : {1, 2, 3}) check(nodes, "leftovers");
}

TEST(Messages, fail_by_name_when_their_node_is_lost) {
  const testing::MpiRun result =
      testing::run_nodes(2, "-disable-auto-cleanup " HEDDLE_MESSAGES_PROGRAM, "lost_node");
  EXPECT_NE(result.output.find("node 0 was told: communication"), std::string::npos)
      << result.output;
}

TEST(Messages, fail_by_name_when_their_node_has_gone) {
  const testing::MpiRun result = testing::run_nodes(2, HEDDLE_MESSAGES_PROGRAM, "gone_node");
  EXPECT_NE(result.output.find(
                "node 0 was told: communication (node 1 has gone while others may need it"),
            std::string::npos)
      << result.output;
}

}  // namespace
}  // namespace heddle
