#include <algorithm>
#include <chrono>
#include <csignal>
#include <fmt/format.h>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/system/heddle_run.hpp"

/// Runs that fail: matrices that are not positive definite, killed nodes, interruptions.
namespace heddle {
namespace {

using testing::Dense;
using testing::Ended;
using testing::HeddleRun;
using testing::Process;

class Failure : public HeddleRun {
 protected:
  [[nodiscard]] std::set<std::string> files() const {
    const auto names = folder_.names();
    return {names.begin(), names.end()};
  }
};

/// A run that takes some seconds: many small tasks.
constexpr const char* long_problem =
    "problem:\n  matrix: {generate: spd, n: 4000}\n  rhs: {generate: random, columns: 3}\n"
    "  output: {solution: x.npy, factor: l.npy}\n  verify: false\n"
    "layout: {tile: 16}\nruntime: {cpu_workers: 1}\ntrace: {file: trace.json}\n";

/// The rank that the launcher gave a process, from its environment.
int rank_of(pid_t process) {
  const std::string environment =
      testing::read_file("/proc/" + std::to_string(process) + "/environ");
  const auto at = environment.find("PMI_RANK=");
  return at == std::string::npos ? -1 : std::atoi(environment.c_str() + at + 9);
}

/// Node `rank` of the run that is on its way, once all have begun to factorize.
pid_t process_of_rank(int rank) {
  pid_t found = -1;
  static_cast<void>(testing::eventually(
      [&] {
        for (const pid_t process : testing::processes_named("heddle")) {
          if (rank_of(process) == rank) found = process;
        }
        return found > 0;
      },
      std::chrono::seconds(10)));
  return found;
}

/// Whether a process has a handler for a signal.
bool catches(pid_t process, int signal) {
  const std::string status = testing::read_file("/proc/" + std::to_string(process) + "/status");
  const std::string key = "SigCgt:";
  const auto at = status.find(key);
  if (at == std::string::npos) throw std::runtime_error("the process is gone");
  const auto caught = std::stoull(status.substr(at + key.size()), nullptr, 16);
  return (caught >> (signal - 1) & 1) != 0;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::vector<std::string> launch(int nodes) {
  std::vector<std::string> words{HEDDLE_MPIEXEC};
  const std::vector<std::string> rest{"-n",         std::to_string(nodes), HEDDLE_BINARY,
                                      "solve",      "problem.yaml",        "--report",
                                      "report.json"};
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

}  // namespace

TEST_F(Failure, of_a_matrix_that_is_not_positive_definite_gives_lapacks_info_on_every_grid) {
  const std::int64_t n = 90;
  for (const std::int64_t pivot : {std::int64_t{0}, n / 2, n - 1}) {
    Dense a = testing::spd(n);
    a(pivot, pivot) = -1.5;
    folder_.write("k.npy", testing::npy(a));
    folder_.write("b.npy", testing::npy(testing::sides(n, 1)));
    const std::int64_t info = testing::reference(a, testing::sides(n, 1)).info;
    ASSERT_EQ(info, pivot + 1);
    for (const auto& [nodes, grid] :
         {std::pair{1, "auto"}, {2, "[1, 2]"}, {2, "[2, 1]"}, {4, "[2, 2]"}, {6, "[3, 2]"}}) {
      SCOPED_TRACE(fmt::format("pivot {} nodes {} grid {}", pivot, nodes, grid));
      const Ended ended =
          solve(fmt::format("problem:\n  matrix: {{file: k.npy}}\n  rhs: {{file: b.npy}}\n"
                            "  output: {{solution: x.npy, factor: l.npy}}\n"
                            "layout: {{tile: 16, grid: {}}}\nruntime: {{cpu_workers: 1}}\n",
                            grid),
                nodes, {"--report", "report.json"});
      EXPECT_EQ(ended.status, 3) << ended.error;
      EXPECT_NE(ended.error.find(fmt::format("pivot {} ", info)), std::string::npos) << ended.error;
      const auto report = nlohmann::json::parse(testing::read_file(folder_ / "report.json"));
      EXPECT_EQ(report["status"], "not_positive_definite");
      EXPECT_EQ(report["info"], info);
      EXPECT_NE(report["hint"].get<std::string>().find("-1.5"), std::string::npos)
          << report["hint"];
      EXPECT_EQ(files(), (std::set<std::string>{"b.npy", "k.npy", "problem.yaml", "report.json"}));
    }
  }
}

TEST_F(Failure, of_a_device_that_finds_the_bad_pivot_gives_the_same_info) {
  Dense a = testing::spd(90);
  a(70, 70) = -2;
  folder_.write("k.npy", testing::npy(a));
  const Ended ended = solve(
      "problem: {matrix: {file: k.npy}}\nlayout: {tile: 32, strip: 0}\n"
      "runtime: {devices: {backend: emulated, per_node: 2, memory: 64MiB}}\n",
      2, {"--report", "report.json"});
  EXPECT_EQ(ended.status, 3) << ended.error;
  EXPECT_EQ(nlohmann::json::parse(testing::read_file(folder_ / "report.json"))["info"], 71);
}

TEST_F(Failure, of_a_killed_node_ends_the_run_and_leaves_nothing_behind) {
  folder_.write("problem.yaml", long_problem);
  for (const int rank : {0, 1, 2}) {
    for (const int signal : {SIGKILL, SIGSEGV}) {
      SCOPED_TRACE(fmt::format("rank {} signal {}", rank, signal));
      Process run(launch(3), folder_.path());
      ASSERT_TRUE(run.wait_for_output("  trace  ")) << run.wait().error;
      ASSERT_EQ(::kill(process_of_rank(rank), signal), 0);
      const auto begin = std::chrono::steady_clock::now();
      const Ended ended = run.wait();
      EXPECT_LT(seconds_since(begin), 10);
      EXPECT_NE(ended.status, 0);
      EXPECT_TRUE(
          testing::eventually([&] { return files() == std::set<std::string>{"problem.yaml"}; },
                              std::chrono::seconds(5)))
          << fmt::format("{}", fmt::join(files(), ", "));
    }
  }
}

/// A handler that prints a backtrace allocates: in a process that crashed inside the allocator it
/// would wait for itself, and all nodes with it until their watchdogs end them.
TEST_F(Failure, of_a_node_that_crashes_is_not_kept_by_a_handler_of_the_communication_library) {
  folder_.write("problem.yaml", long_problem);
  Process run(launch(2), folder_.path());
  ASSERT_TRUE(run.wait_for_output("  trace  ")) << run.wait().error;
  for (const int rank : {0, 1}) {
    const pid_t process = process_of_rank(rank);
    for (const int signal : {SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV}) {
      EXPECT_FALSE(catches(process, signal)) << "node " << rank << ", signal " << signal;
    }
  }
}

/// The janitors keep MPICH's launcher from killing all others at once, but not for as long as a
/// busy machine may need, so each heddle runs below a shell that waits for the others' shells.
TEST_F(Failure, of_a_node_is_told_by_the_others_where_the_launcher_leaves_them_the_time) {
  folder_.write("problem.yaml", long_problem);
  folder_.write("patient",
                "#!/bin/bash\n\"$@\"\necho $? >status.$PMI_RANK\n"
                "for i in {1..100}; do\n"
                "  [[ -s status.0 && -s status.1 && -s status.2 ]] && exit 4\n  sleep 0.1\ndone\n");
  Process run({HEDDLE_MPIEXEC, "-n", "3", "bash", "patient", HEDDLE_BINARY, "solve", "problem.yaml",
               "--report", "report.json"},
              folder_.path());
  ASSERT_TRUE(run.wait_for_output("  trace  ")) << run.wait().error;
  ASSERT_EQ(::kill(process_of_rank(1), SIGKILL), 0);
  const auto begin = std::chrono::steady_clock::now();
  const Ended ended = run.wait();
  EXPECT_LT(seconds_since(begin), 10);
  // One may hear it from the other before it sees it itself.
  for (const char* part : {"heddle: node 0: ", "heddle: node 2: ", "node 1 on host", "was lost"}) {
    EXPECT_NE(ended.error.find(part), std::string::npos) << part << " in: " << ended.error;
  }
  EXPECT_EQ(testing::read_file(folder_ / "status.0"), "4\n");
  EXPECT_EQ(testing::read_file(folder_ / "status.1"), "137\n");
  EXPECT_EQ(testing::read_file(folder_ / "status.2"), "4\n");
  EXPECT_EQ(files(),
            (std::set<std::string>{"patient", "problem.yaml", "status.0", "status.1", "status.2"}));
}

TEST_F(Failure, by_interruption_ends_with_130_alone_and_on_several_nodes) {
  folder_.write("problem.yaml", long_problem);
  for (const int nodes : {0, 1, 3}) {
    for (const int signal : {SIGINT, SIGTERM}) {
      SCOPED_TRACE(fmt::format("nodes {} signal {}", nodes, signal));
      Process run(
          nodes == 0 ? alone({"solve", "problem.yaml", "--report", "report.json"}) : launch(nodes),
          folder_.path());
      ASSERT_TRUE(run.wait_for_output("  trace  ")) << run.wait().error;
      const auto begin = std::chrono::steady_clock::now();
      run.signal(signal);
      const Ended ended = run.wait();
      EXPECT_LT(seconds_since(begin), 5);
      EXPECT_EQ(ended.status, 130) << ended.error;
      EXPECT_NE(ended.error.find("interrupted"), std::string::npos) << ended.error;
      EXPECT_TRUE(
          testing::eventually([&] { return files() == std::set<std::string>{"problem.yaml"}; },
                              std::chrono::seconds(5)))
          << fmt::format("{}", fmt::join(files(), ", "));
    }
  }
}

}  // namespace heddle
