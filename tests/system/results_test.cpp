#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <vector>

#include "tests/system/heddle_run.hpp"

/// Interruptions around the moment when results get their names: all are there or none, and what is
/// said of them is true.
namespace heddle {
namespace {

using testing::Ended;
using testing::HeddleRun;
using testing::Process;
using testing::read_file;

constexpr const char* problem =
    "problem:\n  matrix: {generate: spd, n: 300}\n  rhs: {generate: random, columns: 3}\n"
    "  output: {solution: x.npy, factor: l.npy}\nlayout: {tile: 64}\n";
/// A run that takes some seconds: many small tasks.
constexpr const char* long_problem =
    "problem:\n  matrix: {generate: spd, n: 1200}\n  rhs: {generate: random}\n"
    "  output: {solution: x.npy, factor: l.npy}\n  verify: false\n"
    "layout: {tile: 16}\nruntime: {cpu_workers: 1}\n";
constexpr std::array names{"x.npy", "l.npy", "r.json"};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Interrupted : public HeddleRun {
 protected:
  void SetUp() override {
    HeddleRun::SetUp();
    folder_.write("p.yaml", problem);
  }

  [[nodiscard]] bool is_new(const char* name) const { return read_file(folder_ / name) != "old"; }
  [[nodiscard]] bool has_part(const std::string& name) const {
    return std::ranges::any_of(folder_.names(), [&](const std::string& file) {
      return file.starts_with(name + ".") && contains(file, "heddle-part");
    });
  }

  [[nodiscard]] static bool has_ended(const Process& process) {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(process.id()), &info, WEXITED | WNOHANG | WNOWAIT) ==
               0 &&
           info.si_pid != 0;
  }

  /// Interrupts a run as soon as `moment` has come, and looks what it has left.
  void interrupt_at(const std::function<bool()>& moment, int nodes, int signal) {
    for (const char* name : names) folder_.write(name, "old");
    const std::vector<std::string> words{"solve", "p.yaml", "-q", "--report", "r.json"};
    Process process(nodes == 0 ? alone(words) : on(nodes, words), folder_.path());
    while (!moment() && !has_ended(process)) std::this_thread::yield();
    process.signal(signal);
    const Ended ended = process.wait();
    // Temporary files go with the process or, where it was killed meanwhile, right behind it.
    EXPECT_TRUE(testing::eventually(
        [&] {
          return std::ranges::none_of(names, [&](const char* name) { return has_part(name); });
        },
        std::chrono::seconds(5)));
    const bool are_new = is_new(names.front());
    for (const char* name : names) EXPECT_EQ(is_new(name), are_new) << name << ended.error;
    if (contains(ended.error, "no results were written")) {
      EXPECT_FALSE(are_new) << ended.error;
      EXPECT_NE(ended.status, 0) << ended.error << ended.out;
    }
    if (contains(ended.error, "all results had been written")) {
      EXPECT_TRUE(are_new) << ended.error;
      for (const char* name : names) EXPECT_TRUE(contains(ended.error, name)) << ended.error;
      // mpiexec gets the signal too, and may then end with 0 behind processes that have ended.
      EXPECT_TRUE(ended.status != 0 || nodes > 0) << ended.error << ended.out;
    }
    if (ended.status == 0) {
      EXPECT_TRUE(are_new);
    }
  }
};

}  // namespace

TEST_F(Interrupted, runs_have_written_all_results_or_none_and_say_which) {
  ASSERT_EQ(run(alone({"solve", "p.yaml", "-q"})).status, 0);  // measures the kernels
  const std::vector<std::function<bool()>> moments{
      [&] { return has_part("x.npy"); },  [&] { return has_part("l.npy"); },
      [&] { return has_part("r.json"); }, [&] { return is_new("x.npy"); },
      [&] { return is_new("l.npy"); },    [&] { return is_new("r.json"); }};
  int signal = SIGINT;
  for (const int nodes : {0, 2}) {
    for (std::size_t m = 0; m < moments.size(); ++m) {
      SCOPED_TRACE(fmt::format("moment {} on {} nodes, signal {}", m, nodes, signal));
      interrupt_at(moments[m], nodes, signal);
      signal = signal == SIGINT ? SIGTERM : SIGINT;
    }
    signal = SIGTERM;  // so that each moment has each
  }
}

TEST_F(Interrupted, by_the_end_of_its_terminal_a_run_ends_as_by_any_other_interruption) {
  interrupt_at([&] { return has_part("x.npy"); }, 0, SIGHUP);
}

TEST_F(Interrupted, a_result_that_cannot_get_its_name_leaves_all_others_as_they_were) {
  folder_.write("p.yaml", long_problem);
  for (const int nodes : {0, 2}) {
    SCOPED_TRACE(fmt::format("{} nodes", nodes));
    for (const char* name : names) folder_.write(name, "old");
    const std::vector<std::string> words{"solve", "p.yaml", "-q", "--report", "r.json"};
    Process process(nodes == 0 ? alone(words) : on(nodes, words), folder_.path());
    // Between the check of the names and the end of the work, l.npy becomes a folder.
    while (!has_part("l.npy") && !has_ended(process)) std::this_thread::yield();
    std::filesystem::remove(folder_ / "l.npy");
    std::filesystem::create_directory(folder_ / "l.npy");
    const Ended ended = process.wait();
    EXPECT_NE(ended.status, 0);
    EXPECT_TRUE(contains(ended.error, "l.npy")) << ended.error;
    EXPECT_FALSE(contains(ended.error, "had been written")) << ended.error;
    EXPECT_EQ(read_file(folder_ / "x.npy"), "old");
    const auto report = nlohmann::json::parse(read_file(folder_ / "r.json"), nullptr, false);
    EXPECT_EQ(report["status"], "failed");
    std::filesystem::remove(folder_ / "l.npy");
  }
}

}  // namespace heddle
