#include "replay/reader_figures.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "replay/run.hpp"
#include "tests/replay/run_builder.hpp"

namespace heddle::replay {
namespace {

using test::RunBuilder;

constexpr double bytes = 4096;  // of each message of a RunBuilder

}  // namespace

TEST(ReaderFigures, compare_the_busiest_node_and_host_with_homes_that_send_all) {
  RunBuilder build(6, 1);
  for (int node = 0; node < 6; ++node) build.on_host(node, std::string(1, "aabbcc"[node]));
  // Node 0's tile goes to 2, from there to 3 and 4, and from 4 to 5.
  build.message(0, 2, 7, 1, 0, 10);
  build.message(2, 3, 7, 1, 10, 20).passed_on(2);
  build.message(2, 4, 7, 1, 20, 30).passed_on(2);
  build.message(4, 5, 7, 1, 30, 40).passed_on(4);
  // A later version of it, and a tile of node 1, by their homes.
  build.message(0, 1, 7, 2, 50, 60);
  build.message(1, 4, 8, 1, 50, 60);
  const ReaderFigures figures = reader_figures(build.run(), 0);
  EXPECT_EQ(figures.passed_on, 3);
  EXPECT_EQ(figures.bytes, 3 * bytes);
  EXPECT_EQ(figures.node.bytes, 2 * bytes) << "nodes 0 and 2";
  EXPECT_EQ(figures.node.bytes_from_homes, 5 * bytes) << "node 0";
  EXPECT_EQ(figures.host.bytes, 2 * bytes) << "host a: to node 2, and node 1 to 4";
  EXPECT_EQ(figures.host.bytes_from_homes, 5 * bytes) << "host a: all but node 0 to 1";
}

TEST(ReaderFigures, take_a_version_from_where_its_chain_is_cut_if_a_trace_is_missing) {
  RunBuilder build(4, 1);
  build.message(0, 1, 7, 1, 0, 10);
  build.message(1, 2, 7, 1, 10, 20).passed_on(1);
  build.message(2, 3, 7, 1, 20, 30).passed_on(2);
  std::vector<trace::NodeTrace> traces = build.nodes();
  traces.erase(traces.begin() + 1);
  const ReaderFigures figures = reader_figures(make_run("by hand", traces), 0);
  EXPECT_EQ(figures.passed_on, 1) << "what node 1 sent is not known";
  EXPECT_EQ(figures.node.bytes, bytes);
  EXPECT_EQ(figures.node.bytes_from_homes, 2 * bytes) << "node 1";
}

TEST(ReaderFigures, end_if_damaged_traces_pass_a_version_on_in_a_circle) {
  RunBuilder build(2, 1);
  build.message(0, 1, 7, 1, 0, 10).passed_on(0);
  build.message(1, 0, 7, 1, 10, 20).passed_on(1);
  EXPECT_EQ(reader_figures(build.run(), 0).passed_on, 2);
}

TEST(ReaderFigures, are_empty_where_homes_send_all_and_of_another_job) {
  RunBuilder build(3, 1);
  build.message(0, 1, 7, 1, 0, 10);
  EXPECT_EQ(reader_figures(build.run(), 0).node.bytes, 0);
  build.message(1, 2, 7, 1, 10, 20).passed_on(1);
  EXPECT_EQ(reader_figures(build.run(), 0).passed_on, 1);
  EXPECT_EQ(reader_figures(build.run(), 1).passed_on, 0);
}

TEST(RunTrace, tells_the_places_between_which_a_message_went_where_traces_do) {
  RunBuilder build(2, 1);
  build.message(0, 1, 7, 1, 0, 10).between(0, PlaceId{2}, 1, host_place);
  build.message(0, 1, 8, 1, 10, 20);
  const RunTrace run = build.run();
  ASSERT_EQ(run.messages.size(), 2U);
  EXPECT_EQ(run.messages[0].from_place, PlaceId{2});
  EXPECT_EQ(run.messages[0].to_place, host_place);
  EXPECT_FALSE(run.messages[1].from_place.has_value());
  EXPECT_FALSE(run.messages[1].to_place.has_value());
}

}  // namespace heddle::replay
