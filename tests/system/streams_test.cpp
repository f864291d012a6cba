#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "tests/system/heddle_run.hpp"

/// Standard streams that are closed or full, and limits of the file size.
namespace heddle {
namespace {

using testing::Ended;
using testing::HeddleRun;
using testing::read_file;

constexpr const char* problem =
    "problem:\n  matrix: {file: k.npy}\n  rhs: {file: b.npy}\n"
    "  output: {solution: x.npy, factor: l.npy}\nlayout: {tile: 16}\n";
constexpr const char* generated =
    "problem:\n  matrix: {generate: spd, n: 60}\n  rhs: {generate: random}\nlayout: {tile: 16}\n";

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class Streams : public HeddleRun {
 protected:
  void SetUp() override {
    HeddleRun::SetUp();
    folder_.write("k.npy", testing::npy(testing::spd(50)));
    folder_.write("b.npy", testing::npy(testing::sides(50, 2)));
    folder_.write("p.yaml", problem);
    folder_.write("g.yaml", generated);
  }
  /// Runs heddle, alone or on so many nodes, each by a shell that does `before` to itself, which
  /// ends in a command: "ulimit -f 1; exec".
  [[nodiscard]] Ended run_with(const std::string& before, const std::vector<std::string>& words,
                               const std::string& after = "", int nodes = 0) const {
    std::vector<std::string> all{"bash", "-c", fmt::format("{} \"$@\" {}", before, after), "bash",
                                 HEDDLE_BINARY};
    all.insert(all.end(), words.begin(), words.end());
    if (nodes > 0) {
      const std::vector<std::string> launch{HEDDLE_MPIEXEC, "-n", std::to_string(nodes)};
      all.insert(all.begin(), launch.begin(), launch.end());
    }
    return run(all);
  }
};

}  // namespace

TEST_F(Streams, that_are_closed_change_no_result_and_print_nowhere) {
  ASSERT_EQ(run(alone({"solve", "p.yaml", "-q"})).status, 0);
  const std::string solution = read_file(folder_ / "x.npy");
  const std::string factor = read_file(folder_ / "l.npy");
  for (const char* closed :
       {"<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-"}) {
    for (const int nodes : {0, 2}) {
      SCOPED_TRACE(fmt::format("{} on {} nodes", closed, nodes));
      const Ended ended = run_with(
          "exec", {"solve", "p.yaml", "-v", "--set", "logging.file=log", "--report", "r.json"},
          closed, nodes);
      EXPECT_EQ(ended.status, 0) << ended.error;
      EXPECT_TRUE(read_file(folder_ / "x.npy") == solution);
      EXPECT_TRUE(read_file(folder_ / "l.npy") == factor);
      EXPECT_TRUE(nlohmann::json::accept(read_file(folder_ / "r.json")));
      const std::string log = read_file(folder_ / "log");
      EXPECT_EQ(log.find("tiles"), std::string::npos) << "the plan is in the log: " << log;
      EXPECT_NE(log.find("info: read: "), std::string::npos) << log;
      for (const char* name : {"x.npy", "l.npy", "r.json", "log"}) {
        std::filesystem::remove(folder_ / name);
      }
    }
  }
}

TEST_F(Streams, that_are_closed_are_so_for_every_command) {
  ASSERT_EQ(run(alone({"solve", "g.yaml", "-q", "--trace", "t"})).status, 0);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"generate", "--kind", "spd", "-n", "9", "--output", "m.npy"},
        {"analyze", "t", "--report", "m"},
        {"analyze", "t", "--html", "m"},
        {"replay", "t", "--report", "m"},
        {"export", "t", "--to", "csv", "--output", "m"},
        {"doctor", "--report", "m"}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(words, " ")));
    const std::filesystem::path written = folder_ / words.back();
    ASSERT_EQ(run(alone(words)).status, 0);
    const std::string as_always = read_file(written);
    std::filesystem::remove(written);
    EXPECT_EQ(run_with("exec", words, "<&- >&- 2>&-").status, 0);
    EXPECT_EQ(read_file(written).substr(0, 8), as_always.substr(0, 8));
  }
}

TEST_F(Streams, that_are_full_are_reported_and_end_with_1) {
  ASSERT_EQ(run(alone({"solve", "g.yaml", "-q", "--trace", "t"})).status, 0);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--help"},
        {"--version"},
        {"schema"},
        {"solve", "--help"},
        {"solve", "p.yaml"},
        {"solve", "g.yaml", "--dry-run"},
        {"analyze", "t"},
        {"analyze", "t", "t"},
        {"simulate", "g.yaml"},
        {"simulate", "g.yaml", "--sweep", "layout.tile=8,16"},
        {"replay", "t"},
        {"export", "t", "--to", "csv", "--output", "t.csv"},
        {"doctor"}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(words, " ")));
    const Ended ended = run_with("exec", words, ">/dev/full");
    EXPECT_EQ(ended.status, 1);
    EXPECT_EQ(ended.error,
              "heddle: standard output could not be written: No space left on device\n");
  }
  EXPECT_EQ(testing::read_npy(folder_ / "x.npy").columns, 2) << "the results are there";
  EXPECT_TRUE(std::filesystem::exists(folder_ / "t.csv"));
}

TEST_F(Streams, that_nobody_reads_decide_nothing) {
  ASSERT_EQ(run(alone({"solve", "g.yaml", "-q", "--trace", "t"})).status, 0);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"schema"}, {"solve", "p.yaml"}, {"analyze", "t"}}) {
    const Ended ended = run_with("exec 3> >(exec <&-); wait $!; exec", words, ">&3");
    EXPECT_EQ(ended.status, 0) << ended.error;
    EXPECT_EQ(ended.error, "");
  }
}

TEST_F(Streams, that_are_full_do_not_hide_another_failure) {
  const Ended ended = run_with("exec", {"solve", "none.yaml"}, ">/dev/full");
  EXPECT_EQ(ended.status, 2) << ended.error;
}

TEST_F(Streams, beside_a_limit_of_the_file_size_results_are_refused_with_their_names) {
  ASSERT_EQ(run(alone({"solve", "g.yaml", "-q", "--trace", "t"})).status, 0);
  struct Case {
    std::vector<std::string> words;
    std::string name;
  };
  for (const Case& c :
       {Case{{"solve", "p.yaml"}, "l.npy"},
        Case{{"solve", "g.yaml", "--report", "r.json"}, "r.json"},
        Case{{"solve", "g.yaml", "--trace", "u"}, "u/node-0.trace"},
        Case{{"solve", "g.yaml", "--trace", "u.json"}, "u.json"},
        Case{{"generate", "--kind", "spd", "-n", "60", "--output", "m.npy"}, "m.npy"},
        Case{{"analyze", "t", "--report", "r.json"}, "r.json"},
        Case{{"analyze", "t", "--html", "r.html"}, "r.html"},
        Case{{"replay", "t", "--report", "r.json"}, "r.json"},
        Case{{"replay", "t", "--trace", "v"}, "v/node-0.trace"},
        Case{{"export", "t", "--to", "csv", "--output", "t.csv"}, "t.csv"}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(c.words, " ")));
    const Ended ended = run_with("ulimit -f 1; exec", c.words);
    expect_refused(ended, {c.name, "File too large"});
    EXPECT_FALSE(std::filesystem::exists(folder_ / c.name) &&
                 c.name.find('/') == std::string::npos);
  }
}

TEST_F(Streams, of_the_log_are_left_with_one_warning_when_they_are_full) {
  ASSERT_EQ(run(alone({"solve", "g.yaml", "-q"})).status, 0);  // measures the kernels
  const std::vector<std::string> words{"solve", "g.yaml", "--set", "logging.file=log"};
  for (const int nodes : {0, 2}) {
    // As long as files may be, and longer than what MPI wants for itself.
    folder_.write("log", "");
    std::filesystem::resize_file(folder_ / "log", std::uintmax_t{64} << 20U);
    const Ended ended = run_with("ulimit -f 65536; exec", words, "", nodes);
    EXPECT_EQ(ended.status, 0) << ended.error;
    EXPECT_EQ(count_of(ended.error, "logging.file: 'log' could not be written: File too large"), 1U)
        << ended.error;
    EXPECT_EQ(count_of(ended.error, "\n"), 1U) << ended.error;
  }
}

}  // namespace heddle
