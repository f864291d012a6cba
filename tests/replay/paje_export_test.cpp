#include "replay/export/paje_export.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "node-runtime/trace/node_file.hpp"
#include "node-runtime/trace/run_folder.hpp"
#include "tests/replay/paje_reader.hpp"
#include "tests/replay/run_builder.hpp"
#include "tests/trace/trace_fixture.hpp"

namespace heddle::replay {
namespace {

using test::changes;
using test::PajeTrace;
using test::reads;
using test::RunBuilder;
using trace::NodeTrace;
using trace::RecordKind;
using trace::WaitCause;
using trace::test::contents;
using trace::test::error_of;
using trace::test::replace_contents;
using trace::test::TraceBuilder;
using Names = std::vector<std::string>;

class PajeExport : public trace::test::TraceTest {
 protected:
  PajeTrace exported(const std::vector<NodeTrace>& traces) {
    written_ = export_to_paje(traces, file("t.paje"));
    PajeTrace result(contents(file("t.paje")));
    EXPECT_EQ(result.states().size(), written_.slices);
    EXPECT_EQ(result.links().size(), written_.dependencies + written_.messages);
    return result;
  }
  RunExport written_;
};

}  // namespace

TEST_F(PajeExport, has_a_container_for_each_row_of_each_node) {
  TraceBuilder node0(0, 2);
  node0.thread("mpi", 20).message(RecordKind::send, 1, 1500, 1600, 4);
  node0.thread("worker 0", 10).task(1000, 2000, 5, 3).wait(2000, 2500, WaitCause::window_full);
  node0.thread("copy", 15).copy(1200, 1300, 2).fetch(1250, 1500, 4);
  TraceBuilder node1(1, 2);
  node1.thread("worker 0", 10);

  const PajeTrace trace = exported({node0.trace(), node1.trace()});

  EXPECT_EQ(trace.containers(),
            (Names{"run", "run/node 0", "run/node 1", "run/node 0/worker 0", "run/node 0/copy",
                   "run/node 0/copy: copies", "run/node 0/copy: copies (2)", "run/node 0/mpi",
                   "run/node 0/mpi: sends", "run/node 1/worker 0"}));
  EXPECT_EQ(trace.states_of("run/node 0/worker 0"),
            (Names{"gsmm [0, 1000)", "wait: window full [1000, 1500)"}));
  EXPECT_EQ(trace.states_of("run/node 0/copy: copies"), Names{"copy [200, 300)"});
  EXPECT_EQ(trace.states_of("run/node 0/copy: copies (2)"), Names{"fetch [250, 500)"});
  EXPECT_EQ(trace.states_of("run/node 0/mpi: sends"), Names{"send [500, 600)"});
}

TEST_F(PajeExport, tells_of_a_task_what_it_made_and_of_a_transfer_how_much) {
  TraceBuilder node(0, 1);
  node.thread("worker 0").task(1000, 2000, 5, 3).copy(1200, 1300, 2);
  node.wait(2000, 3000, WaitCause::copy);
  const PajeTrace trace = exported({node.trace()});
  const auto& task = trace.states().at(0);
  EXPECT_EQ(task.fields.at("Tile"), "A (5, 3)");
  EXPECT_EQ(task.fields.at("Job"), "0");
  EXPECT_EQ(task.fields.at("Order"), "0");
  EXPECT_EQ(task.fields.at("Priority"), "0");
  const auto& copy = trace.states().at(1);
  EXPECT_EQ(copy.fields.at("Tile"), "A (2, 0)");
  EXPECT_EQ(copy.fields.at("Bytes"), "4096");
  EXPECT_EQ(trace.states().at(2).value, "wait: copy") << "is not what a copy is";
}

TEST_F(PajeExport, has_operations_of_groups) {
  TraceBuilder node(0, 4);
  node.thread("collectives").collective(1000, 3500, 7).collective(2000, 4000, 8);
  const PajeTrace trace = exported({node.trace()});
  EXPECT_EQ(trace.states_of("run/node 0/collectives"), Names{"all_reduce [0, 2500)"});
  EXPECT_EQ(trace.states_of("run/node 0/collectives (2)"), Names{"all_reduce [1000, 3000)"});
}

TEST_F(PajeExport, has_the_times_of_the_records_on_the_clock_of_node_0_from_zero) {
  std::mt19937_64 random(7);
  std::multiset<std::string> expected;
  std::vector<NodeTrace> traces;
  constexpr std::int64_t zero = 7'000'000'000'000;
  for (std::int32_t n = 0; n < 2; ++n) {
    TraceBuilder node(n, 2);
    const std::int64_t offset = n == 0 ? 0 : zero - 12'345;
    if (n == 1) node.trace().info.clock_offsets = {{0, offset}};
    node.thread("worker 0");
    for (std::int64_t at = zero + n * std::int64_t{100}; at < zero + 5'000'000'000;) {
      const auto length = 1 + static_cast<std::int64_t>(random() % 10'000'000);
      node.task(at - offset, at + length - offset, 1, 1);
      expected.insert(fmt::format("node {} [{}, {})", n, at - zero, at + length - zero));
      at += length + static_cast<std::int64_t>(random() % 2) * 77;
    }
    traces.push_back(node.trace());
  }

  const PajeTrace trace = exported(traces);

  std::multiset<std::string> seen;
  for (const auto& state : trace.states()) {
    seen.insert(
        fmt::format("{} [{}, {})", state.container.substr(4, 6), state.start_ns, state.end_ns));
  }
  EXPECT_EQ(seen, expected);
}

TEST_F(PajeExport, links_sends_with_receives_and_tasks_with_their_readers_on_other_nodes) {
  RunBuilder build(2, 2);
  build.task(0, 0, "make", 0, 10, {changes(0, 0)});
  build.task(0, 1, "near", 11, 20, {changes(1, 0), reads(0, 1)});
  build.message(0, 1, 0, 1, 12, 25, 2);
  build.task(1, 0, "far", 26, 30, {changes(2, 0), reads(0, 1)});
  build.task(1, 1, "too early", 5, 9, {changes(3, 0), reads(0, 1)});

  const PajeTrace trace = exported(build.nodes());

  EXPECT_EQ(trace.links(),
            (std::set<PajeTrace::Link>{
                {"dependency", "run/node 0/worker 0", "run/node 1/worker 0", 10'000, 26'000},
                {"message", "run/node 0/mpi: sends", "run/node 1/mpi: receives", 12'000, 25'000}}))
      << "clocks that are apart make no link that leads backwards";
}

TEST_F(PajeExport, links_tasks_that_follow_each_other_at_once) {
  RunBuilder build(2, 1);
  build.task(1, 0, "use", 10, 30, {changes(2, 0), reads(0, 1)});
  build.task(0, 0, "make", 0, 10, {changes(0, 0)});
  EXPECT_EQ(exported(build.nodes()).links().size(), 1U);
}

TEST_F(PajeExport, leaves_messages_alone_whose_other_end_is_not_there_or_was_earlier) {
  TraceBuilder node0(0, 2);
  TraceBuilder node1(1, 2);
  node0.thread("mpi").message(RecordKind::send, 1, 1000, 1100, 4);
  node0.message(RecordKind::send, 1, 1200, 1300, 5);
  node1.thread("mpi").message(RecordKind::receive, 0, 500, 600, 4);
  EXPECT_TRUE(exported({node0.trace(), node1.trace()}).links().empty());
  node1.trace().info.clock_offsets = {{0, 600}};
  EXPECT_EQ(exported({node0.trace(), node1.trace()}).links().size(), 1U);
}

TEST_F(PajeExport, gives_overlapping_tasks_of_a_device_containers_of_their_own) {
  TraceBuilder node(0, 1);
  node.thread("device 0").task(0, 100, 1, 1).task(50, 150, 2, 2).task(100, 200, 3, 3);
  node.task(0, 0, 4, 4);
  const PajeTrace trace = exported({node.trace()});
  EXPECT_EQ(trace.states_of("run/node 0/device 0"), (Names{"gsmm [0, 1)", "gsmm [50, 150)"}));
  EXPECT_EQ(trace.states_of("run/node 0/device 0 (2)"),
            (Names{"gsmm [0, 100)", "gsmm [100, 200)"}));
}

TEST_F(PajeExport, has_counters_as_variables_of_their_node) {
  TraceBuilder node(0, 1);
  node.thread("worker 0").counter(100, 5).counter(300, -3).counter(150, 1, 2);
  node.thread("worker 1").counter(200, 4);
  const PajeTrace trace = exported({node.trace()});
  using Values = std::vector<std::pair<std::int64_t, double>>;
  EXPECT_EQ(trace.values("run/node 0/ready tasks, host"), (Values{{0, 5}, {100, 4}, {200, -3}}));
  EXPECT_EQ(trace.values("run/node 0/ready tasks, device 1"), (Values{{50, 1}}));
  EXPECT_EQ(written_.values, 4U);
}

TEST_F(PajeExport, takes_texts_of_any_kind) {
  TraceBuilder node(0, 1);
  node.trace().names[0] = "q\"uote \\ \n \xc3\xa9";
  node.thread("two\nlines \xff").task(0, 10, 1, 2);
  const PajeTrace trace = exported({node.trace()});
  EXPECT_EQ(trace.states_of("run/node 0/two lines \xef\xbf\xbd"),
            Names{"q'uote \\   \xc3\xa9 [0, 10)"});
}

TEST_F(PajeExport, of_nothing_is_still_a_trace) {
  EXPECT_EQ(exported({}).containers(), Names{"run"});
  TraceBuilder node(0, 1);
  node.thread("worker 0");
  EXPECT_EQ(exported({node.trace()}).containers(),
            (Names{"run", "run/node 0", "run/node 0/worker 0"}));
}

TEST_F(PajeExport, of_a_damaged_run_has_what_is_left) {
  RunBuilder build(2, 1);
  build.task(0, 0, "make", 0, 10, {changes(0, 0)});
  build.task(1, 0, "use", 20, 30, {changes(1, 0), reads(0, 1)});
  trace::prepare_run_folder(file("run"));
  for (const NodeTrace& node : build.nodes()) {
    trace::write_node_file(file("run") / trace::node_file_name(node.node), node);
  }
  EXPECT_EQ(exported(salvage_run(file("run")).traces).links().size(), 1U);
  const auto node0 = file("run") / "node-0.trace";
  const std::string whole = contents(node0);
  replace_contents(node0, whole.substr(0, whole.size() / 2));
  const SalvagedRun run = salvage_run(file("run"));
  EXPECT_EQ(run.damages.size(), 1U);
  const PajeTrace trace = exported(run.traces);
  EXPECT_TRUE(trace.links().empty());
  EXPECT_EQ(trace.states_of("run/node 1/worker 0"), Names{"use [0, 10000)"});
}

TEST_F(PajeExport, that_cannot_be_leaves_the_old_file) {
  replace_contents(file("t.paje"), "old");
  const std::vector<NodeTrace> twice{TraceBuilder(1, 2).trace(), TraceBuilder(1, 2).trace()};
  const std::string error = error_of([&] { export_to_paje(twice, file("t.paje")); });
  EXPECT_NE(error.find("both of node 1"), std::string::npos) << error;
  EXPECT_EQ(contents(file("t.paje")), "old");
  EXPECT_EQ(files_in_folder(), Names{"t.paje"});
}

}  // namespace heddle::replay
