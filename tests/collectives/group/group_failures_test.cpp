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
void expect_told(int nodes, const std::string& what, const Expected& expected) {
  SCOPED_TRACE(fmt::format("{} on {} nodes", what, nodes));
  const testing::MpiRun run =
      testing::run_nodes(nodes, "-disable-auto-cleanup " HEDDLE_GROUP_FAILURES_PROGRAM, what);
  for (int node = 0; node < nodes; ++node) {
    const std::string told = expected(node);
    if (told.empty()) continue;
    const std::string line = fmt::format("*node {}: {}*", node, told);
    EXPECT_EQ(::fnmatch(line.c_str(), run.output.c_str(), 0), 0) << line << "\nin:\n" << run.output;
  }
}

}  // namespace

TEST(GroupFailures, of_wrong_calls_are_told_before_anything_travels_and_the_group_goes_on) {
  const std::vector<std::string> parts{
      "(2) reduce of 4 elements of float64 with sum, root -1: the group has ranks 0 to *|",
      "(2) all_reduce of 4 elements of float64 with sum, in place: the output is null, with 4 "
      "elements|",
      "(2) * with sum: input and output overlap*|",
      "(2) *own part of the input is 32 bytes, of the output 40*|",
      "(2) *a type of several scalars*|",
      "(2) *with bit_and, in place: it has no meaning for float64|",
      "(2) *with maximum_with_index, in place: the output has 5 times 1 scalars *no whole number "
      "of "
      "elements*|",
      "(2) *'best' is no algorithm of collectives; there are auto, flat, *|",
      "(2) *'gsb' cannot be taken: not all ranks are on one host and have devices|",
      "(2) all_gather *elements of 8 bytes each are too many|",
      "(2) all_gather *own part of the input is 32 bytes, of the output 40*|",
      "(2) all_to_all with a buffer for each rank: the input is 1 buffers*|",
      "(2) all_gather *memory that overlaps*|",
      "(2) Group::subset: rank 0 twice|",
      "(2) Group::subset: rank *; the group has ranks 0 to *|"};
  std::string all;
  for (const std::string& part : parts) all += part;
  for (const int nodes : {2, 3}) {
    expect_told(nodes, "refusals", [&](int) { return all + fmt::format("sum {}", nodes); });
    expect_told(nodes, "wrong", [&](int) {
      return fmt::format("(2) broadcast * root {}: the group has ranks 0 to {}; then sum {}", nodes,
                         nodes - 1, nodes);
    });
  }
}

/// On the board, and by messages.
constexpr int sizes[] = {1000, 20000};

TEST(GroupFailures, of_a_call_that_is_wrong_on_one_member_are_told_to_all) {
  for (const int nodes : {2, 4}) {
    for (const int size : sizes) {
      expect_told(nodes, fmt::format("wrong_on_one {}", size), [&](int node) {
        const std::string why =
            "all_reduce of -1 elements of float64 with sum, in place: the output has -1 elements*";
        return node == nodes - 1 ? "(2) " + why
                                 : fmt::format("(2) rank {} refuses operation * of the group: {}",
                                               nodes - 1, why);
      });
    }
  }
}

/// A member that hears of a failure before it has made the calls before makes them nevertheless:
/// others wait for it there.
TEST(GroupFailures, leave_the_operations_before_as_they_are) {
  for (const int nodes : {3, 4}) {
    for (const int size : sizes) {
      expect_told(nodes, fmt::format("late {}", size), [&](int node) {
        const std::string why =
            "all_reduce of -1 elements of float64 with sum, in place: the output has -1*";
        return fmt::format(
            "nothing, broadcast 1, sums {0} {0}; then (2) {1}{2}; then (2)*", nodes,
            node == nodes - 1
                ? ""
                : fmt::format("rank {} refuses operation * of the group: ", nodes - 1),
            why);
      });
    }
  }
}

TEST(GroupFailures, of_calls_that_do_not_fit_together_tell_all_members_both_calls) {
  for (const int nodes : {2, 4}) {
    for (const int size : sizes) {
      expect_told(nodes, fmt::format("other_call {}", size), [&](int) {
        return fmt::format(
            "(2) operation * of the group: rank * calls all_reduce of {0} elements of float64 with "
            "sum, in place, but rank {1} calls all_reduce of {0} elements of float64 with maximum, "
            "in place;*; then "
            "(2)",
            size, nodes - 1);
      });
      expect_told(nodes, fmt::format("other_order {}", size), [&](int) {
        return fmt::format(
            "(2) operation * of the group: rank * calls all_reduce of {0} elements of float64 with "
            "sum, in place, but rank {1} calls all_reduce of {0} elements of float64 with sum in "
            "the order "
            "of places, in place;",
            size, nodes - 1);
      });
      expect_told(nodes, fmt::format("other_form {}", size), [&](int) {
        return fmt::format(
            "(2) operation * of the group: rank * calls all_gather of {0} elements of float64, but "
            "rank {1} calls all_gather of {0} elements of float64, in place;",
            size, nodes - 1);
      });
      expect_told(nodes, fmt::format("other_count {}", size), [&](int) {
        return fmt::format(
            "(2) * calls broadcast of {} elements of float64, root 0, but rank {} "
            "calls broadcast of {} elements of float64, root 0;",
            size, nodes - 1, size - 100);
      });
      expect_told(nodes, fmt::format("other_scalar {}", size), [&](int) {
        return fmt::format(
            "(2) * calls broadcast of {} elements of float64, root 0, but rank {} "
            "calls broadcast of {} elements of float32, root 0;",
            size, nodes - 1, 2 * size);
      });
    }
  }
}

TEST(GroupFailures, of_a_group_more_than_a_node_may_have_are_told_and_others_may_be_dropped) {
  expect_told(2, "too_many", [&](int) {
    return "(2) a group is made on a node that has 256 already*drop handles* behind 255; then sum "
           "2";
  });
}

TEST(GroupFailures, leave_other_groups_as_they_are) {
  for (const int nodes : {2, 3}) {
    expect_told(nodes, "beside", [&](int) { return fmt::format("(2); then sum {}", nodes); });
  }
}

TEST(GroupFailures, of_a_member_that_does_not_call_tell_what_each_one_does) {
  for (const int size : sizes)
    expect_told(3, fmt::format("absent {}", size), [&](int) {
      return "(4) nothing has happened for 3 s in operation * all_reduce of * elements of float64 "
             "with sum, in place;*\n  rank 0 is in it and waits: *\n  rank 1 is in it and waits: "
             "*\n  rank 2 "
             "has not called it; its last one is *, barrier";
    });
}

/// No member waits for the end of a node that has gone, neither in Node::stop() nor behind it.
TEST(GroupFailures, of_a_node_that_an_exception_leaves_end_the_others_stop) {
  for (const int nodes : {2, 4}) {
    expect_told(nodes, "leaves", [&](int node) {
      return node == nodes - 1
                 ? "threw: left"
                 : fmt::format("(4) *node {} has gone while others may need it*", nodes - 1);
    });
  }
}

/// What it sent before is taken first, however late the others look.
TEST(GroupFailures, of_a_node_that_an_exception_leaves_spare_what_it_has_done) {
  for (const int size : sizes) {
    for (int repeat = 0; repeat < 5; ++repeat) {
      expect_told(2, fmt::format("leaves_behind {}", size), [&](int node) {
        return node == 1 ? "threw: left" : fmt::format("took {}", 2 * size);
      });
    }
  }
}

TEST(GroupFailures, of_a_lost_node_end_all_operations) {
  for (const int nodes : {2, 3}) {
    expect_told(nodes, "lost", [&](int node) {
      return node == nodes - 1 ? "" : fmt::format("(4) *node {}*", nodes - 1);
    });
  }
}

TEST(GroupFailures, of_a_lost_node_end_the_streams_that_wait) {
  for (const int nodes : {2, 3}) {
    expect_told(nodes, "lost_on_stream", [&](int node) {
      return node == nodes - 1 ? "" : fmt::format("(*) *node {}*", nodes - 1);
    });
  }
}

TEST(GroupFailures, of_a_kernel_that_never_ends_are_told_though_no_thread_waits) {
  for (const int nodes : {2, 3}) {
    expect_told(nodes, "stuck_on_stream", [&](int) {
      std::string table =
          "*nothing has happened for 3 s in operation * of the group, all_reduce of 100000 "
          "elements "
          "of float64 with sum, in place;*";
      for (int rank = 0; rank < nodes - 1; ++rank) {
        table += fmt::format("\n  rank {} is in it and waits: *", rank);
      }
      return table + fmt::format(
                         "\n  rank {} is in it and waits: what its stream does before; then "
                         "(4) *nothing has happened*; beside sum {}",
                         nodes - 1, nodes);
    });
  }
}

TEST(GroupFailures, do_not_come_of_streams_that_are_slow) {
  expect_told(2, "slow_on_stream", [](int) { return "nothing"; });
}

TEST(GroupFailures, on_devices_are_told_like_others) {
  for (const int nodes : {2, 3}) {
    expect_told(nodes, "refused_on_device", [&](int) {
      return fmt::format(
          "(2) all_reduce of 100000 elements of float64 with sum, in place: the stream is of "
          "device "
          "'emulated 7', which is none of this node's*|(2) reduce operation own sum has no form "
          "for devices "
          "of "
          "the backend emulated*|nothing|(2) barrier: 'direct' cannot be taken*|sum {}|(2) "
          "*'direct' "
          "cannot be taken: not all ranks have their memory on a device*",
          nodes);
    });
  }
}

}  // namespace heddle
