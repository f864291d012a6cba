#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/system/heddle_run.hpp"

/// Dynamic placement in `heddle simulate` and `heddle replay`.
namespace heddle {
namespace {

using nlohmann::json;
using testing::Ended;
using testing::HeddleRun;

class Placement : public HeddleRun {
 protected:
  void SetUp() override {
    HeddleRun::SetUp();
    folder_.write("p.yaml",
                  "problem: {matrix: {generate: spd, n: 2400}}\n"
                  "layout: {tile: 200, strip: 0, small: 50, hierarchy: off}\n");
    folder_.write("q.yaml",
                  "problem: {factorization: qr, matrix: {generate: random, n: 3200}}\n"
                  "layout: {tile: 200, strip: 0, small: 50, inner: 40, hierarchy: off}\n");
  }
  /// Four workers, and a device so many times as fast as all of them.
  void write_machine(const std::string& name, int times) const {
    std::string text =
        "heddle_simulated_machine: 1\nname: both\ncpu_workers: 4\ndevices: 1\n"
        "to_device: {latency_us: 1, rate: 50}\nto_host: {latency_us: 1, rate: 50}\nkernels:\n";
    for (const char* runner : {"host", "device"}) {
      text += std::string("  ").append(runner).append(":\n");
      const std::string rate = std::to_string(runner[0] == 'h' ? 10 : 40 * times);
      for (const char* kernel : {"potrf", "trsm", "syrk", "gsmm", "geqrt", "tsqrt", "unmqr",
                                 "tsmqr", "ttqrt", "ttmqr"}) {
        text += std::string("    - {kernel: ").append(kernel).append(", size: 100, gflops: ");
        text += rate + "}\n";
      }
    }
    folder_.write(name, text);
  }
  /// Simulated with more words; its report.
  [[nodiscard]] json simulated(std::vector<std::string> words) {
    words.insert(words.begin(), "simulate");
    words.insert(words.end(), {"--report", "r.json"});
    const Ended ended = run(on(1, words));
    EXPECT_EQ(ended.status, 0) << ended.error;
    out_ = ended.out;
    return report("r.json");
  }
  [[nodiscard]] json report(const std::string& name) {
    return json::parse(testing::read_file(folder_ / name));
  }
  [[nodiscard]] static double seconds_of(const json& report) {
    return report.at("seconds").at("factor").get<double>();
  }

  std::string out_;
};

const std::vector<std::string> dynamic{"--set", "runtime.placement=dynamic"};

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_F(Placement, dynamic_gains_beside_a_device_a_few_times_as_fast) {
  write_machine("m.yaml", 3);
  for (const char* problem : {"p.yaml", "q.yaml"}) {
    SCOPED_TRACE(problem);
    const json fixed = simulated({problem, "--machine", "m.yaml"});
    EXPECT_EQ(fixed.at("placement"), "static");
    EXPECT_EQ(fixed.at("tasks_lent"), 0);
    const json lent = simulated(with({problem, "--machine", "m.yaml"}, dynamic));
    EXPECT_NE(out_.find("of devices' tasks run by CPUs"), std::string::npos) << out_;
    EXPECT_EQ(lent.at("placement"), "dynamic");
    EXPECT_GT(lent.at("tasks_lent"), 0);
    EXPECT_GT(lent.at("write_backs"), 0);
    EXPECT_EQ(lent.at("tasks"), fixed.at("tasks"));
    EXPECT_LT(seconds_of(lent), seconds_of(fixed));
    EXPECT_LE(lent.at("share_of_bound").get<double>(), 1.0);
    const json divided =
        simulated(with({problem, "--machine", "m.yaml", "--set", "layout.hierarchy=on"}, dynamic));
    EXPECT_LT(seconds_of(divided), seconds_of(lent));
    EXPECT_LE(divided.at("share_of_bound").get<double>(), 1.0);
  }
}

TEST_F(Placement, dynamic_loses_nothing_beside_a_device_a_hundred_times_as_fast) {
  write_machine("m.yaml", 100);
  for (const char* problem : {"p.yaml", "q.yaml"}) {
    for (const char* hierarchy : {"layout.hierarchy=off", "layout.hierarchy=on"}) {
      const std::vector<std::string> words{problem, "--machine", "m.yaml", "--set", hierarchy};
      const double fixed = seconds_of(simulated(words));
      EXPECT_LT(seconds_of(simulated(with(words, dynamic))), 1.02 * fixed)
          << problem << " " << hierarchy;
    }
  }
}

TEST_F(Placement, without_devices_dynamic_is_static) {
  write_machine("m.yaml", 3);
  const std::vector<std::string> words{"p.yaml", "--machine", "m.yaml", "--set",
                                       "machine.devices=0"};
  const json fixed = simulated(words);
  const json lent = simulated(with(words, dynamic));
  EXPECT_EQ(seconds_of(lent), seconds_of(fixed));
  EXPECT_EQ(lent.at("tasks_lent"), 0);
}

TEST_F(Placement, policies_compare_both_placements_where_there_are_devices) {
  write_machine("m.yaml", 3);
  const json all = simulated({"p.yaml", "--machine", "m.yaml", "--policies"});
  std::istringstream lines(out_);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  ASSERT_EQ(all.at("cases").size(), 15U);
  for (std::size_t i = 0; i < 10; i += 2) {
    const json& fixed = all.at("cases").at(i);
    const json& lent = all.at("cases").at(i + 1);
    EXPECT_EQ(fixed.at("placement"), "static");
    EXPECT_EQ(lent.at("placement"), "dynamic");
    EXPECT_EQ(fixed.at("priorities"), lent.at("priorities"));
    EXPECT_LT(seconds_of(lent), seconds_of(fixed));
  }
  EXPECT_EQ(all.at("cases").at(10).at("set").at("runtime.placement"), "static");
  const json none =
      simulated({"p.yaml", "--machine", "m.yaml", "--set", "machine.devices=0", "--policies"});
  EXPECT_EQ(none.at("cases").size(), 10U);
}

TEST_F(Placement, a_simulated_dynamic_run_is_replayed_as_it_was) {
  write_machine("m.yaml", 3);
  for (const char* hierarchy : {"layout.hierarchy=off", "layout.hierarchy=on"}) {
    SCOPED_TRACE(hierarchy);
    const json was = simulated(
        with({"p.yaml", "--machine", "m.yaml", "--set", hierarchy, "--trace", "run"}, dynamic));
    const auto replayed = [&](const std::vector<std::string>& more) {
      // A kernel that no worker ran has the file's rate: nothing is timed here.
      const Ended ended =
          run(on(1, with({"replay", "run", "--machine", "m.yaml", "--report", "is.json"}, more)));
      EXPECT_EQ(ended.status, 0) << ended.error;
      EXPECT_EQ(ended.out.find("limit"), std::string::npos) << ended.out;
      return report("is.json");
    };
    const json is = replayed({});
    EXPECT_EQ(is.at("placement"), "dynamic");
    EXPECT_GT(is.at("tasks_lent"), 0);
    // Times in a trace are whole nanoseconds, by which a choice may turn.
    EXPECT_NEAR(seconds_of(is), seconds_of(was), 0.01 * seconds_of(was));
    EXPECT_NEAR(is.at("tasks_lent").get<int>(), was.at("tasks_lent").get<int>(), 3);
    const json fixed = replayed({"--set", "runtime.placement=static"});
    EXPECT_EQ(fixed.at("tasks_lent"), 0);
    EXPECT_GT(seconds_of(fixed), seconds_of(was));
  }
}

TEST_F(Placement, a_real_dynamic_run_is_replayed) {
  for (const char* problem : {"problem: {matrix: {generate: spd, n: 768}}\n"
                              "layout: {tile: 128, strip: 0, small: 32, hierarchy: on}\n",
                              "problem: {factorization: qr, matrix: {generate: random, n: 512}}\n"
                              "layout: {tile: 128, strip: 0, inner: 32, hierarchy: off}\n"}) {
    ASSERT_EQ(solve(std::string(problem).append(
                        "runtime: {placement: dynamic, cpu_workers: 2, devices: {backend: "
                        "emulated, per_node: 1}}\n"),
                    0, {"--trace", "run", "--report", "was.json"})
                  .status,
              0);
    const Ended ended = run(on(1, {"replay", "run", "--report", "is.json"}));
    ASSERT_EQ(ended.status, 0) << ended.error;
    EXPECT_EQ(ended.out.find("limit"), std::string::npos) << ended.out;
    const json is = report("is.json");
    EXPECT_EQ(is.at("placement"), report("was.json").at("placement"));
    EXPECT_EQ(is.at("placement"), "dynamic");
    EXPECT_GT(is.at("tasks"), 0);
    EXPECT_EQ(is.at("recorded_evictions"), 0);
  }
}

TEST_F(Placement, solve_refuses_priorities_that_are_for_simulations) {
  folder_.write("small.yaml", "problem: {matrix: {generate: spd, n: 50}}\n");
  for (const int nodes : {1, 2}) {
    const Ended ended = run(on(nodes, {"solve", "small.yaml", "--set", "runtime.priorities=fifo"}));
    EXPECT_EQ(ended.status, 2) << ended.error;
    EXPECT_NE(ended.error.find("runtime.priorities: fifo is only for heddle simulate and heddle "
                               "replay, to compare with; a run takes program or path"),
              std::string::npos)
        << ended.error;
  }
}

TEST_F(Placement, solve_takes_priorities_by_the_longest_path) {
  folder_.write("small.yaml", "problem: {matrix: {generate: spd, n: 300}}\n");
  folder_.write("qr.yaml",
                "problem: {factorization: qr, matrix: {generate: random, n: 200}}\n"
                "layout: {tile: 48}\n");
  for (const char* problem : {"small.yaml", "qr.yaml"}) {
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{},
          {"--set", "layout.hierarchy=on", "--set", "layout.tile=100", "--set", "layout.small=30"},
          {"--set", "runtime.devices.backend=emulated", "--set", "runtime.placement=dynamic"}}) {
      std::vector<std::string> words{"solve", problem, "--set", "runtime.priorities=path"};
      words.insert(words.end(), more.begin(), more.end());
      for (const int nodes : {1, 2}) {
        const Ended ended = run(on(nodes, words));
        EXPECT_EQ(ended.status, 0) << problem << " on " << nodes << ": " << ended.error;
      }
    }
  }
}

}  // namespace heddle
