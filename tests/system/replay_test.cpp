#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/system/simulate_run.hpp"

/// `heddle replay`: runs that were simulated, and real ones.
namespace heddle {
namespace {

using nlohmann::json;
using testing::Ended;
using Replay = testing::SimulateRun;

}  // namespace

TEST_F(Replay, a_run_is_replayed_as_it_was_and_with_changes) {
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

TEST_F(Replay, divided_tasks_are_simulated_and_replayed) {
  for (const char* problem : {"p.yaml", "q.yaml"}) {
    const auto with = [&](const char* hierarchy, const char* report) {
      return simulate({problem, "--machine", "m.yaml", "--set", "layout.tile=200", "--set",
                       "layout.small=40", "--set", hierarchy, "--trace", "run", "--report",
                       report});
    };
    const Ended whole = with("layout.hierarchy=off", "whole.json");
    ASSERT_EQ(whole.status, 0) << whole.error;
    const Ended divided = with("layout.hierarchy=on", "was.json");
    ASSERT_EQ(divided.status, 0) << divided.error;
    EXPECT_NE(divided.out.find("divided into 40 on CPUs"), std::string::npos) << divided.out;
    const double was = report("was.json").at("seconds").at("factor").get<double>();
    EXPECT_LT(was, report("whole.json").at("seconds").at("factor").get<double>()) << problem;
    const Ended analyzed = run(on(1, {"analyze", "run"}));
    EXPECT_NE(analyzed.out.find("fine "), std::string::npos) << analyzed.out;
    const Ended again = run(on(1, {"replay", "run", "--machine", "m.yaml", "--report", "is.json"}));
    ASSERT_EQ(again.status, 0) << again.error;
    EXPECT_NEAR(report("is.json").at("seconds").at("factor").get<double>(), was, 1e-4 * was);
    EXPECT_EQ(report("is.json").at("tasks"), report("was.json").at("tasks"));
  }
}

TEST_F(Replay, what_a_run_chose_by_itself_is_chosen_again_for_another_tile) {
  folder_.write("own.yaml",
                "problem: {factorization: qr, matrix: {generate: random, m: 1200, n: 600}}\n"
                "layout: {tile: 50, strip: 0}\nruntime: {cpu_workers: 2}\n");
  ASSERT_EQ(
      run(on(1, {"solve", "own.yaml", "--trace", "run", "--report", "was.json", "-q"})).status, 0);
  const json was = report("was.json");
  EXPECT_EQ(was["chosen"], (json{"grid", "small", "hierarchy", "inner", "virtual", "tree"}));
  ASSERT_EQ(
      run(on(1, {"solve", "own.yaml", "--set", "layout.tile=150", "--report", "other.json", "-q"}))
          .status,
      0);
  const json other = report("other.json");
  ASSERT_NE(was["virtual"], other["virtual"]) << "the test shows nothing";
  ASSERT_EQ(run(on(1, {"replay", "run", "--report", "again.json"})).status, 0);
  EXPECT_EQ(report("again.json")["virtual"], was["virtual"]);
  const Ended ended =
      run(on(1, {"replay", "run", "--set", "layout.tile=150", "--report", "is.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_EQ(report("is.json")["virtual"], other["virtual"]);
  ASSERT_EQ(run(on(1, {"replay", "run", "--set", "layout.tile=150", "--set", "layout.virtual=2",
                       "--report", "said.json"}))
                .status,
            0);
  EXPECT_EQ(report("said.json")["virtual"], 2);
}

TEST_F(Replay, a_real_run_is_replayed) {
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

TEST_F(Replay, the_error_is_told_beside_the_actual_run) {
  const auto record = [this](const char* tile, const char* run) {
    return solve(std::string("problem: {matrix: {generate: spd, n: 400}}\nlayout: {tile: ") + tile +
                     ", strip: 0}\nruntime: {cpu_workers: 1}\n",
                 1, {"--trace", run, "--report", std::string(run) + ".json"})
        .status;
  };
  ASSERT_EQ(record("50", "run"), 0);
  ASSERT_EQ(record("80", "other"), 0);
  const auto error = [this] {
    const json r = report("is.json");
    const double real = r.at("actual_seconds").is_null() ? r.at("recorded_seconds").get<double>()
                                                         : r.at("actual_seconds").get<double>();
    EXPECT_NEAR(r.at("error_percent").get<double>(),
                100 * (r.at("seconds").at("factor").get<double>() / real - 1), 1e-9);
    return real;
  };
  Ended ended = run(on(1, {"replay", "run", "--report", "is.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("the prediction's error is"), std::string::npos) << ended.out;
  error();
  ended = run(on(
      1, {"replay", "run", "--set", "layout.tile=80", "--actual", "other", "--report", "is.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("the actual run"), std::string::npos) << ended.out;
  EXPECT_EQ(error(), report("other.json").at("seconds").at("factor").get<double>());
  ended = run(on(1, {"replay", "run", "--actual", "other"}));
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.error.find("'other' has tile 80, but what is foreseen has 50"), std::string::npos)
      << ended.error;

  ended = run(on(1, {"replay", "run", "--actual", "other", "--sweep", "layout.tile=50,80"}));
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.error.find("--actual is a run of one case"), std::string::npos) << ended.error;
  // Half of a run, and none.
  const std::string whole = testing::read_file(folder_ / "other/node-0.trace");
  folder_.write("other/node-0.trace", whole.substr(0, whole.size() / 2));
  ended = run(on(1, {"replay", "run", "--actual", "other"}));
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.error.find("--actual: 'other' is not whole"), std::string::npos) << ended.error;
  EXPECT_EQ(run(on(1, {"replay", "run", "--actual", "none"})).status, 2);
}

TEST_F(Replay, a_run_that_did_not_end_tells_of_no_error) {
  testing::Dense matrix = testing::spd(100);
  matrix(70, 70) = -1;
  folder_.write("k.npy", testing::npy(matrix));
  ASSERT_EQ(solve("problem: {matrix: {file: k.npy}}\nlayout: {tile: 25, strip: 0}\n"
                  "runtime: {cpu_workers: 1}\n",
                  1, {"--trace", "run"})
                .status,
            3);
  const Ended ended = run(on(1, {"replay", "run", "--report", "is.json"}));
  EXPECT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("ended at a pivot that is not positive"), std::string::npos)
      << ended.out;
  EXPECT_TRUE(report("is.json").at("error_percent").is_null());
}

TEST_F(Replay, what_is_replayed_is_not_overwritten) {
  ASSERT_EQ(simulate({"p.yaml", "--machine", "m.yaml", "--trace", "run"}).status, 0);
  const std::string was = testing::read_file(folder_ / "run/node-0.trace");
  for (const char* trace : {"run", "./run/", "new.json"}) {
    const Ended ended = run(on(1, {"replay", "run", "--machine", "m.yaml", "--trace", trace}));
    EXPECT_EQ(ended.status, 2) << trace;
    EXPECT_NE(ended.error.find("--trace"), std::string::npos) << ended.error;
  }
  EXPECT_EQ(testing::read_file(folder_ / "run/node-0.trace"), was);
}

TEST_F(Replay, what_was_recorded_is_not_overwritten_by_what_is_simulated) {
  ASSERT_EQ(solve("problem: {matrix: {generate: spd, n: 100}}\nlayout: {tile: 50}\n"
                  "runtime: {cpu_workers: 1}\n",
                  1, {"--trace", "real"})
                .status,
            0);
  const Ended refused = simulate({"p.yaml", "--machine", "m.yaml", "--trace", "real"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.error.find("holds a run that heddle solve has recorded"), std::string::npos)
      << refused.error;
  EXPECT_EQ(run(on(1, {"analyze", "real"})).status, 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(simulate({"p.yaml", "--machine", "m.yaml", "--trace", "other"}).status, 0);
  }
}

TEST_F(Replay, without_the_first_nodes_trace_nobody_says_what_was_factorized) {
  ASSERT_EQ(solve("problem: {matrix: {generate: spd, n: 200}}\nlayout: {tile: 50}\n"
                  "runtime: {cpu_workers: 1}\n",
                  2, {"--trace", "run"})
                .status,
            0);
  std::filesystem::remove(folder_ / "run/node-0.trace");
  Ended ended = run(on(1, {"replay", "run"}));
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.error.find("the trace of node 0"), std::string::npos) << ended.error;
  for (const char* format : {"perfetto", "chrome", "csv", "paje"}) {
    ended = run(on(1, {"export", "run", "--to", format, "--output", "x"}));
    EXPECT_EQ(ended.status, 1) << format;
    EXPECT_NE(ended.out.find("the trace of node 0 is not there"), std::string::npos) << ended.out;
  }
}

TEST_F(Replay, workers_that_the_run_had_not_differ_as_in_a_rehearsal) {
  ASSERT_EQ(solve("problem: {matrix: {generate: spd, n: 400}}\nlayout: {tile: 50, strip: 0}\n"
                  "runtime: {cpu_workers: 1}\n",
                  1, {"--trace", "run"})
                .status,
            0);
  const Ended ended = run(on(1, {"replay", "run", "--set", "machine.nodes=2", "--set",
                                 "machine.nodes_per_host=2", "--report", "is.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("as in the rehearsal"), std::string::npos) << ended.out;
  const json r = report("is.json");
  EXPECT_EQ(r.at("paces").size(), 2U);
  ASSERT_FALSE(r.at("rehearsed").at(0).at("paces").empty());
  for (const json& turn : r.at("rehearsed").at(0).at("paces")) EXPECT_EQ(turn.size(), 2U);
  for (const json& turn : r.at("rehearsed").at(0).at("paces_as_it_was")) {
    EXPECT_EQ(turn.size(), 1U);
  }
}

TEST_F(Replay, a_real_run_is_replayed_on_other_numbers_of_nodes) {
  ASSERT_EQ(solve("problem: {matrix: {generate: spd, n: 400}}\nlayout: {tile: 50, strip: 0}\n"
                  "runtime: {cpu_workers: 1}\n",
                  2, {"--trace", "run"})
                .status,
            0);
  for (const int nodes : {1, 2, 4}) {
    const std::string number = "machine.nodes=" + std::to_string(nodes);
    const Ended ended = run(on(1, {"replay", "run", "--set", number, "--report", "is.json"}));
    ASSERT_EQ(ended.status, 0) << ended.error;
    EXPECT_NE(ended.out.find("the changes make"), std::string::npos) << ended.out;
    EXPECT_TRUE(report("is.json").at("error_percent").is_null()) << "no run is of the same";
    const json r = report("is.json");
    EXPECT_EQ(r.at("nodes"), nodes);
    EXPECT_EQ(r.at("nodes_per_host"), 1);  // on hosts of their own
    EXPECT_EQ(r.at("tasks"), 120);
    EXPECT_EQ(r.at("grid").at(0).get<int>() * r.at("grid").at(1).get<int>(), nodes);
    EXPECT_EQ(r.at("messages").get<int>() == 0, nodes == 1);
    // As many workers as the run had are as they were there. All of one node can be rehearsed; of
    // four on hosts of their own one can, and they are dealt what the run's took.
    EXPECT_EQ(r.at("paces").size(), nodes == 2 ? 0U : static_cast<std::size_t>(nodes));
    EXPECT_EQ(r.at("learned").at("worker_paces").size(), 2U);
    EXPECT_NE(ended.out.find("us, by how long a worker has waited\n"), std::string::npos);
    EXPECT_NE(ended.out.find("first tasks"), std::string::npos) << ended.out;
    // Of so few tasks by some seeds: what waking takes is drawn.
    EXPECT_EQ(r.at("repeats").at("count"), 9);
    ASSERT_EQ(r.at("learned").at("wakings").size(), 3U);
    for (const json& one : r.at("learned").at("wakings")) EXPECT_GT(one.at("median_us"), 0);
    const json& first_tasks = r.at("learned").at("first_tasks");
    ASSERT_EQ(first_tasks.size(), 4U);
    for (const json& one : first_tasks) EXPECT_GT(one, 0);
    EXPECT_EQ(ended.out.find("as the run's did") != std::string::npos, nodes == 4) << ended.out;
    EXPECT_EQ(ended.out.find("as in the rehearsal") != std::string::npos, nodes == 1) << ended.out;
  }
  // Workers as they were, and one time to wake: nothing is drawn.
  const std::vector<std::string> one_waking{"--set", "machine.runtime.wake_us=20"};
  const auto with_seeds = [&](const std::string& number, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"replay", "run", "--set", number, "--report", "is.json"});
    return run(on(1, more));
  };
  ASSERT_EQ(with_seeds("machine.nodes=2", one_waking).status, 0);
  EXPECT_TRUE(report("is.json").at("repeats").is_null());
  const Ended dealt = with_seeds("machine.nodes=4", {"--repeat", "5"});
  ASSERT_EQ(dealt.status, 0) << dealt.error;
  EXPECT_EQ(report("is.json").at("repeats").at("count"), 5);
  ASSERT_EQ(run(on(1, {"replay", "run", "--set", "machine.nodes=4", "--trace", "middle", "--report",
                       "usual.json"}))
                .status,
            0);
  const json usual = report("usual.json");
  EXPECT_EQ(usual.at("repeats").at("count"), 9);
  EXPECT_EQ(usual.at("repeats").at("median"), usual.at("seconds").at("factor"));
  ASSERT_EQ(run(on(1, {"replay", "middle", "--report", "again.json"})).status, 0);
  EXPECT_NEAR(report("again.json").at("recorded_seconds").get<double>(),
              usual.at("seconds").at("factor").get<double>(),
              0.001 * usual.at("seconds").at("factor").get<double>());
  const Ended third = run(on(
      1, {"replay", "run", "--set", "machine.nodes=4", "--seed", "3", "--report", "third.json"}));
  ASSERT_EQ(third.status, 0) << third.error;
  EXPECT_NE(third.out.find("by how long a worker has waited; seed 3\n"), std::string::npos)
      << third.out;
  EXPECT_TRUE(report("third.json").at("repeats").is_null());
  EXPECT_EQ(report("third.json").at("seed"), 3);
  const Ended same = with_seeds("machine.nodes=2", {one_waking[0], one_waking[1], "--repeat", "5"});
  EXPECT_EQ(same.status, 2);
  EXPECT_NE(same.error.find("nothing is drawn"), std::string::npos) << same.error;
}

/// Nodes of a host are processes, in which the same workers are slower than in one.
TEST_F(Replay, as_many_workers_of_a_host_in_more_nodes_are_timed_in_as_many_processes) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core";
  ASSERT_EQ(solve("problem: {matrix: {generate: spd, n: 300}}\nlayout: {tile: 50, strip: 0}\n"
                  "runtime: {cpu_workers: 2}\n",
                  1, {"--trace", "run"})
                .status,
            0);
  const auto as_nodes = [&](const char* nodes, const char* workers) {
    const Ended ended =
        run(on(1, {"replay", "run", "--set", std::string("machine.nodes=").append(nodes), "--set",
                   std::string("machine.nodes_per_host=").append(nodes), "--set",
                   std::string("machine.cpu_workers=").append(workers), "--report", "r.json"}));
    EXPECT_EQ(ended.status, 0) << ended.error;
    EXPECT_GT(report("r.json").at("seconds").at("factor").get<double>(), 0);
    return ended.out;
  };
  const std::string two = as_nodes("2", "1");
  EXPECT_NE(two.find("for more or fewer beside"), std::string::npos) << two;
  expect_80_columns(two);
  const json rehearsed = report("r.json").at("rehearsed");
  ASSERT_EQ(rehearsed.size(), 1);
  EXPECT_EQ(rehearsed[0].at("nodes"), 2);
  EXPECT_EQ(rehearsed[0].at("chance"), 1) << "two workers tell nothing of it";
  std::set<std::string> kernels;
  const auto has_rates = [](const json& all) {
    for (const char* rate : {"gflops", "gflops_as_it_was", "gflops_recorded"}) {
      EXPECT_GT(all.at(rate).get<double>(), 0) << rate;
    }
  };
  has_rates(rehearsed[0]);
  for (const auto& [kernel, rates] : rehearsed[0].at("kernels").items()) {
    kernels.insert(kernel);
    has_rates(rates);
  }
  EXPECT_EQ(kernels, (std::set<std::string>{"potrf", "trsm", "syrk", "gsmm"}));
  EXPECT_NE(two.find("  rehearsed         "), std::string::npos) << two;
  EXPECT_NE(two.find(" GFLOP/s a worker; as the run was "), std::string::npos) << two;
  const std::string one = as_nodes("1", "2");
  EXPECT_EQ(one.find("for more or fewer beside"), std::string::npos) << one;
  EXPECT_EQ(one.find("rehearsed"), std::string::npos) << one;
  EXPECT_EQ(report("r.json").at("rehearsed"), json::array());
}

TEST_F(Replay, a_replay_learns_what_messages_and_threads_took) {
  for (const char* hosts : {"machine.nodes_per_host=1", "machine.nodes_per_host=4"}) {
    for (const char* cores : {"machine.cores=0", "machine.cores=12"}) {
      SCOPED_TRACE(std::string(hosts).append(" ").append(cores));
      ASSERT_EQ(simulate({"q.yaml", "--machine", "m.yaml", "--set", hosts, "--set", cores, "--set",
                          "machine.memory={latency_us: 30, rate: 0.5}", "--set",
                          "machine.network={latency_us: 20, rate: 2}", "--set",
                          "machine.runtime={task_us: 4, look_us: 9}", "--trace", "run"})
                    .status,
                0);
      const auto replayed = [&](const std::vector<std::string>& more) {
        std::vector<std::string> words{"replay", "run", "--report", "is.json"};
        words.insert(words.end(), more.begin(), more.end());
        const Ended ended = run(on(1, words));
        EXPECT_EQ(ended.status, 0) << ended.error;
        EXPECT_NE(ended.out.find("its messages"), std::string::npos) << ended.out;
        return report("is.json");
      };
      const json is = replayed({});
      const double was = is.at("recorded_seconds").get<double>();
      EXPECT_NEAR(is.at("seconds").at("factor").get<double>(), was, 0.05 * was);
      const json& learned = is.at("learned");
      const bool by_memory = std::string(hosts).back() == '4';
      EXPECT_EQ(learned.at("memory").is_null(), !by_memory);
      EXPECT_EQ(learned.at("network").is_null(), by_memory);
      const json way = learned.at(by_memory ? "memory" : "network");
      EXPECT_NEAR(way.at("rate").get<double>(), by_memory ? 0.5 : 2, by_memory ? 0.05 : 0.2);
      // Where workers step aside after nearly all tasks, few gaps tell, or none.
      const json& task_us = learned.at("task_us");
      const bool shares_cores = std::string(cores) != "machine.cores=0";
      EXPECT_TRUE(shares_cores || !task_us.is_null());
      if (!task_us.is_null()) {
        EXPECT_NEAR(task_us.get<double>(), 4, 0.5);
      }
      // What is said counts, not what was learned.
      const json slow =
          replayed({"--set", "machine.memory.rate=0.01", "--set", "machine.network.rate=0.01"});
      EXPECT_GT(slow.at("seconds").at("factor").get<double>(), 1.5 * was);
    }
  }
}

TEST_F(Replay, kernels_take_longer_beside_more_workers_of_a_host) {
  std::string machine =
      "heddle_simulated_machine: 1\nname: crowded\nnodes: 4\ncpu_workers: 3\nkernels:\n  host:\n";
  for (const char* kernel : {"potrf", "trsm", "syrk", "gsmm"}) {
    for (const char* rate : {"gflops: 10, workers: 3}", "gflops: 5, workers: 12}"}) {
      machine += std::string("    - {kernel: ") + kernel + ", size: 100, " + rate + "\n";
    }
  }
  folder_.write("crowded.yaml", machine);
  ASSERT_EQ(simulate({"p.yaml", "--machine", "crowded.yaml", "--trace", "run"}).status, 0);
  const auto beside = [&](const char* nodes_per_host) {
    const Ended ended =
        run(on(1, {"replay", "run", "--machine", "crowded.yaml", "--set", "machine.memory.rate=10",
                   "--set", std::string("machine.nodes_per_host=").append(nodes_per_host),
                   "--report", "r.json"}));
    EXPECT_EQ(ended.status, 0) << ended.error;
    const json r = report("r.json");
    const double work =
        r.at("busy").at("workers").get<double>() * r.at("seconds").at("factor").get<double>();
    return std::pair(ended.out, work);
  };
  const auto [alone, alone_work] = beside("1");
  EXPECT_EQ(alone.find("beside"), std::string::npos) << alone;
  // Between 3 and 12 by powers: at 6 half of the way.
  const auto [some, some_work] = beside("2");
  EXPECT_NE(some.find("times 1.41 to 1.41 for more or fewer beside"), std::string::npos) << some;
  EXPECT_NEAR(some_work, std::sqrt(2) * alone_work, 1e-3 * alone_work);
  const auto [all, all_work] = beside("4");
  EXPECT_NE(all.find("times 2.00 to 2.00 for more or fewer beside"), std::string::npos) << all;
  EXPECT_NEAR(all_work, 2 * alone_work, 1e-3 * alone_work);
  // From all on one host to a node alone.
  ASSERT_EQ(simulate({"p.yaml", "--machine", "crowded.yaml", "--set", "machine.nodes_per_host=4",
                      "--trace", "run"})
                .status,
            0);
  const Ended fewer =
      run(on(1, {"replay", "run", "--machine", "crowded.yaml", "--set", "machine.nodes=1"}));
  EXPECT_NE(fewer.out.find("times 0.50 to 0.50"), std::string::npos) << fewer.out;
}

TEST_F(Replay, a_replay_says_that_it_does_not_know_other_workers_of_another_machine) {
  // Who has recorded it is not said: no machine of its kind.
  ASSERT_EQ(simulate({"p.yaml", "--machine", "m.yaml", "--trace", "run"}).status, 0);
  const Ended same = run(on(1, {"replay", "run"}));
  EXPECT_EQ(same.out.find("beside the run's other workers"), std::string::npos) << same.out;
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core is all that there is";
  const Ended other = run(on(1, {"replay", "run", "--set", "machine.cpu_workers=1"}));
  ASSERT_EQ(other.status, 0) << other.error;
  EXPECT_NE(other.out.find("beside the run's other workers"), std::string::npos) << other.out;
}

TEST_F(Replay, a_run_with_devices_is_replayed) {
  for (const char* problem :
       {"problem: {matrix: {generate: spd, n: 768}}\nlayout: {tile: 128, strip: 32, small: 32}\n",
        "problem: {factorization: qr, matrix: {generate: random, n: 512}}\n"
        "layout: {tile: 128, strip: 0, inner: 32, virtual: 1}\n"}) {
    ASSERT_EQ(solve(std::string(problem).append(
                        "runtime: {cpu_workers: 1, devices: {backend: emulated, per_node: 2}}\n"),
                    0, {"--trace", "run", "--report", "was.json"})
                  .status,
              0);
    const Ended ended = run(on(1, {"replay", "run", "--report", "is.json"}));
    ASSERT_EQ(ended.status, 0) << ended.error;
    EXPECT_NE(ended.out.find("kernels           as the run had them\n"), std::string::npos)
        << ended.out;
    EXPECT_EQ(ended.out.find("limit"), std::string::npos) << ended.out;
    const json is = report("is.json");
    EXPECT_EQ(is.at("devices"), 2);
    EXPECT_GT(is.at("copies").get<int>(), 0);
    EXPECT_GT(is.at("busy").at("devices").get<double>(), 0);
    EXPECT_EQ(is.at("recorded_evictions"), 0);
    const Ended fewer =
        run(on(1, {"replay", "run", "--set", "machine.devices=1", "--report", "fewer.json"}));
    ASSERT_EQ(fewer.status, 0) << fewer.error;
    EXPECT_EQ(report("fewer.json").at("tasks"), is.at("tasks"));
    EXPECT_EQ(report("fewer.json").at("devices"), 1);
  }
}

TEST_F(Replay, a_simulated_run_with_devices_is_replayed_as_it_was) {
  std::string machine =
      "heddle_simulated_machine: 1\nname: fast\ncpu_workers: 2\ndevices: 2\ndevice_streams: 2\n"
      "runtime: {launch_us: 0, notice_us: 0}\nkernels:\n";
  for (const char* runner : {"host", "device"}) {
    machine += std::string("  ").append(runner).append(":\n");
    for (const char* kernel : {"potrf", "trsm", "syrk", "gsmm"}) {
      machine += std::string("    - {kernel: ")
                     .append(kernel)
                     .append(", size: 100, gflops: ")
                     .append(runner[0] == 'h' ? "10}\n" : "100}\n");
    }
  }
  folder_.write("fast.yaml", machine);
  ASSERT_EQ(simulate({"p.yaml", "--machine", "fast.yaml", "--trace", "run", "--report", "was.json"})
                .status,
            0);
  const Ended ended = run(on(1, {"replay", "run", "--set", "machine.runtime.launch_us=0", "--set",
                                 "machine.runtime.notice_us=0", "--report", "is.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  const double was = report("was.json").at("seconds").at("factor").get<double>();
  // Times alone are found from those side by side; copies' latency is found as part of their rate.
  EXPECT_NEAR(report("is.json").at("seconds").at("factor").get<double>(), was, 0.01 * was);
  EXPECT_EQ(report("is.json").at("copies"), report("was.json").at("copies"));
  const Ended fewer =
      run(on(1, {"replay", "run", "--set", "machine.devices=1", "--report", "fewer.json"}));
  ASSERT_EQ(fewer.status, 0) << fewer.error;
  EXPECT_GT(report("fewer.json").at("seconds").at("factor").get<double>(), was);
}

TEST_F(Replay, a_run_that_evicted_does_so_again_and_does_not_where_there_is_room) {
  ASSERT_EQ(solve("problem: {matrix: {generate: spd, n: 1024}}\n"
                  "layout: {tile: 128, strip: 0}\n"
                  "runtime: {cpu_workers: 1, devices: {backend: emulated, per_node: 1, memory: "
                  "3MiB}}\n",
                  0, {"--trace", "run"})
                .status,
            0);
  const Ended ended = run(on(1, {"replay", "run", "--report", "r.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_GT(report("r.json").at("recorded_evictions").get<int>(), 0);
  EXPECT_GT(report("r.json").at("evictions").get<int>(), 0);
  EXPECT_NE(ended.out.find("evictions"), std::string::npos) << ended.out;
  const Ended roomy = run(
      on(1, {"replay", "run", "--set", "machine.device_memory=64MiB", "--report", "roomy.json"}));
  ASSERT_EQ(roomy.status, 0) << roomy.error;
  EXPECT_EQ(report("roomy.json").at("evictions"), 0);
  EXPECT_EQ(report("roomy.json").at("fetches"), 0);
  EXPECT_EQ(roomy.out.find("evictions"), std::string::npos) << roomy.out;
}

TEST_F(Replay, repeats_a_run_task_by_task_and_message_by_message) {
  for (const char* problem : {"p.yaml", "q.yaml"}) {
    const Ended first = simulate({problem, "--machine", "m.yaml", "--set",
                                  "machine.nodes_per_host=4", "--set", "machine.kernels.noise=0.5",
                                  "--seed", "3", "--trace", "run", "--report", "was.json"});
    ASSERT_EQ(first.status, 0) << first.error;
    const double was = report("was.json").at("seconds").at("factor").get<double>();
    const Ended again = run(on(1, {"replay", "run", "--report", "is.json"}));
    ASSERT_EQ(again.status, 0) << again.error;
    EXPECT_NEAR(report("is.json").at("seconds").at("factor").get<double>(), was, 5e-3 * was)
        << problem;
    // With the means of each kernel, as where something has changed, it is another run.
    const Ended other =
        run(on(1, {"replay", "run", "--set", "runtime.window=8191", "--report", "means.json"}));
    ASSERT_EQ(other.status, 0) << other.error;
    const double means = report("means.json").at("seconds").at("factor").get<double>();
    EXPECT_GT(std::abs(means - was), 1e-2 * was) << problem;
  }
}

}  // namespace heddle
