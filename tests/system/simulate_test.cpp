#include <nlohmann/json.hpp>
#include <string>

#include "tests/system/heddle_run.hpp"

/// `heddle simulate`, on machines of files, whose results do not depend on this one.
namespace heddle {
namespace {

using nlohmann::json;
using testing::Ended;
using testing::HeddleRun;

class Simulate : public HeddleRun {
 protected:
  void SetUp() override {
    HeddleRun::SetUp();
    folder_.write("p.yaml",
                  "problem: {matrix: {generate: spd, n: 800}}\nlayout: {tile: 100, strip: 0}\n");
    folder_.write("q.yaml",
                  "problem: {factorization: qr, matrix: {generate: random, m: 1200, n: 600}}\n"
                  "layout: {tile: 100, strip: 0, inner: 20, virtual: 2}\n");
    std::string machine =
        "heddle_simulated_machine: 1\nname: small\nnodes: 4\ncpu_workers: 3\n"
        "kernels:\n  host:\n";
    for (const char* kernel :
         {"potrf", "trsm", "syrk", "gsmm", "geqrt", "tsqrt", "unmqr", "tsmqr", "ttqrt", "ttmqr"}) {
      machine += std::string("    - {kernel: ") + kernel + ", size: 100, gflops: 10}\n";
    }
    folder_.write("m.yaml", machine);
  }
  [[nodiscard]] Ended simulate(std::vector<std::string> words) {
    words.insert(words.begin(), "simulate");
    return run(on(1, words));
  }
  [[nodiscard]] json report(const std::string& name) {
    return json::parse(testing::read_file(folder_ / name));
  }
};

}  // namespace

TEST_F(Simulate, predicts_a_cholesky_on_four_nodes) {
  const Ended ended = simulate({"p.yaml", "--machine", "m.yaml", "--report", "r.json"});
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("Cholesky of 800 x 800"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("4 as a grid of 2 x 2; 3 workers each"), std::string::npos) << ended.out;
  const json r = report("r.json");
  EXPECT_EQ(r.at("tasks"), 120);  // 8 potrf, 28 trsm, 28 syrk and 56 gsmm
  EXPECT_GT(r.at("messages").get<int>(), 0);
  // 12 workers at 10 GFLOP/s, and no less than the longest chain: potrf, trsm and syrk by turns.
  const double area = 800.0 * 800 * 800 / 3 / 12e10;
  const double chain = 8 * 1e6 / 3 / 1e10 + 7 * 2e6 / 1e10;
  EXPECT_GT(r.at("seconds").at("factor").get<double>(), std::max(area, chain));
  EXPECT_LT(r.at("seconds").at("factor").get<double>(), 3 * (area + chain));
}

TEST_F(Simulate, does_more_in_less_time_with_more_nodes) {
  double before = 1e9;
  for (const char* nodes : {"machine.nodes=1", "machine.nodes=2", "machine.nodes=4"}) {
    const Ended ended =
        simulate({"q.yaml", "--machine", "m.yaml", "--set", nodes, "--report", "r.json"});
    ASSERT_EQ(ended.status, 0) << ended.error;
    const double seconds = report("r.json").at("seconds").at("factor").get<double>();
    EXPECT_LT(seconds, before) << nodes;
    before = seconds;
  }
}

TEST_F(Simulate, writes_a_trace_that_analyze_reads) {
  ASSERT_EQ(simulate({"q.yaml", "--machine", "m.yaml", "--trace", "run"}).status, 0);
  const Ended ended = run(on(1, {"analyze", "run", "--report", "a.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  const json one = report("a.json").at("runs").at(0);
  EXPECT_EQ(one.at("damages"), json::array());
  EXPECT_EQ(one.at("threads").size(), 12U);
  EXPECT_LE(one.at("bounds").at("critical_path").get<double>(), one.at("seconds").get<double>());
  EXPECT_TRUE(one.at("about").at("simulated").get<bool>());
}

TEST_F(Simulate, a_run_is_replayed_as_it_was_and_with_changes) {
  for (const char* problem : {"p.yaml", "q.yaml"}) {
    ASSERT_EQ(
        simulate({problem, "--machine", "m.yaml", "--trace", "run", "--report", "was.json"}).status,
        0);
    const Ended again = run(on(1, {"replay", "run", "--machine", "m.yaml", "--report", "is.json"}));
    ASSERT_EQ(again.status, 0) << again.error;
    EXPECT_NE(again.out.find("the run took"), std::string::npos) << again.out;
    const double was = report("was.json").at("seconds").at("factor").get<double>();
    const double is = report("is.json").at("seconds").at("factor").get<double>();
    // Times in a trace are whole nanoseconds.
    EXPECT_NEAR(is, was, 1e-4 * was) << problem;
    // From the first task's begin, which is some microseconds later.
    EXPECT_NEAR(report("is.json").at("recorded_seconds").get<double>(), was, 1e-5);
    EXPECT_EQ(report("is.json").at("tasks"), report("was.json").at("tasks"));
    const Ended fewer = run(on(1, {"replay", "run", "--machine", "m.yaml", "--set",
                                   "machine.nodes=1", "--report", "is.json"}));
    ASSERT_EQ(fewer.status, 0) << fewer.error;
    EXPECT_GT(report("is.json").at("seconds").at("factor").get<double>(), 1.5 * was);
    EXPECT_EQ(report("is.json").at("messages"), 0);
    const Ended finer = run(on(1, {"replay", "run", "--machine", "m.yaml", "--set",
                                   "layout.tile=50", "--report", "is.json"}));
    ASSERT_EQ(finer.status, 0) << finer.error;
    EXPECT_NE(finer.out.find("shapes that it had not are scaled"), std::string::npos) << finer.out;
    EXPECT_GT(report("is.json").at("tasks"), report("was.json").at("tasks"));
  }
}

TEST_F(Simulate, a_real_run_is_replayed) {
  ASSERT_EQ(solve("problem: {matrix: {generate: spd, n: 400}}\nlayout: {tile: 50, strip: 0}\n"
                  "runtime: {cpu_workers: 1}\n",
                  2, {"--trace", "run"})
                .status,
            0);
  const Ended ended = run(on(1, {"replay", "run", "--report", "is.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_EQ(report("is.json").at("tasks"), 120);
  EXPECT_EQ(report("is.json").at("nodes"), 2);
  EXPECT_GT(report("is.json").at("seconds").at("factor").get<double>(), 0);
  const Ended nowhere = run(on(1, {"replay", "nowhere"}));
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_NE(nowhere.error.find("nowhere"), std::string::npos) << nowhere.error;
}

TEST_F(Simulate, measures_this_machine_when_none_is_named) {
  const Ended ended = simulate({"p.yaml", "--set", "runtime.cpu_workers=1", "--report", "r.json"});
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("as measured on this machine"), std::string::npos) << ended.out;
  EXPECT_EQ(report("r.json").at("cpu_workers"), 1);
  EXPECT_GT(report("r.json").at("busy").at("workers").get<double>(), 0.5);
}

TEST_F(Simulate, names_what_is_wrong_with_its_input) {
  const auto refused = [&](std::vector<std::string> words, const char* why) {
    const Ended ended = simulate(std::move(words));
    EXPECT_EQ(ended.status, 2) << why;
    EXPECT_NE(ended.error.find(why), std::string::npos) << ended.error;
  };
  refused({"p.yaml", "--machine", "nowhere.yaml"}, "machine file nowhere.yaml: it is missing");
  refused({"p.yaml", "--set", "machine.nods=3"},
          "--set machine.nods=3: 'machine' has no key 'nods'; expected one of");
  refused({"p.yaml", "--set", "machine.network.rate=-3"},
          "--set machine.network.rate=-3: 'rate' must be positive");
  refused({"p.yaml", "--set", "machine.nodes"}, "expected machine.KEY=VALUE");
  refused({"p.yaml", "--machine", "m.yaml", "--set", "machine.nodes_per_host=3"},
          "4 nodes do not fill hosts with 3 each");
  refused({"p.yaml", "--machine", "m.yaml", "--set", "machine.devices=1"},
          "has devices, but no rates of kernels on them (kernels.device)");
  refused({"p.yaml", "--set", "layout.tlie=3"}, "did you mean 'tile'?");
  refused({"p.yaml", "--machine", "m.yaml", "--set", "layout.grid=[3, 1]"},
          "layout.grid [3, 1] is for 3 nodes");
  folder_.write("bad.yaml",
                "heddle_simulated_machine: 1\nkernels:\n  host:\n    - {kernel: gsmm}\n");
  refused({"p.yaml", "--machine", "bad.yaml"},
          "machine file bad.yaml:4:7: the key 'size' is missing");
  folder_.write("few.yaml",
                "heddle_simulated_machine: 1\nname: few\nkernels: {host: [{kernel: gsmm, size: 9, "
                "gflops: 1}]}\n");
  refused({"p.yaml", "--machine", "few.yaml"},
          "machine 'few' has no time for kernel 'potrf' on 100 x 100 tiles on the host");
  folder_.write("f.yaml", "problem: {matrix: {file: k.npy}}\n");
  refused({"f.yaml"}, "a simulation reads no file");
}

}  // namespace heddle
