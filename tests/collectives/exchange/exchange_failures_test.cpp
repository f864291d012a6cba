#include <fmt/core.h>
#include <fnmatch.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/threads/mpi_run.hpp"

namespace heddle {
namespace {

/// Runs a case; `expected` is a pattern (fnmatch) of what each node prints.
template <class Expected>
void expect_said(int nodes, const std::string& what, const Expected& expected) {
  SCOPED_TRACE(fmt::format("{} on {} nodes", what, nodes));
  const testing::MpiRun run =
      testing::run_nodes(nodes, "-disable-auto-cleanup " HEDDLE_EXCHANGE_FAILURES_PROGRAM, what);
  for (int node = 0; node < nodes; ++node) {
    const std::string said = expected(node);
    if (said.empty()) continue;
    const std::string line = fmt::format("*node {}: {}*", node, said);
    EXPECT_EQ(::fnmatch(line.c_str(), run.output.c_str(), 0), 0) << line << "\nin:\n" << run.output;
  }
}

int left_of(int node, int nodes) {
  return (node + nodes - 1) % nodes;
}

}  // namespace

TEST(ExchangeFailures, of_wrong_calls_are_told_before_anything_travels_and_the_group_goes_on) {
  const std::vector<std::string> parts{
      "(2) an exchange: outgoing part 0 to rank *; the group has ranks 0 to *|",
      "(2) exchange 'halo': incoming part 0 from rank -1; the group has ranks 0 to *|",
      "(2) an exchange: outgoing part 0 to rank 0 is null, with 4 elements|",
      "(2) an exchange: incoming part 0 from rank 0 has -4 elements; a count must not be negative|",
      "(2) an exchange: incoming part 0 from rank 0: * memory that overlaps*|",
      "(2) an exchange: incoming part 0 from rank 0 and incoming part 1 from rank 1 overlap; *|",
      "(2) an exchange: outgoing part 0 to rank 0 and incoming part 0 from rank 0 overlap; *|",
      "(2) an exchange: 'best' is no method of exchanges; there are auto, neighbours, *|",
      "(2) an exchange: receives are posted 'early' or 'late', and not 'never'|"};
  std::string all;
  for (const std::string& part : parts) all += part;
  for (const int nodes : {2, 3}) {
    expect_said(nodes, "refusals",
                [&](int node) { return all + fmt::format("from {}|", left_of(node, nodes)); });
  }
}

TEST(ExchangeFailures, of_a_call_that_is_wrong_on_one_member_are_told_to_all) {
  for (const int nodes : {2, 4}) {
    expect_said(nodes, "refused_on_one", [&](int node) {
      const std::string why = fmt::format(
          "exchange 'halo': outgoing part 0 to rank -5; the group has ranks 0 to {}", nodes - 1);
      return fmt::format("(2) {}{}; then from {}",
                         node == nodes - 1
                             ? ""
                             : fmt::format("rank {} refuses to make exchange 'halo': ", nodes - 1),
                         why, left_of(node, nodes));
    });
  }
}

TEST(ExchangeFailures, of_parts_that_do_not_fit_are_told_to_all_from_both_sides) {
  for (const int nodes : {2, 3}) {
    const int last = nodes - 1;
    const std::string count = fmt::format(
        "(2) exchange 'halo': outgoing part 0 of rank {0} is 4 elements of float64 for "
        "rank {1}, whose incoming part 0 is 5 elements of float64|",
        last - 1, last);
    const std::string scalar = fmt::format(
        "(2) an exchange: outgoing part 0 of rank {0} is 4 elements of float64 for "
        "rank {1}, whose incoming part 0 is 8 elements of float32|",
        last - 1, last);
    const std::string number =
        fmt::format("(2) an exchange: rank {} has 1 parts for rank {}, which has 0 parts from it|",
                    last - 1, last);
    const std::string options =
        fmt::format("(2) an exchange: ranks 0 and {} differ in its method or receives|", last);
    expect_said(nodes, "misfits", [&](int node) {
      return count + scalar + number + options + fmt::format("from {}", left_of(node, nodes));
    });
  }
}

TEST(ExchangeFailures, of_a_member_that_begins_no_round_tell_what_each_one_does) {
  expect_said(3, "absent", [&](int node) {
    // Rank 1 gets what rank 0 sends, but its own message is not received.
    return fmt::format(
        "from {}; then (4) nothing has happened for 3 s in round 2 of exchange "
        "'ring'; there may be ranks that have not begun it\n  rank 0 is in it and "
        "waits: *\n  rank 1 is in it and waits: *\n  rank 2 has not begun it; its "
        "last one is round 1",
        left_of(node, 3));
  });
}

TEST(ExchangeFailures, of_a_stream_that_never_comes_to_a_round_are_told_though_no_thread_waits) {
  expect_said(2, "stuck_streams", [](int) {
    return "(*) *nothing has happened for 3 s in round 2 of exchange 'ring';*\n  rank 0 is in it "
           "and waits: *\n  rank 1 is in it and waits: what its stream does before; again (4) "
           "nothing has happened";
  });
}

TEST(ExchangeFailures, of_the_group_end_its_rounds_and_leave_other_groups_as_they_are) {
  for (const int nodes : {2, 3}) {
    expect_said(nodes, "failed_group", [&](int node) {
      return fmt::format("(2) operation * of the group*; again (2) operation *; then from {}",
                         left_of(node, nodes));
    });
  }
}

TEST(ExchangeFailures, of_a_lost_node_end_its_rounds) {
  for (const int nodes : {2, 3}) {
    expect_said(nodes, "lost", [&](int node) {
      return node == nodes - 1 ? "" : fmt::format("(4) *node {}*", nodes - 1);
    });
  }
}

TEST(ExchangeFailures, of_streams_of_other_devices_are_told_and_the_round_goes_on) {
  const std::string why =
      "(2) exchange 'ring': the stream is of device '*', which is none of this node's whose memory "
      "messages take|";
  for (const int nodes : {1, 2, 3}) {
    expect_said(nodes, "wrong_streams",
                [&](int node) { return why + why + fmt::format("from {}", left_of(node, nodes)); });
  }
}

TEST(ExchangeFailures, of_a_lost_node_make_streams_fail_that_wait) {
  for (const int nodes : {2, 3}) {
    for (const char* const what : {"lost_with_streams", "lost_behind_streams"}) {
      expect_said(nodes, what, [&](int node) {
        const int lost = nodes - 1;
        if (node == lost) return std::string();
        return fmt::format("(*) *node {0}*; again (4) *node {0}*", lost);
      });
    }
  }
}

}  // namespace heddle
