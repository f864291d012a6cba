#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tests/system/heddle_run.hpp"

/// What launchers, shells and batch systems do to a run: each ends it with a sentence, in bounded
/// time, or leaves it alone.
namespace heddle {
namespace {

using testing::Ended;
using testing::HeddleRun;
using testing::Process;

using Words = std::vector<std::string>;

constexpr const char* problem =
    "problem: {matrix: {generate: spd, n: 60}, rhs: {generate: random}}\nlayout: {tile: 16}\n";

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Where the system lets this test have file systems and users of its own.
bool is_root() {
  return ::geteuid() == 0 && std::system("unshare -m true 2>/dev/null") == 0;
}

class Launch : public HeddleRun {
 protected:
  void SetUp() override {
    HeddleRun::SetUp();
    folder_.write("problem.yaml", problem);
  }

  static Words solve_words() { return {HEDDLE_BINARY, "solve", "problem.yaml"}; }

  /// Alone, with these variables ("NAME=value") in the environment.
  Ended run_with(const Words& variables, const Words& words = solve_words()) const {
    return run(Words{"env"} + variables + words);
  }

  static void expect_told(const Ended& ended, int status, const std::vector<std::string>& parts) {
    EXPECT_EQ(ended.status, status) << ended.out << ended.error;
    for (const std::string& part : parts) {
      EXPECT_NE(ended.error.find(part), std::string::npos) << part << " in: " << ended.error;
    }
    for (const char* library : {"UCX", "MPIR_", "[cli_", "terminate called"}) {
      EXPECT_EQ((ended.out + ended.error).find(library), std::string::npos)
          << ended.out << ended.error;
    }
  }
};

}  // namespace

TEST_F(Launch, by_srun_without_pmi_is_refused_by_every_process) {
  for (const char* rank : {"0", "1", "2"}) {
    expect_told(run_with({std::string("SLURM_PROCID=") + rank, "SLURM_NTASKS=3",
                          "SLURM_STEP_NUM_TASKS=3", "SLURM_STEP_ID=0"}),
                2, {"srun as one of 3 processes", "--mpi=pmi2"});
  }
  expect_told(run_with({"SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_STEP_ID=4"}), 2,
              {"srun as one of 2 processes"});
}

TEST_F(Launch, by_other_launchers_is_refused) {
  for (const char* variable : {"FLUX_JOB_SIZE=2", "JSM_NAMESPACE_SIZE=4", "MV2_COMM_WORLD_SIZE=2",
                               "OMPI_COMM_WORLD_SIZE=2", "PMIX_RANK=0"}) {
    const std::string text = variable;
    expect_told(run_with({text}), 2, {text.substr(0, text.find('=')), "mpiexec.mpich"});
  }
}

TEST_F(Launch, inside_a_job_but_as_one_process_is_a_run_of_one_node) {
  for (const Words& variables :
       {Words{"SLURM_PROCID=0", "SLURM_NTASKS=8", "SLURM_JOB_ID=77"},
        Words{"SLURM_PROCID=0", "SLURM_NTASKS=8", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=1"},
        Words{"FLUX_JOB_SIZE=1"}}) {
    const Ended ended = run_with(variables);
    EXPECT_EQ(ended.status, 0) << ended.error;
  }
}

TEST_F(Launch, with_pmi_of_another_process_is_refused_whoever_it_seems_to_be) {
  for (const char* rank : {"PMI_RANK=0", "PMI_RANK=1"}) {
    const Words variables{rank, "PMI_SIZE=2"};
    for (const Words& words :
         {solve_words(), Words{HEDDLE_BINARY, "solve", "nope.yaml"}, Words{HEDDLE_BINARY, "--help"},
          Words{HEDDLE_BINARY, "schema"}, Words{HEDDLE_BINARY, "doctor"}}) {
      expect_told(run_with(variables, words), 2, {rank + 9, "PMI_SIZE is 2", "env -u PMI_RANK"});
    }
  }
  expect_told(run_with({"PMI_RANK=3", "PMI_SIZE=2"}), 2, {"PMI_RANK is 3"});
  expect_told(run_with({"PMI_SIZE=2"}), 2, {"PMI_RANK is not set"});
  expect_told(run_with({"PMI_RANK=0", "PMI_SIZE=2", "PMI_FD=77"}), 2, {"file 77 (PMI_FD)"});
  // Open, but no launcher's connection.
  expect_told(run_with({"PMI_RANK=0", "PMI_SIZE=2", "PMI_FD=0"}), 2, {"file 0 (PMI_FD)"});
}

TEST_F(Launch, below_a_program_that_does_not_pass_the_connection_on_is_refused) {
  for (const int nodes : {1, 2}) {
    const Ended ended =
        run({HEDDLE_MPIEXEC, "-n", std::to_string(nodes), "bash", "-c",
             fmt::format("eval \"exec $PMI_FD>&-\"; {} solve problem.yaml", HEDDLE_BINARY)});
    expect_told(ended, 2, {"PMI_FD", "has not passed it on to heddle"});
  }
}

TEST_F(Launch, of_a_node_that_never_comes_up_ends_the_others) {
  for (const char* nodes : {"1", "2", "3"}) {
    SCOPED_TRACE(nodes);
    const Ended ended = run(Words{"env", "HEDDLE_START_SECONDS=1", HEDDLE_MPIEXEC, "-n", nodes} +
                            solve_words() + Words{":", "-n", "1", "sleep", "0"});
    expect_told(ended, 4, {"have not come up within 1 s"});
  }
}

TEST_F(Launch, with_little_shared_memory_says_how_much_is_needed) {
  if (!is_root()) GTEST_SKIP() << "needs a file system of its own";
  for (const char* command : {"solve problem.yaml", "doctor"}) {
    const Ended ended = run({"unshare", "-m", "bash", "-c",
                             fmt::format("mount -t tmpfs -o size=4m none /dev/shm; {} -n 2 {} {}",
                                         HEDDLE_MPIEXEC, HEDDLE_BINARY, command)});
    expect_told(ended, 2, {"/dev/shm has 4.00 MiB", "--shm-size"});
  }
}

TEST_F(Launch, with_little_address_space_says_the_limit_and_what_is_needed) {
  for (const char* kib : {"250000", "300000", "400000", "450000"}) {
    SCOPED_TRACE(kib);
    const Ended ended = run({"bash", "-c",
                             fmt::format("ulimit -v {}; {} solve problem.yaml --set "
                                         "runtime.cpu_workers=2 --report report.json",
                                         kib, HEDDLE_BINARY)});
    expect_told(ended, 2, {"ulimit -v", "MiB"});
  }
  expect_told(run({"bash", "-c",
                   fmt::format("ulimit -v 400000; env -u OPENBLAS_CORETYPE {} tune --output "
                               "machine.yaml --set runtime.cpu_workers=2",
                               HEDDLE_BINARY)}),
              2, {"ulimit -v", "MiB"});
  for (const char* limit : {"-v 100000", "-v 200000", "-v 300000", "-d 200000"}) {
    for (const int nodes : {2, 3}) {
      SCOPED_TRACE(limit);
      const Ended ended = run({HEDDLE_MPIEXEC, "-n", std::to_string(nodes), "bash", "-c",
                               fmt::format("ulimit {}; {} solve problem.yaml --set "
                                           "runtime.cpu_workers=2",
                                           limit, HEDDLE_BINARY)});
      expect_told(ended, 2, {std::string("ulimit ") + std::string(limit).substr(0, 2), "MiB"});
    }
  }
}

TEST_F(Launch, with_enough_address_space_counts_the_limit_in_the_plan) {
  folder_.write("problem.yaml",
                "problem: {matrix: {generate: spd, n: 20000}, verify: false}\n"
                "runtime: {cpu_workers: 1}\n");
  const Ended ended =
      run({"bash", "-c", fmt::format("ulimit -v 1500000; {} solve problem.yaml", HEDDLE_BINARY)});
  expect_told(ended, 2, {"not enough memory"});
  folder_.write("problem.yaml", std::string(problem) + "runtime: {cpu_workers: 1}\n");
  EXPECT_EQ(
      run({"bash", "-c", fmt::format("ulimit -v 1500000; {} solve problem.yaml", HEDDLE_BINARY)})
          .status,
      0);
}

TEST_F(Launch, with_few_threads_says_so) {
  if (!is_root()) GTEST_SKIP() << "needs a user with no other processes";
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0777), 0);
  const Words user{"setpriv", "--reuid", "54321", "--clear-groups", "env", "XDG_CACHE_HOME=/tmp"};
  for (const int processes : {1, 2, 3}) {
    SCOPED_TRACE(processes);
    expect_told(run(user + Words{"bash", "-c",
                                 fmt::format("ulimit -u {}; exec {} solve problem.yaml", processes,
                                             HEDDLE_BINARY)}),
                2, {"no thread or process for ", "ulimit -u"});
  }
}

TEST_F(Launch, on_nodes_of_few_threads_says_so_or_runs) {
  if (!is_root()) GTEST_SKIP() << "needs a user with no other processes";
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0777), 0);
  for (const int processes : {6, 8, 10, 12, 16, 18, 20, 40}) {
    SCOPED_TRACE(processes);
    const Ended ended = run({"setpriv", "--reuid", "54321", "--clear-groups", "env",
                             "XDG_CACHE_HOME=/tmp", "bash", "-c",
                             fmt::format("ulimit -u {}; exec {} -n 2 {} solve problem.yaml",
                                         processes, HEDDLE_MPIEXEC, HEDDLE_BINARY)});
    if (ended.status == 0) continue;
    expect_told(ended, 2, {"no thread or process for ", "ulimit -u"});
  }
}

TEST_F(Launch, of_nodes_that_are_stopped_for_a_while_goes_on) {
  folder_.write("problem.yaml",
                "problem: {matrix: {generate: spd, n: 3000}, verify: false}\n"
                "layout: {tile: 16}\nruntime: {cpu_workers: 1}\ntrace: {file: trace.json}\n");
  // Of one run all nodes are stopped, of the other one of them.
  Process first(on(2, {"solve", "problem.yaml"}), folder_.path());
  ASSERT_TRUE(first.wait_for_output("  trace  ")) << first.wait().error;
  std::vector<pid_t> stopped = testing::processes_named("heddle");
  ASSERT_EQ(stopped.size(), 2U);
  for (const pid_t node : stopped) ASSERT_EQ(::kill(node, SIGSTOP), 0);
  Process second(on(2, {"solve", "problem.yaml", "--set", "trace.file=null"}), folder_.path());
  ASSERT_TRUE(second.wait_for_output("  trace  ")) << second.wait().error;
  for (const pid_t node : testing::processes_named("heddle")) {
    if (std::find(stopped.begin(), stopped.end(), node) == stopped.end()) {
      stopped.push_back(node);
      ASSERT_EQ(::kill(node, SIGSTOP), 0);
      break;
    }
  }
  ASSERT_EQ(stopped.size(), 3U);
  std::this_thread::sleep_for(std::chrono::milliseconds(9500));  // silence counts from 8 s on
  for (const pid_t node : stopped) ASSERT_EQ(::kill(node, SIGCONT), 0);
  for (Process* run : {&first, &second}) {
    const Ended ended = run->wait();
    EXPECT_EQ(ended.status, 0) << ended.error;
  }
}

}  // namespace heddle
