#include <chrono>
#include <fmt/core.h>
#include <fnmatch.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/threads/mpi_run.hpp"

namespace heddle {
namespace {

/// Runs a case on `nodes` nodes; `expected` is a pattern (fnmatch) of what each of them prints.
template <class Expected>
void expect_told(int nodes, const char* what, const Expected& expected) {
  SCOPED_TRACE(fmt::format("{} on {} nodes", what, nodes));
  const auto begin = std::chrono::steady_clock::now();
  const testing::MpiRun run = testing::run_nodes(nodes, HEDDLE_FAILURES_PROGRAM, what);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  for (int node = 0; node < nodes; ++node) {
    const std::string line = fmt::format("*node {}: {}*", node, expected(node));
    EXPECT_EQ(::fnmatch(line.c_str(), run.output.c_str(), 0), 0) << line << "\nin:\n" << run.output;
  }
  EXPECT_EQ(run.output.find("nothing has advanced"), std::string::npos) << run.output;
  EXPECT_LT(took.count(), 15) << "the watchdog would have ended it";
}

/// How errors begin that come from node `from`; of one node its number is not told.
std::string of_node(int from, int nodes) {
  return nodes > 1 ? fmt::format("node {}: ", from) : "";
}

}  // namespace

/// Of these tests themselves.
TEST(Failures, of_programs_that_hang_are_told_with_what_they_had_printed) {
  EXPECT_NONFATAL_FAILURE(testing::run_nodes(1, "sh", "-c 'echo begun; sleep 1000'", 3),
                          "It had printed:\nbegun");
}

TEST(Failures, of_a_kernel_on_one_node_fail_the_job_on_all_and_the_next_job_runs) {
  for (const int nodes : {1, 2, 4}) {
    expect_told(nodes, "kernel", [&](int) {
      return fmt::format(
          "failed (1): {}throwing on tile {} of matrix 0: three is too many; then done",
          of_node(nodes - 1, nodes), nodes - 1);
    });
  }
}

TEST(Failures, of_a_visit_on_one_node_are_thrown_on_all_and_the_next_job_runs) {
  for (const int nodes : {1, 2, 4}) {
    expect_told(nodes, "visit", [&](int node) {
      return node == nodes - 1
                 ? std::string("(2) no such tile; then done")
                 : fmt::format("(2) {}visit on tile {} of matrix 0: no such tile; then done",
                               of_node(nodes - 1, nodes), nodes - 1);
    });
  }
}

TEST(Failures, of_programs_fail_the_job_on_all_and_the_next_job_runs) {
  for (const int nodes : {1, 2, 4}) {
    expect_told(nodes, "program", [&](int) {
      return fmt::format("failed (1): {}at twenty; then done", of_node(0, nodes));
    });
  }
}

TEST(Failures, in_what_all_agree_on_are_told_to_all_memory_that_is_missing_too) {
  for (const int nodes : {1, 2, 4}) {
    expect_told(nodes, "agreement",
                [&](int) { return fmt::format("(2) {}", of_node(nodes - 1, nodes)); });
  }
}

TEST(Failures, of_nodes_to_start_the_same_jobs_are_named) {
  for (const int nodes : {2, 4}) {
    expect_told(nodes, "order", [&](int node) {
      const char* const own = node == 0 ? "threw (2): " : "threw (4): node 0 failed: ";
      // Node 0 compares with the first of the others that it hears of.
      return fmt::format("{}nodes [0-9] and {} have started different jobs", own, nodes - 1);
    });
  }
}

TEST(Failures, that_leave_a_node_by_an_exception_end_the_others_at_once) {
  for (const int nodes : {2, 4}) {
    expect_told(nodes, "exception", [&](int node) {
      return node == nodes - 1
                 ? std::string("threw: own trouble")
                 : fmt::format(
                       "threw (4): node {} has gone while others may need it: an exception "
                       "left it",
                       nodes - 1);
    });
  }
}

TEST(Failures, to_stop_a_node_end_the_others_at_once) {
  for (const int nodes : {2, 4}) {
    expect_told(nodes, "forgotten", [&](int node) {
      return node == nodes - 1 ? std::string("left")
                               : fmt::format(
                                     "threw (4): node {} has gone while others may need it: it was "
                                     "destroyed without Node::stop()",
                                     nodes - 1);
    });
  }
}

TEST(Failures,
     of_a_device_whose_memory_another_process_has_taken_are_told_to_all_and_the_host_goes_on) {
  for (const int nodes : {1, 2, 4}) {
    expect_told(nodes, "taken", [&](int) {
      return fmt::format(
          "(2) {}emulated device 0: * were refused; another process has taken memory since; then "
          "{}",
          of_node(nodes - 1, nodes), 2 * nodes * (nodes - 1));
    });
  }
}

TEST(Failures, do_not_come_of_a_stop_while_jobs_without_handles_are_in_flight) {
  for (const int nodes : {1, 2, 4}) {
    expect_told(nodes, "dropped", [&](int node) {
      return fmt::format("in flight, {} calls", node == nodes - 1 ? 40 : 0);
    });
  }
}

// ---- collectives of nodes ----------------------------------------------------------------------

TEST(Collectives, wait_for_a_node_that_computes_for_longer_than_the_watchdog_waits) {
  expect_told(2, "late", [](int) { return "2 in all"; });
}

TEST(Collectives, that_differ_are_named_on_all_nodes_which_still_end_together) {
  for (const int nodes : {2, 4}) {
    expect_told(nodes, "differ", [&](int) {
      return fmt::format("(2) operation * of the group: rank * calls *, but rank {} calls *",
                         nodes - 1);
    });
  }
}

TEST(Collectives, are_for_one_thread_at_a_time) {
  for (const int nodes : {2, 4}) {
    expect_told(nodes, "threads", [](int node) {
      return node == 0 ? "1 refused: Node: two threads reduce at the same time; one thread at a "
                         "time calls collectives"
                       : "0 refused: ";
    });
  }
}

TEST(Collectives, are_refused_behind_the_end) {
  for (const int nodes : {2, 4}) {
    expect_told(nodes, "stopped",
                [](int) { return "(2) Node: a collective was called after Node::stop()"; });
  }
}

}  // namespace heddle
