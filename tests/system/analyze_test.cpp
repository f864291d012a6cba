#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

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
  EXPECT_LE(one.at("bounds").at("critical_path").get<double>(), seconds);
  EXPECT_LE(one.at("bounds").at("area").get<double>(), seconds);
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
  std::filesystem::remove(file);
  const Ended without = run(on(1, {"analyze", "run"}));
  EXPECT_EQ(without.status, 1);
  EXPECT_NE(without.out.find("the trace of node 1 is not there"), std::string::npos) << without.out;
}

TEST_F(Analyze, names_what_is_wrong_with_its_input) {
  const Ended nowhere = run(on(1, {"analyze", "nowhere"}));
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_NE(nowhere.error.find("nowhere"), std::string::npos) << nowhere.error;
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
  const Ended table = run(on(1, {"trace", "export", "run", "--to", "csv", "--output", "t.csv"}));
  ASSERT_EQ(table.status, 0) << table.error;
  const std::string csv = testing::read_file(folder_ / "t.csv");
  EXPECT_TRUE(csv.starts_with("kind,node,thread,name,")) << csv.substr(0, 100);
  EXPECT_NE(csv.find("\ntask,1,worker 1,"), std::string::npos);
  EXPECT_NE(csv.find("\nreceive,"), std::string::npos);
  const Ended viewer =
      run(on(1, {"trace", "export", "run", "--to", "chrome", "--output", "t.json"}));
  ASSERT_EQ(viewer.status, 0) << viewer.error;
  EXPECT_GT(json::parse(testing::read_file(folder_ / "t.json")).at("traceEvents").size(), 120U);
  const Ended unknown = run(on(1, {"trace", "export", "run", "--to", "xml", "--output", "t.xml"}));
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.error.find("heddle trace export --help tells more"), std::string::npos)
      << unknown.error;
}

}  // namespace heddle
