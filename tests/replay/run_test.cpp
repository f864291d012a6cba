#include "replay/run.hpp"

#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <string>

#include "node-runtime/trace/node_file.hpp"
#include "node-runtime/trace/run_folder.hpp"
#include "tests/replay/run_builder.hpp"
#include "tests/trace/trace_fixture.hpp"

namespace heddle::replay {
namespace {

using test::changes;
using test::reads;
using test::RunBuilder;
using trace::test::contents;
using trace::test::error_of;
using trace::test::replace_contents;

class RunFolder : public trace::test::TraceTest {
 protected:
  /// Of three nodes; each ran a task, and node 0 sent something to node 1.
  static RunBuilder example() {
    RunBuilder build(3, 1);
    build.task(0, 0, "make", 0, 10, {changes(0, 0)});
    build.message(0, 1, 0, 1, 12, 20, 2);
    build.task(1, 0, "use", 20, 30, {changes(1, 0), reads(0, 1)});
    build.task(2, 0, "make", 0, 10, {changes(2, 0)});
    return build;
  }
  void write(RunBuilder build, const std::string& folder) {
    trace::prepare_run_folder(file(folder));
    for (const trace::NodeTrace& node : build.nodes()) {
      trace::write_node_file(file(folder) / trace::node_file_name(node.node), node);
    }
  }
  [[nodiscard]] std::filesystem::path node_file(const std::string& folder,
                                                std::int32_t node) const {
    return file(folder) / trace::node_file_name(NodeId(node));
  }
};

}  // namespace

TEST_F(RunFolder, keeps_counters_and_what_matrices_are) {
  RunBuilder build = example();
  build.counter(1, "ready tasks", 7, 3);
  for (trace::NodeTrace& node : build.nodes()) node.matrices = {{0, "A", 4, 5}};
  write(build, "run");
  const RunTrace run = load_run(file("run"));
  ASSERT_EQ(run.counters.size(), 1U);
  EXPECT_EQ(run.counters[0].node, NodeId{1});
  EXPECT_EQ(run.names[run.counters[0].name.value()], "ready tasks");
  EXPECT_EQ(run.counters[0].time_ns, 7'000);
  EXPECT_EQ(run.counters[0].value, 3);
  ASSERT_EQ(run.matrices.size(), 1U) << "all nodes have the same";
  EXPECT_EQ(run.matrices[0].tile_columns, 5);
}

TEST_F(RunFolder, is_read_as_one_run) {
  write(example(), "run");
  const RunTrace run = load_run(file("run"));
  EXPECT_TRUE(run.damages.empty()) << run.damages[0];
  EXPECT_EQ(run.node_count, 3);
  ASSERT_EQ(run.tasks.size(), 3U);
  EXPECT_EQ(run.kernel_of(run.tasks[2]), "make") << "the nodes have numbered their names each";
  EXPECT_EQ(run.names.size(), 2U);
  ASSERT_EQ(run.messages.size(), 1U);
  EXPECT_EQ(run.messages[0].from, NodeId{0});
  EXPECT_EQ(run.messages[0].time.start_ns, 12'000) << "when it was sent, not posted";
  EXPECT_EQ(run.accesses_of(run.tasks[1]).size(), 2U);
  EXPECT_EQ(run.makespan()->ns(), 30'000);
  EXPECT_EQ(run.threads[0].role, Role::worker);
  EXPECT_EQ(run.threads[1].role, Role::messages);
}

TEST_F(RunFolder, puts_times_on_the_clock_of_node_0) {
  RunBuilder build = example();
  build.nodes()[2].info.clock_offsets = {{0, 1'000'000}};
  const RunTrace run = build.run();
  EXPECT_EQ(run.tasks[2].time.start_ns, 1'000'000);
  EXPECT_EQ(run.tasks[0].time.start_ns, 0);
}

TEST_F(RunFolder, without_a_node_names_it) {
  write(example(), "run");
  std::filesystem::remove(node_file("run", 1));
  const RunTrace run = load_run(file("run"));
  ASSERT_EQ(run.damages.size(), 1U);
  EXPECT_EQ(run.damages[0], "of 3 nodes, the trace of node 1 is not there");
  EXPECT_EQ(run.tasks.size(), 2U);
}

TEST_F(RunFolder, with_a_cut_file_reads_the_rest) {
  write(example(), "run");
  const std::string whole = contents(node_file("run", 0));
  replace_contents(node_file("run", 0), whole.substr(0, whole.size() - 8));
  const RunTrace run = load_run(file("run"));
  ASSERT_EQ(run.damages.size(), 1U);
  EXPECT_NE(run.damages[0].find("node-0.trace"), std::string::npos) << run.damages[0];
  EXPECT_EQ(run.tasks.size(), 3U) << "only its end is not there";
  for (const Thread& thread : run.threads) {
    EXPECT_EQ(thread.is_cut, thread.node == NodeId{0}) << thread.name;
  }
}

TEST_F(RunFolder, with_a_file_of_something_else_reads_the_rest) {
  write(example(), "run");
  replace_contents(node_file("run", 2), "something else");
  const RunTrace run = load_run(file("run"));
  EXPECT_EQ(run.tasks.size(), 2U);
  ASSERT_EQ(run.damages.size(), 2U);
  EXPECT_NE(run.damages[0].find("node-2.trace"), std::string::npos) << run.damages[0];
}

TEST_F(RunFolder, takes_a_file_that_does_not_say_which_run_it_is_of_and_names_it) {
  for (const int silent : {0, 2}) {
    RunBuilder build = example();
    build.nodes()[static_cast<std::size_t>(silent)].info.metadata = "{}";
    write(build, "run");
    const RunTrace run = load_run(file("run"));
    EXPECT_EQ(run.tasks.size(), 3U);
    ASSERT_EQ(run.damages.size(), 1U);
    EXPECT_EQ(run.damages[0],
              "the trace of node " + std::to_string(silent) + " does not say which run it is of");
  }
}

TEST_F(RunFolder, knows_the_hosts_of_nodes_that_say_them) {
  RunBuilder build = example();
  build.nodes()[0].info.metadata = R"({"run":"a","node":{"host":"h7","host_cores":4}})";
  build.nodes()[1].info.metadata = R"({"run":"a","node":{"host":3}})";
  build.nodes()[2].info.metadata = R"({"run":"a","node":{"host":"h8"}})";
  const RunTrace run = build.run();
  EXPECT_EQ(run.hosts, (std::map<NodeId, std::string>{{NodeId{0}, "h7"}, {NodeId{2}, "h8"}}));
  EXPECT_NE(run.where.find("\"host_cores\":4"), std::string::npos) << run.where;
}

TEST_F(RunFolder, knows_how_far_generation_was_and_what_tiles_are_called) {
  RunBuilder build = example();
  build.generated(1, 5, 7).generation_waits(1, trace::WaitCause::window_full, 7, 9);
  build.nodes()[1].matrices = {{0, "a", 2, 2}};
  const RunTrace run = build.run();
  ASSERT_EQ(run.generated.size(), 1U);
  EXPECT_EQ(run.generated[0].node, NodeId{1});
  EXPECT_EQ(run.generated[0].job, 0);
  EXPECT_EQ(run.generated[0].order, 5U);
  EXPECT_EQ(run.generated[0].time_ns, 7'000);
  EXPECT_EQ(run.label_of(run.tasks[0]), run.kernel_of(run.tasks[0]) + " (0, 0)");
  for (const Thread& thread : run.threads) {
    EXPECT_EQ(run.waits_of(thread).size(), thread.role == Role::generation ? 1U : 0U);
  }
}

TEST_F(RunFolder, with_files_of_two_runs_is_refused) {
  write(example(), "run");
  RunBuilder other = example();
  other.nodes()[1].info.metadata = R"({"run":"b"})";
  trace::write_node_file(node_file("run", 1), other.nodes()[1]);
  const std::string error = error_of([&] { static_cast<void>(load_run(file("run"))); });
  EXPECT_NE(error.find("node-1.trace' is of another run"), std::string::npos) << error;
}

TEST_F(RunFolder, with_a_renamed_file_names_it) {
  write(example(), "run");
  std::filesystem::copy_file(node_file("run", 0), node_file("run", 2),
                             std::filesystem::copy_options::overwrite_existing);
  const RunTrace run = load_run(file("run"));
  ASSERT_FALSE(run.damages.empty());
  EXPECT_NE(run.damages[0].find("was it renamed"), std::string::npos) << run.damages[0];
}

TEST_F(RunFolder, that_is_empty_or_missing_is_an_error_that_says_what_to_do) {
  std::filesystem::create_directory(file("empty"));
  const std::string error = error_of([&] { static_cast<void>(load_run(file("empty"))); });
  EXPECT_NE(error.find("heddle solve"), std::string::npos) << error;
  EXPECT_NE(error_of([&] { static_cast<void>(load_run(file("nowhere"))); }).find("nowhere"),
            std::string::npos);
}

TEST_F(RunFolder, of_a_smaller_run_keeps_no_files_of_the_larger_one_before_it) {
  write(example(), "run");
  RunBuilder small(1, 1);
  small.task(0, 0, "only", 0, 1, {changes(0, 0)});
  write(small, "run");
  const RunTrace run = load_run(file("run"));
  EXPECT_TRUE(run.damages.empty());
  EXPECT_EQ(run.tasks.size(), 1U);
}

TEST_F(RunFolder, is_not_made_where_a_file_is) {
  replace_contents(file("run"), "a file");
  const std::string error = error_of([&] { trace::prepare_run_folder(file("run")); });
  EXPECT_NE(error.find("run'"), std::string::npos) << error;
  EXPECT_EQ(contents(file("run")), "a file");
}

TEST_F(RunFolder, may_be_a_single_file) {
  write(example(), "run");
  const RunTrace run = load_run(node_file("run", 1));
  EXPECT_EQ(run.tasks.size(), 1U);
  ASSERT_EQ(run.damages.size(), 1U);
  EXPECT_EQ(run.damages[0], "of 3 nodes, the trace of nodes 0, 2 is not there");
}

}  // namespace heddle::replay
