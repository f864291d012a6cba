#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "node-runtime/trace/node_file.hpp"
#include "tests/system/heddle_run.hpp"

/// `heddle analyze` on what `heddle solve --trace` writes.
namespace heddle {
namespace {

using nlohmann::json;
using testing::Ended;
using testing::HeddleRun;

class Analyze : public HeddleRun {
 protected:
  static constexpr const char* problem =
      "problem: {matrix: {generate: spd, n: 400}}\nlayout: {tile: 50, strip: 0}\n"
      "runtime: {cpu_workers: 2}\n";
};

}  // namespace

/// What no test can bring about is written into what a run says of itself.
TEST_F(Analyze, and_replay_tell_that_a_virtual_machines_host_disturbed_a_run) {
  ASSERT_EQ(solve(problem, 1, {"--trace", "run"}).status, 0);
  const std::filesystem::path file = folder_ / "run/node-0.trace";
  trace::NodeTrace trace = trace::read_node_file(file);
  json metadata = json::parse(trace.info.metadata);
  json& about = metadata.at("about");
  ASSERT_TRUE(about.at("stolen").is_number());  // by a system that says so
  const double workers_s = 2 * about.at("seconds").at("factor").get<double>();
  for (const double share : {0.004, 0.125}) {
    about["stolen"] = share * workers_s;
    trace.info.metadata = metadata.dump();
    trace::write_node_file(file, trace);
    const Ended analysed = run(on(1, {"analyze", "run"}));
    ASSERT_EQ(analysed.status, 0) << analysed.error;
    const Ended replayed = run(on(1, {"replay", "run"}));
    ASSERT_EQ(replayed.status, 0) << replayed.error;
    const bool is_told = share > 0.01;
    EXPECT_EQ(analysed.out.find("disturbed: this virtual machine's host gave 12.5 % of the "
                                "workers' time to others") != std::string::npos,
              is_told)
        << analysed.out;
    EXPECT_EQ(replayed.out.find("host gave 12.5 % of the run's workers' time") != std::string::npos,
              is_told)
        << replayed.out;
  }
}

TEST_F(Analyze, tells_what_bounded_a_run_of_two_nodes) {
  const Ended solved = solve(problem, 2, {"--trace", "run", "--report", "solve.json"});
  ASSERT_EQ(solved.status, 0) << solved.error;
  const Ended ended = run(on(1, {"analyze", "run", "--report", "a.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("cholesky, 400 x 400, tiles of 50"), std::string::npos) << ended.out;
  const json runs = json::parse(testing::read_file(folder_ / "a.json")).at("runs");
  ASSERT_EQ(runs.size(), 1U);
  const json& one = runs[0];
  // 8 x 8 tiles: 8 potrf, 28 trsm, 28 syrk and 56 gsmm.
  EXPECT_EQ(one.at("tasks"), 120);
  EXPECT_EQ(one.at("damages"), json::array());
  EXPECT_EQ(one.at("threads").size(), 4U);
  EXPECT_GT(one.at("messages").at("count").get<int>(), 0);
  const double seconds = one.at("seconds").get<double>();
  for (const json& thread : one.at("threads")) {
    double sum = thread.at("busy").get<double>();
    for (const auto& [cause, idle] : thread.at("idle").items()) sum += idle.get<double>();
    EXPECT_NEAR(sum, seconds, 0.01 * seconds) << thread.dump();
  }
  ASSERT_EQ(one.at("services").size(), 4U) << "generation and mpi of two nodes";
  for (const json& thread : one.at("services")) {
    double sum = thread.at("busy").get<double>() + thread.at("unknown").get<double>();
    for (const auto& [cause, wait] : thread.at("waiting").items()) sum += wait.get<double>();
    EXPECT_NEAR(sum, seconds, 0.01 * seconds) << thread.dump();
  }
  const json& bounds = one.at("bounds");
  EXPECT_LE(bounds.at("mixed").get<double>(), seconds * 1.001);
  for (const char* bound : {"area", "placed", "critical_path"}) {
    EXPECT_GT(bounds.at(bound).get<double>(), 0) << bound;
    EXPECT_LE(bounds.at(bound).get<double>(), bounds.at("mixed").get<double>()) << bound;
  }
  EXPECT_EQ(bounds.at("products").is_null(), bounds.contains("products_missing"));
  EXPECT_EQ(one.at("critical_tasks").at("first").at("task"), "potrf (0, 0)");
  EXPECT_EQ(one.at("critical_tasks").at("last").at("task"), "potrf (7, 7)");
  EXPECT_EQ(one.at("about").at("n"), 400);
}

TEST_F(Analyze, reads_what_is_left_of_a_run) {
  ASSERT_EQ(solve(problem, 2, {"--trace", "run"}).status, 0);
  const std::string file = folder_ / "run/node-1.trace";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  const Ended ended = run(on(1, {"analyze", "run"}));
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.out.find("not whole: trace file 'run/node-1.trace' is truncated"),
            std::string::npos)
      << ended.out;
  EXPECT_NE(ended.out.find("unknown    tasks"), std::string::npos) << "its workers' time\n"
                                                                   << ended.out;
  std::filesystem::remove(file);
  const Ended without = run(on(1, {"analyze", "run"}));
  EXPECT_EQ(without.status, 1);
  EXPECT_NE(without.out.find("the trace of node 1 is not there"), std::string::npos) << without.out;
}

TEST_F(Analyze, reads_the_trace_of_a_run_that_was_killed) {
  folder_.write("problem.yaml",
                "problem: {matrix: {generate: spd, n: 12000}}\nlayout: {tile: 100, strip: 0}\n"
                "runtime: {cpu_workers: 2}\n");
  testing::Process killed(alone({"solve", "problem.yaml", "--trace", "run"}), folder_.path());
  const std::string file = folder_ / "run/node-0.trace";
  const auto has_grown = [&] {
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    return !error && size > 1'000'000;
  };
  const bool is_there = testing::eventually(has_grown, std::chrono::seconds(50));
  killed.signal(SIGKILL);
  EXPECT_EQ(killed.wait().status, 128 + SIGKILL);
  ASSERT_TRUE(is_there);
  const Ended ended = run(on(1, {"analyze", "run", "--report", "a.json"}));
  EXPECT_EQ(ended.status, 1) << ended.error;
  EXPECT_NE(ended.out.find("its run did not come to its end"), std::string::npos) << ended.out;
  const json one = json::parse(testing::read_file(folder_ / "a.json")).at("runs").at(0);
  EXPECT_GT(one.at("tasks"), 1000);
  EXPECT_EQ(one.at("about").at("n"), 12000);
  EXPECT_EQ(one.at("about").at("cpu_workers"), 2);
}

TEST_F(Analyze, of_a_run_that_failed_tells_what_there_is) {
  testing::Dense matrix = testing::spd(300);
  matrix(200, 200) = -1;
  folder_.write("k.npy", testing::npy(matrix));
  const Ended solved = solve(
      "problem: {matrix: {file: k.npy}}\nlayout: {tile: 50, strip: 0}\nruntime: {cpu_workers: 1}\n",
      2, {"--trace", "run"});
  ASSERT_EQ(solved.status, 3) << solved.error;
  const Ended ended = run(on(1, {"analyze", "run"}));
  EXPECT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find(", not_positive_definite"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("the run ended as not_positive_definite"), std::string::npos)
      << ended.out;
  // Node 0 alone has the report.
  const Ended rest = run(on(1, {"analyze", "run/node-1.trace", "--report", "a.json"}));
  EXPECT_EQ(rest.status, 1) << rest.error;
  EXPECT_NE(rest.out.find("the trace of node 0 is not there"), std::string::npos) << rest.out;
  EXPECT_NE(rest.out.find("products of matrices: the trace has no report of its run"),
            std::string::npos)
      << rest.out;
  const json one = json::parse(testing::read_file(folder_ / "a.json")).at("runs").at(0);
  EXPECT_TRUE(one.at("about").is_null());
  EXPECT_GT(one.at("tasks").get<int>(), 0);
}

TEST_F(Analyze, puts_several_runs_side_by_side) {
  ASSERT_EQ(solve(problem, 1, {"--trace", "a"}).status, 0);
  ASSERT_EQ(solve(problem, 2, {"--trace", "b", "--set", "layout.tile=100"}).status, 0);
  const Ended ended = run(on(1, {"analyze", "a", "b", "--report", "c.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("-83.3 %"), std::string::npos) << "tasks: 20 for 120: " << ended.out;
  const json all = json::parse(testing::read_file(folder_ / "c.json"));
  EXPECT_EQ(all.at("runs").size(), 2U);
  EXPECT_NE(ended.out.find("settings that differ"), std::string::npos) << ended.out;
  json settings;
  for (const json& row : all.at("settings")) settings[row.at("key")] = row.at("values");
  EXPECT_EQ(settings.at("nodes"), json::array({"1", "2"}));
  EXPECT_EQ(settings.at("tile").at(1), "100");
  EXPECT_FALSE(settings.contains("n")) << "they have that in common";
  const auto figure = [&](const std::string& what) {
    for (const json& row : all.at("comparison")) {
      if (row.at("what") == what) return row;
    }
    return json();
  };
  EXPECT_EQ(figure("tasks").at("values"), json::array({120.0, 20.0}));
  EXPECT_NEAR(figure("tasks").at("changes").at(1).get<double>(), 20.0 / 120 - 1, 1e-12);
  EXPECT_EQ(figure("gsmm").at("values"), json::array({56.0, 4.0}));
  EXPECT_EQ(figure("messages").at("values").at(0), 0.0);
  EXPECT_TRUE(figure("messages").at("changes").at(1).is_null()) << "there were none before";
  for (const char* what : {"time", "mixed", "mixed, of the time", "busy", "gsmm, median"}) {
    EXPECT_FALSE(figure(what).is_null()) << what;
  }
}

TEST_F(Analyze, names_what_is_wrong_with_its_input) {
  const Ended nowhere = run(on(1, {"analyze", "nowhere"}));
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_NE(nowhere.error.find("there is no run 'nowhere'"), std::string::npos) << nowhere.error;
  EXPECT_NE(nowhere.error.find("--trace nowhere writes one"), std::string::npos) << nowhere.error;
  folder_.write("p.npy", "no trace");
  const Ended other = run(on(1, {"analyze", "p.npy"}));
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.error.find("p.npy"), std::string::npos) << other.error;
  ASSERT_EQ(solve(problem, 1, {"--trace", "run"}).status, 0);
  const Ended job = run(on(1, {"analyze", "run", "--job", "77"}));
  EXPECT_EQ(job.status, 2);
  EXPECT_NE(job.error.find("no tasks of job 77; there are jobs"), std::string::npos) << job.error;
}

TEST_F(Analyze, replaces_an_older_run_and_nothing_else) {
  ASSERT_EQ(solve(problem, 2, {"--trace", "run"}).status, 0);
  ASSERT_EQ(solve(problem, 1, {"--trace", "run"}).status, 0);
  EXPECT_EQ(run(on(1, {"analyze", "run"})).status, 0);
  folder_.write("file", "something");
  const Ended ended = solve(problem, 1, {"--trace", "file"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.error.find("--trace"), std::string::npos) << ended.error;
  EXPECT_EQ(testing::read_file(folder_ / "file"), "something");
}

TEST_F(Analyze, exports_a_run_for_viewers_and_as_a_table) {
  ASSERT_EQ(solve(problem, 2, {"--trace", "run"}).status, 0);
  const Ended table = run(on(1, {"export", "run", "--to", "csv", "--output", "t.csv"}));
  ASSERT_EQ(table.status, 0) << table.error;
  const std::string csv = testing::read_file(folder_ / "t.csv");
  EXPECT_TRUE(csv.starts_with("kind,node,thread,name,")) << csv.substr(0, 100);
  EXPECT_NE(csv.find("\ntask,1,worker 1,"), std::string::npos);
  EXPECT_NE(csv.find("\nreceive,"), std::string::npos);
  EXPECT_NE(csv.find("\ncounter,1,generation,\"generated, job "), std::string::npos);
  const Ended viewer = run(on(1, {"export", "run", "--to", "chrome", "--output", "t.json"}));
  ASSERT_EQ(viewer.status, 0) << viewer.error;
  EXPECT_GT(json::parse(testing::read_file(folder_ / "t.json")).at("traceEvents").size(), 120U);
}

TEST_F(Analyze, exports_a_run_with_its_dependencies) {
  ASSERT_EQ(solve(problem, 2, {"--trace", "run"}).status, 0);
  const Ended perfetto =
      run(on(1, {"export", "run", "--to", "perfetto", "--output", "t.perfetto"}));
  ASSERT_EQ(perfetto.status, 0) << perfetto.error;
  EXPECT_NE(perfetto.out.find(" dependencies, "), std::string::npos) << perfetto.out;
  const std::string packets = testing::read_file(folder_ / "t.perfetto");
  for (const char* text : {"node 1", "worker 1", "potrf (0, 0)", "gsmm", "ready tasks, host"}) {
    EXPECT_NE(packets.find(text), std::string::npos) << text;
  }
  const Ended paje = run(on(1, {"trace", "export", "run", "--to", "paje", "--output", "t.paje"}));
  ASSERT_EQ(paje.status, 0) << paje.error;
  EXPECT_EQ(paje.error,
            "heddle: 'heddle trace export' is now 'heddle export'; the old name goes on working\n");
  const std::string lines = testing::read_file(folder_ / "t.paje");
  EXPECT_TRUE(lines.starts_with("%EventDef PajeDefineContainerType ")) << lines.substr(0, 100);
  EXPECT_NE(lines.find("\n13 "), std::string::npos) << "ends of links";
}

TEST_F(Analyze, exports_what_is_left_of_a_run) {
  ASSERT_EQ(solve(problem, 2, {"--trace", "run"}).status, 0);
  const std::string file = folder_ / "run/node-1.trace";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  for (const char* format : {"perfetto", "paje"}) {
    const Ended ended = run(on(1, {"export", "run", "--to", format, "--output", "t"}));
    EXPECT_EQ(ended.status, 1) << ended.error;
    EXPECT_NE(ended.out.find("not whole: trace file 'run/node-1.trace'"), std::string::npos)
        << ended.out;
    EXPECT_GT(testing::read_file(folder_ / "t").size(), 1000U) << format;
    std::filesystem::remove(folder_ / "t");
  }
}

TEST_F(Analyze, names_the_formats_to_export_to) {
  const Ended unknown = run(on(1, {"export", "run", "--to", "xml", "--output", "t.xml"}));
  EXPECT_EQ(unknown.status, 2);
  for (const char* part :
       {"perfetto, chrome, csv, paje", "'xml'", "heddle export --help tells more"}) {
    EXPECT_NE(unknown.error.find(part), std::string::npos) << unknown.error;
  }
}

}  // namespace heddle
