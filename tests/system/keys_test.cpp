#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/simulation/configuration_keys.hpp"
#include "tests/system/simulate_run.hpp"

/// What `heddle simulate` and `heddle replay` make of a configuration's keys.
namespace heddle {
namespace {

using nlohmann::json;
using testing::Ended;

class Keys : public testing::SimulateRun {
 protected:
  void SetUp() override {
    SimulateRun::SetUp();
    folder_.write("strips.yaml",
                  "problem: {matrix: {generate: spd, n: 1600}}\n"
                  "layout: {tile: 100, strip: 40, small: 20}\n");
    std::string machine =
        "heddle_simulated_machine: 1\nname: fast\nnodes: 2\ncpu_workers: "
        "3\ndevices: 2\n"
        "kernels:\n";
    for (const char* runner : {"host", "device"}) {
      machine += std::string("  ").append(runner).append(":\n");
      for (const char* kernel : {"potrf", "trsm", "syrk", "gsmm"}) {
        machine += std::string("    - {kernel: ")
                       .append(kernel)
                       .append(", size: 100, gflops: ")
                       .append(runner[0] == 'h' ? "10}\n" : "40}\n");
      }
    }
    folder_.write("fast.yaml", machine);
  }
  [[nodiscard]] Ended with(std::vector<std::string> words, const std::vector<std::string>& sets) {
    for (const std::string& set : sets) {
      words.emplace_back("--set");
      words.push_back(set);
    }
    words.insert(words.end(), {"--report", "r.json"});
    return run(on(1, words));
  }
  [[nodiscard]] json figures(const std::vector<std::string>& words,
                             const std::vector<std::string>& sets = {}) {
    const Ended ended = with(words, sets);
    EXPECT_EQ(ended.status, 0) << ended.error;
    out_ = ended.out;
    error_ = ended.error;
    return ended.status == 0 ? report("r.json") : json();
  }
  [[nodiscard]] static double seconds_of(const json& figures) {
    return figures.at("seconds").at("factor").get<double>();
  }
  [[nodiscard]] std::string refusal(const std::vector<std::string>& words,
                                    const std::vector<std::string>& sets) {
    const Ended ended = with(words, sets);
    EXPECT_EQ(ended.status, 2) << ended.out;
    return ended.error;
  }

  const std::vector<std::string> simulate_{"simulate", "strips.yaml", "--machine", "fast.yaml"};
  const std::vector<std::string> replay_{"replay", "run", "--machine", "fast.yaml"};
  std::string out_;
  std::string error_;
};

/// Of each key of `runtime` another value than its default.
const std::map<std::string_view, std::string_view> other_values{
    {"runtime.cpu_workers", "1"},
    {"runtime.devices.backend", "none"},
    {"runtime.devices.per_node", "1"},
    {"runtime.devices.memory", "1300kB"},
    {"runtime.devices.streams", "1"},
    {"runtime.devices.nodes_per_device", "2"},
    {"runtime.devices.turn_us", "10"},
    {"runtime.devices.links.rate", "1"},
    {"runtime.devices.links.latency_us", "20"},
    {"runtime.devices.links.switch_rate", "1"},
    {"runtime.devices.links.devices_per_switch", "2"},
    {"runtime.devices.links.switches_per_socket", "2"},
    {"runtime.window", "4"},
    {"runtime.placement", "dynamic"},
    {"runtime.priorities", "reverse"},
    {"runtime.messages.path", "put"},
    {"runtime.messages.explain", "true"},
    {"runtime.messages.readers", "tree"},
    {"runtime.watchdog_seconds", "7"},
    {"runtime.silence_seconds", "9"},
    {"runtime.wait", "spin"},
    {"runtime.messages.device_memory", "4kB"},
    {"runtime.collectives.order", "places"},
    {"runtime.collectives.algorithm", "chain"},
    {"runtime.collectives.copies", "staged"},
    {"runtime.collectives.fragment", "64KiB"},
    {"runtime.collectives.explain", "true"}};

}  // namespace

TEST_F(Keys, of_the_runtime_change_a_prediction_or_are_refused_or_are_neutral) {
  ASSERT_EQ(seconds_of(figures(simulate_)), seconds_of(figures(simulate_, {}))) << "it is drawn";
  std::vector<std::string> simulate = simulate_;
  std::vector<std::string> replay = replay_;
  for (auto* const words : {&simulate, &replay}) {
    words->insert(words->end(), {"--set", "machine.nodes=4"});  // some tiles have two readers
  }
  std::vector<std::string> record = simulate;
  record.insert(record.end(), {"--trace", "run"});
  static_cast<void>(figures(record));
  for (const std::vector<std::string>& words : {simulate, replay}) {
    const double usual = seconds_of(figures(words));
    for (const ConfigurationKey& key : configuration_keys()) {
      if (!key.path.starts_with("runtime.")) continue;
      SCOPED_TRACE(words.front() + " " + std::string(key.path));
      ASSERT_TRUE(other_values.contains(key.path)) << "a new key: give it a value here";
      const std::string set = std::string(key.path) + "=" + std::string(other_values.at(key.path));
      if (key.use == KeyUse::measured) {
        EXPECT_NE(refusal(words, {set}).find(std::string(key.path) + ": "), std::string::npos);
        continue;
      }
      const double changed = seconds_of(figures(words, {set}));
      if (key.use == KeyUse::neutral) {
        EXPECT_EQ(changed, usual);
      } else {
        EXPECT_GT(std::abs(changed - usual), 1e-4 * usual);
      }
    }
  }
}

TEST_F(Keys, of_a_run_count_in_its_replay_which_tells_them) {
  const std::vector<std::string> sets{"layout.tile=50", "layout.strip=0", "runtime.window=4",
                                      "runtime.priorities=path", "machine.kernels.noise=0.3"};
  std::vector<std::string> record{"simulate", "p.yaml", "--machine", "m.yaml", "--trace", "run"};
  const double was = seconds_of(figures(record, sets));
  EXPECT_NE(out_.find("  runtime           window 4, priorities path\n"), std::string::npos)
      << out_;
  const json is = figures({"replay", "run"});
  EXPECT_NE(out_.find("  runtime           window 4, priorities path\n"), std::string::npos)
      << out_;
  EXPECT_EQ(is.at("window"), 4);
  EXPECT_EQ(is.at("priorities"), "path");
  EXPECT_NEAR(seconds_of(is), was, 0.05 * was);
  EXPECT_NEAR(is.at("error_percent").get<double>(), 0, 5);
  const double wide = seconds_of(figures({"replay", "run"}, {"runtime.window=auto"}));
  EXPECT_LT(wide, 0.9 * was) << "the test shows nothing";
  EXPECT_NE(out_.find("the changes make"), std::string::npos) << out_;
}

TEST_F(Keys, of_a_real_run_count_in_its_replay_which_tells_them) {
  testing::Dense matrix = testing::spd(300);
  folder_.write("k.npy", testing::npy(matrix));
  ASSERT_EQ(solve("problem: {matrix: {file: k.npy}}\nlayout: {tile: 30, strip: 0}\n"
                  "runtime: {cpu_workers: 2, window: 4, priorities: path, wait: park}\n"
                  "logging: {level: debug}\n",
                  2, {"--trace", "run"})
                .status,
            0);
  std::filesystem::remove(folder_ / "k.npy");
  const json is = figures({"replay", "run"});
  EXPECT_NE(out_.find("  runtime           window 4, priorities path\n"), std::string::npos)
      << out_;
  EXPECT_NE(out_.find("the prediction's error is"), std::string::npos) << out_;
  EXPECT_EQ(is.at("n"), 300);
  EXPECT_EQ(is.at("window"), 4);
  EXPECT_EQ(is.at("priorities"), "path");
  EXPECT_EQ(is.at("cpu_workers"), 2);
  // What changes no time leaves the run as it was; so does what it had.
  const json same =
      figures({"replay", "run"}, {"runtime.watchdog_seconds=9", "runtime.wait=park",
                                  "runtime.window=4", "logging.level=off", "problem.verify=false"});
  EXPECT_EQ(same.at("seconds"), is.at("seconds"));
  EXPECT_EQ(same.at("error_percent"), is.at("error_percent"));
  EXPECT_NE(refusal({"replay", "run"}, {"runtime.wait=adaptive"})
                .find("run: runtime.wait: adaptive cannot be simulated: the times to wake a thread "
                      "are measured, not modelled; the times here are those of park"),
            std::string::npos);
  EXPECT_NE(refusal({"replay", "run"}, {"runtime.windows=9"}).find("did you mean 'window'?"),
            std::string::npos);
  EXPECT_NE(
      refusal({"replay", "run"}, {"runtime.devices.backend=emulated"})
          .find("runtime.devices.backend: emulated cannot be simulated: machine 'that of run' "
                "has no devices"),
      std::string::npos);
}

TEST_F(Keys, of_an_actual_run_are_those_of_the_prediction) {
  const auto record = [this](const char* runtime, const char* name) {
    return solve(std::string("problem: {matrix: {generate: spd, n: 200}}\n"
                             "layout: {tile: 50, strip: 0}\nruntime: {cpu_workers: 1")
                     .append(runtime)
                     .append("}\n"),
                 1, {"--trace", name})
        .status;
  };
  ASSERT_EQ(record("", "run"), 0);
  ASSERT_EQ(record(", window: 2, priorities: path, watchdog_seconds: 7", "other"), 0);
  const std::vector<std::string> words{"replay", "run", "--actual", "other"};
  EXPECT_NE(refusal(words, {}).find("'other' has window 2, but what is foreseen has 8192"),
            std::string::npos);
  EXPECT_NE(refusal(words, {"runtime.window=2"})
                .find("'other' has priorities path, but what is foreseen has program"),
            std::string::npos);
  EXPECT_TRUE(figures(words, {"runtime.window=2", "runtime.priorities=path"})
                  .at("error_percent")
                  .is_number());
}

TEST_F(Keys, of_policies_are_called_otherwise_now) {
  const json now = figures(simulate_, {"runtime.priorities=reverse"});
  EXPECT_EQ(error_, "");
  const json before = figures(simulate_, {"policy.priorities=reverse"});
  EXPECT_EQ(error_,
            "heddle: policy.priorities=reverse: this key is called runtime.priorities now\n");
  EXPECT_EQ(before.at("seconds"), now.at("seconds"));
  EXPECT_EQ(before.at("priorities"), "reverse");
  std::vector<std::string> sweep = simulate_;
  sweep.insert(sweep.end(), {"--sweep", "policy.priorities=program,reverse"});
  const json swept = figures(sweep);
  EXPECT_EQ(swept.at("sweep"), json{"runtime.priorities"});
  EXPECT_EQ(swept.at("cases").at(1).at("seconds"), now.at("seconds"));
}

TEST_F(Keys, of_the_runtime_say_what_a_run_takes_of_a_machine) {
  const json by_machine = figures(simulate_, {"machine.cpu_workers=1", "machine.devices=1"});
  folder_.write("few.yaml",
                "problem: {matrix: {generate: spd, n: 1600}}\n"
                "layout: {tile: 100, strip: 40, small: 20}\n"
                "runtime: {cpu_workers: 1, devices: {per_node: 1}}\n");
  std::vector<std::string> few{"simulate", "few.yaml", "--machine", "fast.yaml"};
  const json by_runtime = figures(few);
  EXPECT_EQ(by_runtime.at("cpu_workers"), 1);
  EXPECT_EQ(by_runtime.at("devices"), 1);
  EXPECT_EQ(by_runtime.at("seconds"), by_machine.at("seconds"));
  // What is said of the machine on the command line counts more than the file.
  EXPECT_EQ(figures(few, {"machine.cpu_workers=2"}).at("cpu_workers"), 2);
  EXPECT_NE(refusal(few, {"machine.cpu_workers=2", "runtime.cpu_workers=3"})
                .find("'runtime.cpu_workers' and 'machine.cpu_workers' are set at once"),
            std::string::npos);
  // What a run was told stays on another machine, and what it has chosen follows from that.
  few.insert(few.end(), {"--trace", "run"});
  static_cast<void>(figures(few, {"runtime.cpu_workers=auto"}));
  const json elsewhere = figures(replay_, {"machine.nodes=1"});
  EXPECT_EQ(elsewhere.at("cpu_workers"), 3);
  EXPECT_EQ(elsewhere.at("devices"), 1);
  // The same by its two names.
  const std::vector<std::string> again{"replay", "run"};
  EXPECT_EQ(figures(again, {"runtime.devices.streams=1"}).at("seconds"),
            figures(again, {"machine.device_streams=1"}).at("seconds"));
}

TEST_F(Keys, that_a_sweep_cannot_change_are_refused) {
  folder_.write("none.yaml", "");
  std::vector<std::string> words = simulate_;
  words.insert(words.end(), {"--sweep", "machine=auto,none.yaml"});
  const json swept = figures(words);
  EXPECT_TRUE(swept.at("cases").at(0).at("refused").is_null());
  EXPECT_NE(swept.at("cases").at(1).at("refused").get<std::string>().find(
                "machine: none.yaml: measurements of this machine are read once"),
            std::string::npos);
}

}  // namespace heddle
