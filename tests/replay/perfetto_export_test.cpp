#include "replay/export/perfetto_export.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "node-runtime/trace/node_file.hpp"
#include "node-runtime/trace/run_folder.hpp"
#include "replay/export/protobuf.hpp"
#include "tests/replay/perfetto_reader.hpp"
#include "tests/replay/run_builder.hpp"
#include "tests/trace/trace_fixture.hpp"

namespace heddle::replay {
namespace {

using test::changes;
using test::PerfettoTrace;
using test::reads;
using test::RunBuilder;
using trace::FragmentStep;
using trace::NodeTrace;
using trace::RecordKind;
using trace::WaitCause;
using trace::test::contents;
using trace::test::error_of;
using trace::test::replace_contents;
using trace::test::TraceBuilder;
using Names = std::vector<std::string>;
using Flows = std::multiset<std::string>;

class PerfettoExport : public trace::test::TraceTest {
 protected:
  PerfettoTrace exported(const std::vector<NodeTrace>& traces) {
    written_ = export_to_perfetto(traces, file("t.perfetto"));
    PerfettoTrace result(contents(file("t.perfetto")));
    EXPECT_EQ(result.slices().size(), written_.slices);
    EXPECT_EQ(result.flows().size(), written_.dependencies + written_.messages);
    return result;
  }
  RunExport written_;
};

}  // namespace

TEST(ProtoMessage, is_in_the_wire_format) {
  ProtoMessage inner;
  inner.number(1, 150);
  EXPECT_EQ(inner.view(), "\x08\x96\x01") << "the example of the format's description";
  ProtoMessage outer;
  outer.bytes(2, "testing").message(3, inner).fixed64(20, 0x0102030405060708);
  EXPECT_EQ(outer.view(),
            "\x12\x07testing\x1a\x03\x08\x96\x01\xa1\x01\x08\x07\x06\x05\x04\x03\x02\x01");
  ProtoMessage negative;
  negative.integer(4, -1);
  EXPECT_EQ(negative.view(), "\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST_F(PerfettoExport, names_nodes_threads_and_rows_in_their_order) {
  TraceBuilder node0(0, 2);
  node0.thread("mpi", 20).message(RecordKind::send, 1, 1500, 1600, 4);
  node0.thread("worker 0", 10).task(1000, 2000, 5, 3).wait(2000, 2500, WaitCause::window_full);
  node0.thread("copy", 15).copy(1200, 1300, 2).fetch(1250, 1500, 4);
  TraceBuilder node1(1, 2);
  node1.thread("worker 0", 10).task(1100, 1900, 7, 7);
  node1.trace().threads[0].dropped = 3;

  const PerfettoTrace trace = exported({node0.trace(), node1.trace()});

  EXPECT_EQ(trace.tracks(),
            (Names{"node 0", "node 0/worker 0", "node 0/copy", "node 0/copy/copy: copies",
                   "node 0/copy/copy: copies (2)", "node 0/mpi", "node 0/mpi/mpi: sends", "node 1",
                   "node 1/worker 0 [3 records dropped]"}));
  EXPECT_EQ(trace.names("node 0/worker 0"), (Names{"gsmm (5, 3)", "wait: window full"}));
  EXPECT_EQ(trace.names("node 0/copy/copy: copies"), (Names{"copy A (2, 0)"}));
  EXPECT_EQ(trace.names("node 0/copy/copy: copies (2)"), (Names{"fetch A (4, 0)"}));
  EXPECT_EQ(trace.names("node 0/mpi/mpi: sends"), (Names{"send A (4, 0)"}));
}

TEST_F(PerfettoExport, tells_what_slices_are) {
  TraceBuilder node(0, 2);
  node.thread("worker 0").task(1000, 3500, 5, 3).wait(3500, 3600, WaitCause::no_task);
  node.thread("mpi").message(RecordKind::receive, 1, 2000, 3000, 6).by_path(3);
  node.copy(1500, 1800, 2).fragment(FragmentStep::fill, 2100, 2200, 6);

  const PerfettoTrace trace = exported({node.trace()});

  using Arguments = std::map<std::string, std::string>;
  EXPECT_EQ(trace.at("node 0/worker 0").category, "task");
  EXPECT_EQ(trace.at("node 0/worker 0").arguments, (Arguments{{"job", "0"},
                                                              {"order", "0"},
                                                              {"priority", "0"},
                                                              {"place", "host"},
                                                              {"kernel", "gsmm"},
                                                              {"tile", "A (5, 3)"}}));
  EXPECT_EQ(trace.at("node 0/worker 0", 1).category, "wait");
  EXPECT_EQ(trace.at("node 0/worker 0", 1).arguments, Arguments());
  EXPECT_EQ(trace.at("node 0/mpi/mpi: receives").arguments, (Arguments{{"job", "0"},
                                                                       {"tile", "A (6, 0)"},
                                                                       {"version", "1"},
                                                                       {"from", "node 1"},
                                                                       {"to", "node 0"},
                                                                       {"tag", "7"},
                                                                       {"bytes", "8192"},
                                                                       {"path", "shared"},
                                                                       {"queued ns", "0"}}));
  EXPECT_EQ(trace.at("node 0/mpi/mpi: copies").arguments, (Arguments{{"job", "0"},
                                                                     {"tile", "A (2, 0)"},
                                                                     {"version", "1"},
                                                                     {"from", "host"},
                                                                     {"to", "device 0"},
                                                                     {"bytes", "4096"},
                                                                     {"queued ns", "2"}}));
  EXPECT_EQ(trace.at("node 0/mpi/mpi: fragments").arguments.at("peer"), "node 1");
}

TEST_F(PerfettoExport, has_the_times_of_the_records_on_the_clock_of_node_0_from_zero) {
  std::mt19937_64 random(7);
  std::multiset<std::tuple<std::string, std::uint64_t, std::uint64_t>> expected;
  std::vector<NodeTrace> traces;
  constexpr std::int64_t zero = 7'000'000'000'000;
  for (std::int32_t n = 0; n < 2; ++n) {
    TraceBuilder node(n, 2);
    const std::int64_t offset = n == 0 ? 0 : zero - 12'345;
    if (n == 1) node.trace().info.clock_offsets = {{0, offset}};
    node.thread("worker 0");
    for (std::int64_t at = zero + n * std::int64_t{100}; at < zero + 1'000'000;) {
      const auto length = static_cast<std::int64_t>(random() % 5'000);
      node.task(at - offset, at + length - offset, 1, 1);
      const auto begin = static_cast<std::uint64_t>(at - zero);
      expected.emplace(fmt::format("node {}/worker 0", n), begin,
                       begin + static_cast<std::uint64_t>(std::max<std::int64_t>(length, 1)));
      at += std::max<std::int64_t>(length, 1) + static_cast<std::int64_t>(random() % 2) * 77;
    }
    traces.push_back(node.trace());
  }

  const PerfettoTrace trace = exported(traces);

  std::multiset<std::tuple<std::string, std::uint64_t, std::uint64_t>> seen;
  for (const auto& slice : trace.slices()) seen.emplace(slice.track, slice.start, slice.end);
  EXPECT_EQ(seen, expected);
}

TEST_F(PerfettoExport, has_a_flow_for_each_dependency_and_each_message) {
  RunBuilder build(2, 2);
  build.task(0, 0, "make", 0, 10, {changes(0, 0)});
  build.task(0, 1, "near", 11, 20, {changes(1, 0), reads(0, 1)});
  build.message(0, 1, 0, 1, 12, 25, 2);
  build.task(1, 0, "far", 26, 30, {changes(2, 0), reads(0, 1)});
  build.task(1, 1, "last", 31, 40, {changes(2, 1), reads(0, 1)});
  build.task(1, 1, "other", 41, 50, {changes(2, 1), reads(0, 1)}, 1);

  const PerfettoTrace trace = exported(build.nodes());

  EXPECT_EQ(trace.flows(), (Flows{"0 make tile 0 -> 0 near tile 1", "0 make tile 0 -> 1 far tile 2",
                                  "0 make tile 0 -> 1 last tile 2", "1 far tile 2 -> 1 last tile 2",
                                  "0 send matrix 0 tile 0 -> 1 receive matrix 0 tile 0"}))
      << "of the same job alone";
  EXPECT_EQ(written_.dependencies, 4U);
  EXPECT_EQ(written_.messages, 1U);
}

TEST_F(PerfettoExport, draws_flows_between_tasks_that_began_at_the_same_time) {
  RunBuilder build(1, 2);
  build.task(0, 1, "make", 5, 5, {changes(0, 0)});
  build.task(0, 0, "use", 5, 9, {changes(1, 0), reads(0, 1)});
  EXPECT_EQ(exported(build.nodes()).flows(), (Flows{"0 make tile 0 -> 0 use tile 1"}));
}

TEST_F(PerfettoExport, leaves_messages_alone_whose_other_end_is_not_there_or_was_earlier) {
  TraceBuilder node0(0, 2);
  TraceBuilder node1(1, 2);
  node0.thread("mpi").message(RecordKind::send, 1, 1000, 1100, 4);
  node0.message(RecordKind::send, 1, 1200, 1300, 5);
  node1.thread("mpi").message(RecordKind::receive, 0, 500, 600, 4);
  const PerfettoTrace trace = exported({node0.trace(), node1.trace()});
  EXPECT_EQ(trace.slices().size(), 3U);
  EXPECT_TRUE(trace.flows().empty());
  node1.trace().info.clock_offsets = {{0, 600}};
  EXPECT_EQ(exported({node0.trace(), node1.trace()}).flows().size(), 1U);
}

TEST_F(PerfettoExport, gives_overlapping_tasks_of_a_device_rows_and_their_own_flows) {
  RunBuilder build(1, 1);
  NodeTrace& node = build.nodes()[0];
  node.threads[0].name = "device 0";
  build.task(0, 0, "a", 0, 100, {changes(0, 0)});
  build.task(0, 0, "b", 50, 150, {changes(1, 0)});
  build.task(0, 0, "c", 60, 90, {changes(2, 0)});
  build.task(0, 0, "d", 150, 200, {changes(3, 0), reads(0, 1), reads(1, 1), reads(2, 1)});

  const PerfettoTrace trace = exported(build.nodes());

  EXPECT_EQ(trace.tracks(), (Names{"node 0", "node 0/device 0", "node 0/device 0/device 0 (2)",
                                   "node 0/device 0/device 0 (3)", "node 0/mpi"}));
  EXPECT_EQ(trace.names("node 0/device 0"), (Names{"a tile 0", "d tile 3"}));
  EXPECT_EQ(trace.flows(), (Flows{"0 a tile 0 -> 0 d tile 3", "0 b tile 1 -> 0 d tile 3",
                                  "0 c tile 2 -> 0 d tile 3"}));
}

TEST_F(PerfettoExport, counts_per_name_and_place_in_order_of_time) {
  TraceBuilder node(0, 1);
  node.thread("worker 0").counter(100, 5).counter(300, -3).counter(150, 1, 2);
  node.thread("worker 1").counter(200, 4);
  const PerfettoTrace trace = exported({node.trace()});
  using Values = std::vector<std::pair<std::uint64_t, std::int64_t>>;
  EXPECT_EQ(trace.values("node 0/ready tasks, host"), (Values{{0, 5}, {100, 4}, {200, -3}}));
  EXPECT_EQ(trace.values("node 0/ready tasks, device 1"), (Values{{50, 1}}));
  EXPECT_EQ(written_.values, 4U);
}

TEST_F(PerfettoExport, sends_a_name_once_per_node) {
  std::vector<NodeTrace> traces;
  for (std::int32_t n = 0; n < 2; ++n) {
    TraceBuilder node(n, 2);
    node.thread("worker 0");
    for (std::int64_t i = 0; i < 1000; ++i) node.task(10 * i, 10 * i + 10, 5, 3);
    traces.push_back(node.trace());
  }
  exported(traces);
  const std::string bytes = contents(file("t.perfetto"));
  std::size_t count = 0;
  for (auto at = bytes.find("gsmm (5, 3)"); at != std::string::npos;
       at = bytes.find("gsmm (5, 3)", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, 2U);
  EXPECT_LT(bytes.size(), std::size_t{200'000});
}

TEST_F(PerfettoExport, takes_texts_of_any_kind) {
  TraceBuilder node(0, 1);
  node.trace().names[0] = "q\"uote \\ \n \xc3\xa9";
  node.thread("not UTF-8 \xff").task(0, 10, 1, 2);
  const PerfettoTrace trace = exported({node.trace()});
  EXPECT_EQ(trace.names("node 0/not UTF-8 \xef\xbf\xbd"), (Names{"q\"uote \\ \n \xc3\xa9 (1, 2)"}));
}

TEST_F(PerfettoExport, of_nothing_is_still_a_trace) {
  EXPECT_TRUE(exported({}).tracks().empty());
  TraceBuilder node(0, 1);
  node.thread("worker 0");
  EXPECT_EQ(exported({node.trace()}).tracks(), (Names{"node 0", "node 0/worker 0"}));
}

TEST_F(PerfettoExport, of_a_damaged_run_has_what_is_left) {
  RunBuilder build(2, 1);
  build.task(0, 0, "make", 0, 10, {changes(0, 0)});
  build.task(1, 0, "use", 20, 30, {changes(1, 0), reads(0, 1)});
  trace::prepare_run_folder(file("run"));
  for (const NodeTrace& node : build.nodes()) {
    trace::write_node_file(file("run") / trace::node_file_name(node.node), node);
  }
  const auto node0 = file("run") / "node-0.trace";
  const std::string whole = contents(node0);
  replace_contents(node0, whole.substr(0, whole.size() - 8));
  SalvagedRun run = salvage_run(file("run"));
  EXPECT_EQ(run.damages.size(), 1U);
  EXPECT_EQ(exported(run.traces).flows().size(), 1U) << "only the file's end is not there";

  replace_contents(node0, whole.substr(0, whole.size() / 2));
  run = salvage_run(file("run"));
  EXPECT_EQ(run.damages.size(), 1U);
  const PerfettoTrace trace = exported(run.traces);
  EXPECT_TRUE(trace.flows().empty());
  EXPECT_EQ(trace.names("node 1/worker 0"), (Names{"use tile 1"}));
}

TEST_F(PerfettoExport, that_cannot_be_leaves_the_old_file) {
  replace_contents(file("t.perfetto"), "old");
  const std::vector<NodeTrace> twice{TraceBuilder(1, 2).trace(), TraceBuilder(1, 2).trace()};
  const auto error = [&](const std::vector<NodeTrace>& traces, const std::string& name) {
    return error_of([&] { export_to_perfetto(traces, file(name)); });
  };
  EXPECT_NE(error(twice, "t.perfetto").find("both of node 1"), std::string::npos);
  const std::vector<NodeTrace> mixed{TraceBuilder(0, 2).trace(), TraceBuilder(1, 4).trace()};
  EXPECT_NE(error(mixed, "t.perfetto").find("another run"), std::string::npos);
  TraceBuilder unsound(0, 1);
  unsound.thread("worker 0").task(0, 10, 1, 2);
  unsound.trace().threads[0].records.pop_back();
  EXPECT_NE(error({unsound.trace()}, "t.perfetto").find("accesses"), std::string::npos);
  EXPECT_EQ(contents(file("t.perfetto")), "old");
  EXPECT_NE(error({}, "nowhere/t").find("nowhere/t"), std::string::npos);
  EXPECT_EQ(files_in_folder(), Names{"t.perfetto"});
}

}  // namespace heddle::replay
