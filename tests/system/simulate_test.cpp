#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>

#include "tests/system/simulate_run.hpp"

/// `heddle simulate`, on machines of files, whose results do not depend on this one.
namespace heddle {
namespace {

using nlohmann::json;
using testing::Ended;

using Simulate = testing::SimulateRun;

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

/// 3 workers of each node.
TEST_F(Simulate, says_that_it_does_not_foresee_what_workers_without_cores_take) {
  for (const auto& [cores, on_a_host, lacks] :
       {std::tuple{"0", "4", false}, std::tuple{"12", "4", false}, std::tuple{"11", "4", true},
        std::tuple{"3", "1", false}}) {
    const Ended ended = simulate(
        {"p.yaml", "--machine", "m.yaml", "--set", std::string("machine.cores=") + cores, "--set",
         std::string("machine.nodes_per_host=") + on_a_host, "--report", "r.json"});
    ASSERT_EQ(ended.status, 0) << ended.error;
    EXPECT_EQ(ended.out.find("only 11 for 12 workers of a host") != std::string::npos, lacks)
        << ended.out;
    EXPECT_EQ(report("r.json").at("lacks_cores_for_workers"), lacks) << cores;
  }
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

TEST_F(Simulate, a_job_takes_time_around_its_tasks_which_its_replay_knows) {
  const auto seconds = [&](const std::vector<std::string>& words) {
    const Ended ended = run(on(1, words));
    EXPECT_EQ(ended.status, 0) << ended.error;
    return report("r.json").at("seconds").at("factor").get<double>();
  };
  std::vector<std::string> words{"simulate", "p.yaml", "--machine", "m.yaml", "--report", "r.json"};
  const double tasks = seconds(words);
  words.insert(words.end(), {"--set", "machine.runtime.job_us=1000", "--trace", "around"});
  EXPECT_NEAR(seconds(words), tasks + 1e-3, 1e-9);
  EXPECT_NEAR(seconds({"replay", "around", "--report", "r.json"}), tasks + 1e-3, 1e-6);
  EXPECT_NEAR(
      seconds({"replay", "around", "--set", "machine.runtime.job_us=0", "--report", "r.json"}),
      tasks, 0.01 * tasks);
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

/// 8 nodes on 4 hosts, in one grid row: all of them read each panel's tiles.
TEST_F(Simulate, with_trees_tells_what_homes_save) {
  const auto analyzed = [&](const std::string& readers) {
    std::vector<std::string> words{"p.yaml", "--machine", "m.yaml", "--trace", readers};
    for (const char* setting :
         {"machine.nodes=8", "machine.nodes_per_host=2", "layout.grid=[1,8]"}) {
      words.insert(words.end(), {"--set", setting});
    }
    words.insert(words.end(), {"--set", "runtime.messages.readers=" + readers});
    EXPECT_EQ(simulate(words).status, 0);
    return run(on(1, {"analyze", readers, "--report", readers + ".json"})).out;
  };
  EXPECT_EQ(analyzed("home").find("by readers"), std::string::npos);
  const json home = report("home.json").at("runs").at(0);
  EXPECT_EQ(home.at("readers").at("passed_on"), 0);
  const std::string told = analyzed("tree");
  EXPECT_NE(told.find("by readers"), std::string::npos) << told;
  EXPECT_NE(told.find("sent to other hosts"), std::string::npos) << told;
  const json tree = report("tree.json").at("runs").at(0);
  EXPECT_EQ(tree.at("messages").at("bytes"), home.at("messages").at("bytes"));
  const json& host = tree.at("readers").at("largest_host");
  EXPECT_LT(2 * host.at("bytes").get<double>(), host.at("bytes_from_homes").get<double>());
}

TEST_F(Simulate, a_sweep_is_a_table_of_all_combinations) {
  const Ended ended =
      simulate({"p.yaml", "--machine", "m.yaml", "--sweep", "layout.tile=50,100,200", "--sweep",
                "machine.nodes=1,4", "--report", "r.json", "--picture", "c.svg"});
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("6 cases simulated on small"), std::string::npos) << ended.out;
  const json r = report("r.json");
  ASSERT_EQ(r.at("cases").size(), 6U);
  EXPECT_EQ(r.at("sweep"), (json{"layout.tile", "machine.nodes"}));
  double best = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    const json& one = r.at("cases").at(i);
    // The last key changes first.
    EXPECT_EQ(one.at("tile"), 50 << i / 2);
    EXPECT_EQ(one.at("nodes"), i % 2 == 0 ? 1 : 4);
    EXPECT_EQ(one.at("set").at("machine.nodes"), i % 2 == 0 ? "1" : "4");
    EXPECT_TRUE(one.at("refused").is_null());
    EXPECT_GT(one.at("bounds").at("critical_path").get<double>(), 0);
    EXPECT_LE(one.at("share_of_bound").get<double>(), 1.0);
    best = std::max(best, one.at("gflops").get<double>());
    // Each as it would be alone.
    const std::string tile = "layout.tile=" + std::to_string(50 << i / 2);
    const std::string nodes = i % 2 == 0 ? "machine.nodes=1" : "machine.nodes=4";
    ASSERT_EQ(simulate({"p.yaml", "--machine", "m.yaml", "--set", tile, "--set", nodes, "--report",
                        "alone.json"})
                  .status,
              0);
    EXPECT_EQ(report("alone.json").at("seconds"), one.at("seconds"));
    EXPECT_EQ(report("alone.json").at("bounds"), one.at("bounds"));
  }
  EXPECT_EQ(r.at("cases").at(r.at("best").get<std::size_t>()).at("gflops"), best);
  std::size_t lines = 0;
  for (std::size_t at = ended.out.find("\n*"); at != std::string::npos;
       at = ended.out.find("\n*", at + 1)) {
    ++lines;
  }
  EXPECT_EQ(lines, 2U) << ended.out;  // the best one, and what the mark means
  const std::string svg = testing::read_file(folder_ / "c.svg");
  EXPECT_TRUE(svg.starts_with("<svg")) << svg;
  for (const char* text : {"layout.tile", "nodes 1", "nodes 4", "GFLOP/s", "</svg>"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
}

TEST_F(Simulate, a_case_that_is_refused_says_why_in_its_row) {
  const Ended ended = simulate({"p.yaml", "--machine", "m.yaml", "--sweep",
                                "layout.grid=[1, 4],[3, 1]", "--report", "r.json"});
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("layout.grid [3, 1] is for 3 nodes"), std::string::npos) << ended.out;
  const json r = report("r.json");
  EXPECT_EQ(r.at("cases").at(0).at("grid"), (json{1, 4}));
  EXPECT_NE(r.at("cases").at(1).at("refused").get<std::string>().find("is for 3 nodes"),
            std::string::npos);
  EXPECT_EQ(r.at("best"), 0);
  expect_80_columns(ended.out);
}

TEST_F(Simulate, priorities_and_windows_are_compared) {
  const Ended ended = simulate({"p.yaml", "--machine", "m.yaml", "--set", "layout.tile=25",
                                "--policies", "--report", "r.json"});
  ASSERT_EQ(ended.status, 0) << ended.error;
  const json cases = report("r.json").at("cases");
  ASSERT_EQ(cases.size(), 10U);
  const auto seconds = [&](std::size_t i) {
    return cases.at(i).at("seconds").at("factor").get<double>();
  };
  std::vector<std::string> rules;
  for (const json& one : cases) {
    rules.push_back(one.at("priorities"));
    EXPECT_EQ(one.at("bounds").at("critical_path"), cases.at(0).at("bounds").at("critical_path"));
    EXPECT_EQ(one.at("tasks"), cases.at(0).at("tasks"));
  }
  EXPECT_EQ(rules,
            (std::vector<std::string>{"program", "fifo", "reverse", "random", "path", "program",
                                      "program", "program", "program", "program"}));
  EXPECT_EQ(cases.at(5).at("window"), 256);
  EXPECT_EQ(cases.at(0).at("window"), 8192);
  EXPECT_LT(seconds(0), seconds(2));  // the program's priorities against their reverse
  EXPECT_LT(seconds(4), seconds(2));
  ASSERT_EQ(simulate({"p.yaml", "--machine", "m.yaml", "--set", "layout.tile=25", "--set",
                      "runtime.priorities=path", "--report", "r.json"})
                .status,
            0);
  EXPECT_EQ(report("r.json").at("seconds").at("factor"), seconds(4));
}

TEST_F(Simulate, a_window_of_one_task_uses_one_worker) {
  ASSERT_EQ(simulate({"p.yaml", "--machine", "m.yaml", "--set", "machine.nodes=1", "--sweep",
                      "runtime.window=1,8192", "--report", "r.json"})
                .status,
            0);
  const json cases = report("r.json").at("cases");
  const auto seconds = [&](std::size_t i) {
    return cases.at(i).at("seconds").at("factor").get<double>();
  };
  EXPECT_GE(seconds(0), 800.0 * 800 * 800 / 3 / 1e10);
  EXPECT_LT(seconds(1), seconds(0) / 2);
}

TEST_F(Simulate, a_run_is_replayed_in_a_sweep) {
  ASSERT_EQ(simulate({"p.yaml", "--machine", "m.yaml", "--trace", "run"}).status, 0);
  const Ended ended = run(on(1, {"replay", "run", "--machine", "m.yaml", "--sweep",
                                 "machine.nodes=1,2,4", "--report", "r.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  const json r = report("r.json");
  EXPECT_EQ(r.at("cases").size(), 3U);
  EXPECT_EQ(r.at("best"), 2);
  EXPECT_GT(r.at("recorded_seconds").get<double>(), 0);
}

TEST_F(Simulate, noise_follows_its_seed_and_is_told_by_its_spread) {
  const auto seconds = [&](const char* noise, const char* seed) {
    const Ended ended = simulate({"p.yaml", "--machine", "m.yaml", "--set",
                                  std::string("machine.kernels.noise=").append(noise), "--seed",
                                  seed, "--report", "r.json"});
    EXPECT_EQ(ended.status, 0) << ended.error;
    return report("r.json").at("seconds").at("factor").get<double>();
  };
  const double without = seconds("0", "1");
  EXPECT_EQ(without, seconds("0", "2"));
  EXPECT_EQ(seconds("0.2", "1"), seconds("0.2", "1"));
  EXPECT_NE(seconds("0.2", "1"), seconds("0.2", "2"));
  const Ended ended =
      simulate({"p.yaml", "--machine", "m.yaml", "--sweep", "machine.kernels.noise=0,0.05,0.5",
                "--repeat", "21", "--report", "r.json"});
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("5 to 95 %"), std::string::npos) << ended.out;
  expect_80_columns(ended.out);
  const json cases = report("r.json").at("cases");
  EXPECT_TRUE(cases.at(0).at("repeats").is_null());
  EXPECT_EQ(cases.at(0).at("seconds").at("factor"), without);
  const auto width = [&](std::size_t i) {
    const json& repeats = cases.at(i).at("repeats");
    EXPECT_EQ(repeats.at("count"), 21);
    EXPECT_EQ(repeats.at("median"), cases.at(i).at("seconds").at("factor"));
    EXPECT_LE(repeats.at("low"), repeats.at("median"));
    return repeats.at("high").get<double>() - repeats.at("low").get<double>();
  };
  EXPECT_GT(width(1), 0);
  EXPECT_GT(width(2), width(1));
  EXPECT_NEAR(cases.at(1).at("seconds").at("factor").get<double>(), without, 0.1 * without);
}

TEST_F(Simulate, times_of_a_run_are_drawn_again) {
  ASSERT_EQ(simulate({"p.yaml", "--machine", "m.yaml", "--set", "machine.kernels.noise=0.3",
                      "--trace", "run"})
                .status,
            0);
  const Ended ended =
      run(on(1, {"replay", "run", "--machine", "m.yaml", "--set", "machine.kernels.noise=recorded",
                 "--repeat", "21", "--report", "r.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("as times differed in the run"), std::string::npos) << ended.out;
  const json r = report("r.json");
  EXPECT_LT(r.at("repeats").at("low"), r.at("repeats").at("high"));
  const double median = r.at("repeats").at("median").get<double>();
  EXPECT_NEAR(r.at("recorded_seconds").get<double>(), median, 0.3 * median);
}

TEST_F(Simulate, measures_this_machine_when_none_is_named) {
  const Ended ended = simulate({"p.yaml", "--set", "runtime.cpu_workers=1", "--report", "r.json"});
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("as rehearsed on this machine"), std::string::npos) << ended.out;
  EXPECT_EQ(report("r.json").at("cpu_workers"), 1);
  EXPECT_GT(report("r.json").at("busy").at("workers").get<double>(), 0.5);
}

/// What differs in the window alone is not rehearsed twice.
TEST_F(Simulate, rehearses_once_what_computes_the_same) {
  const Ended ended = simulate({"p.yaml", "--set", "runtime.cpu_workers=1", "--sweep",
                                "runtime.window=4096,8192", "--report", "r.json"});
  ASSERT_EQ(ended.status, 0) << ended.error;
  const json cases = report("r.json").at("cases");
  ASSERT_EQ(cases.size(), 2);
  EXPECT_EQ(cases[0].at("seconds").at("factor"), cases[1].at("seconds").at("factor"));
}

/// Tasks that workers divide are no tasks of a rehearsal.
TEST_F(Simulate, times_what_is_not_rehearsed) {
  const Ended ended =
      simulate({"p.yaml", "--set", "runtime.cpu_workers=1", "--set", "layout.hierarchy=on", "--set",
                "layout.tile=128", "--set", "layout.small=64"});
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("as measured on this machine"), std::string::npos) << ended.out;
  expect_80_columns(ended.out);
}

TEST_F(Simulate, has_the_devices_that_tune_has_measured) {
  ::unsetenv("OPENBLAS_CORETYPE");  // tune refuses it
  for (const char* backend : {"emulated", "none"}) {
    ASSERT_EQ(
        run(alone({"tune", "-q", "--seconds", "1", "--output", std::string(backend).append(".yaml"),
                   "--set", std::string("runtime.devices.backend=").append(backend)}))
            .status,
        0);
  }
  const auto simulated = [&](const char* machine) {
    return simulate({"p.yaml", "--set", "layout.tile=256", "--set", "runtime.cpu_workers=1",
                     "--set", "runtime.devices={backend: emulated, per_node: 2}", "--set",
                     std::string("machine=").append(machine), "--report", "r.json"});
  };
  const Ended with = simulated("emulated.yaml");
  ASSERT_EQ(with.status, 0) << with.error;
  EXPECT_NE(with.out.find("as measured here, devices' by heddle tune's rates"), std::string::npos)
      << with.out;
  EXPECT_EQ(report("r.json").at("devices"), 2);
  EXPECT_GT(report("r.json").at("busy").at("devices").get<double>(), 0) << "rates may be any";
  const Ended without = simulated("none.yaml");
  EXPECT_EQ(without.status, 2);
  EXPECT_NE(without.error.find("runtime.devices: emulated devices cannot be simulated: heddle tune "
                               "has not measured their kernels here"),
            std::string::npos)
      << without.error;
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
  refused({"p.yaml", "--set", "machine.nods=3"}, "did you mean 'nodes'?");
  refused({"p.yaml", "--set", "machine.wake_us=3"}, "did you mean 'machine.runtime.wake_us'?");
  refused({"p.yaml", "--set", "machine.wakeup_us=3"}, "did you mean 'machine.runtime.wake_us'?");
  refused({"p.yaml", "--set", "machine.noise=0.1"}, "did you mean 'machine.kernels.noise'?");
  refused({"p.yaml", "--set", "machine.rate=3"},
          "'machine.network.rate' or 'machine.memory.rate'?");
  refused({"p.yaml", "--set", "machine.network.rate=-3"},
          "--set machine.network.rate=-3: 'rate' must be positive");
  refused({"p.yaml", "--set", "machine.nodes"}, "expected machine.KEY=VALUE");
  refused({"p.yaml", "--machine", "m.yaml", "--set", "machine.nodes_per_host=3"},
          "4 nodes do not fill hosts with 3 each");
  refused({"p.yaml", "--machine", "m.yaml", "--set", "machine.devices=1"},
          "has devices, but no rates of kernels on them (kernels.device)");
  refused({"p.yaml", "--set", "layout.tlie=3"}, "did you mean 'tile'?");
  refused({"p.yaml", "--machine", "m.yaml", "--sweep", "machine.nods=1,2"},
          "did you mean 'nodes'?");
  refused({"p.yaml", "--machine", "m.yaml", "--sweep", "machine.nodes"},
          "--sweep machine.nodes: no key or no values; expected KEY.PATH=VALUE,VALUE,...");
  refused({"p.yaml", "--machine", "m.yaml", "--sweep", "machine.nodes=1,1"}, "is there twice");
  std::string many = "layout.tile=1";
  for (int i = 2; i <= 40; ++i) many.append(",").append(std::to_string(i));
  const std::string more = std::string("runtime.window").append(many.substr(many.find('=')));
  refused({"p.yaml", "--machine", "m.yaml", "--sweep", many, "--sweep", more},
          "--sweep: 1600 cases; at most 1000 are simulated");
  refused({"p.yaml", "--machine", "m.yaml", "--set", "runtime.priorities=paht"},
          "did you mean 'path'?");
  refused({"p.yaml", "--machine", "m.yaml", "--set", "policy.priority=path"},
          "did you mean 'priorities'?");
  refused({"p.yaml", "--machine", "m.yaml", "--set", "machine.kernels.noise=loud"},
          "'noise' must be 'recorded', or standard deviation over mean, 0 to 3");
  refused({"p.yaml", "--machine", "m.yaml", "--set", "machine.kernels.noise=recorded"},
          "no run has recorded what 'potrf' takes");
  refused({"p.yaml", "--machine", "m.yaml", "--repeat", "5"}, "--repeat: nothing is drawn");
  refused({"p.yaml", "--machine", "m.yaml", "--policies", "--trace", "run"},
          "--trace writes one run");
  refused({"p.yaml", "--machine", "m.yaml", "--picture", "c.svg"}, "--picture draws what");
  refused({"p.yaml", "--machine", "m.yaml", "--set", "layout.grid=[3, 1]"},
          "layout.grid [3, 1] is for 3 nodes");
  folder_.write("bad.yaml",
                "heddle_simulated_machine: 1\nkernels:\n  host:\n    - {kernel: gsmm}\n");
  refused({"p.yaml", "--machine", "bad.yaml"},
          "machine file bad.yaml:4:7: the key 'size' is missing");
  refused({"p.yaml", "--set", "machine.network.latency=3"}, "did you mean 'latency_us'?");
  folder_.write("near.yaml", "heddle_simulated_machine: 1\nname: near\nworkers: 3\n");
  refused({"p.yaml", "--machine", "near.yaml"},
          "machine file near.yaml:3:1: 'machine' has no key 'workers'");
  refused({"p.yaml", "--machine", "near.yaml"}, "did you mean 'cpu_workers'?");
  folder_.write("few.yaml",
                "heddle_simulated_machine: 1\nname: few\nkernels: {host: [{kernel: gsmm, size: 9, "
                "gflops: 1}]}\n");
  refused({"p.yaml", "--machine", "few.yaml"},
          "machine 'few' has no time for kernel 'potrf' on 100 x 100 tiles on the host");
  folder_.write("f.yaml", "problem: {matrix: {file: k.npy}}\n");
  refused({"f.yaml"}, "a simulation reads no file");
}

}  // namespace heddle
