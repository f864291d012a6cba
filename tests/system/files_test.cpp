#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "tests/system/heddle_run.hpp"

/// What a command reads is not written over, whatever it is called, and what it writes stays where
/// it was: links, modes, owners.
namespace heddle {
namespace {

using testing::Ended;
using testing::HeddleRun;
using testing::read_file;

constexpr const char* problem =
    "problem:\n  matrix: {file: k.npy}\n  rhs: {file: b.npy}\n"
    "  output: {solution: x.npy}\nlayout: {tile: 16}\n";
constexpr const char* generated =
    "problem:\n  matrix: {generate: spd, n: 60}\n  rhs: {generate: random}\nlayout: {tile: 16}\n";

class Files : public HeddleRun {
 protected:
  void SetUp() override {
    HeddleRun::SetUp();
    folder_.write("k.npy", testing::npy(testing::spd(50)));
    folder_.write("b.npy", testing::npy(testing::sides(50, 2)));
    folder_.write("p.yaml", problem);
    folder_.write("g.yaml", generated);
    std::filesystem::create_symlink(".", folder_ / "d");
  }

  /// On 0 (without mpiexec) and 2 nodes the command ends with status 2 and the parts in its one
  /// message, and the file has the bytes that it had.
  void spares(const std::string& file, const std::vector<std::string>& words,
              std::vector<std::string> parts) {
    const std::string before = read_file(folder_ / file);
    parts.emplace_back("would overwrite");
    for (const int nodes : {0, 2}) {
      SCOPED_TRACE(fmt::format("{} on {} nodes", fmt::join(words, " "), nodes));
      expect_refused(run(nodes == 0 ? alone(words) : on(nodes, words)), parts);
      EXPECT_TRUE(read_file(folder_ / file) == before);
    }
  }
  /// A recorded run in folder t.
  void record() {
    const Ended ended = run(alone({"solve", "g.yaml", "-q", "--trace", "t"}));
    ASSERT_EQ(ended.status, 0) << ended.error;
  }
};

}  // namespace

TEST_F(Files, of_a_problem_are_not_written_over_by_its_results) {
  std::filesystem::create_symlink("b.npy", folder_ / "side.npy");
  spares("k.npy", {"solve", "p.yaml", "--set", "problem.output.factor=d/k.npy"},
         {"problem.output.factor", "d/k.npy", "problem.matrix.file"});
  spares("b.npy", {"solve", "p.yaml", "--set", "problem.output.factor=side.npy"},
         {"problem.output.factor", "side.npy", "problem.rhs.file"});
  spares("b.npy", {"solve", "p.yaml", "--set", "problem.output.solution=d/b.npy"},
         {"problem.output.solution", "problem.rhs.file"});
  spares("p.yaml", {"solve", "p.yaml", "--report", "p.yaml"}, {"--report", "the problem file"});
  spares("g.yaml", {"solve", "g.yaml", "--set", "logging.file=d/g.yaml"},
         {"logging.file", "the problem file"});
  spares("g.yaml", {"solve", "d/g.yaml", "--trace", "g.yaml"}, {"--trace", "the problem file"});
}

TEST_F(Files, of_a_machine_are_not_written_over) {
  folder_.write("m.yaml", "a machine");
  spares("m.yaml", {"solve", "g.yaml", "--set", "machine=m.yaml", "--report", "d/m.yaml"},
         {"--report", "machine"});
  spares("m.yaml", {"tune", "--set", "machine=m.yaml", "--output", "d/m.yaml"},
         {"--output", "machine"});
  spares("m.yaml", {"simulate", "g.yaml", "--machine", "m.yaml", "--report", "d/m.yaml"},
         {"--report", "--machine"});
}

TEST_F(Files, of_a_problem_are_not_written_over_by_its_simulation) {
  for (const char* option : {"--report", "--picture", "--trace"}) {
    spares("g.yaml", {"simulate", "g.yaml", option, "d/g.yaml"}, {option, "the problem file"});
  }
}

TEST_F(Files, of_a_recorded_run_are_not_written_over_by_what_is_made_of_them) {
  record();
  std::filesystem::create_symlink("t/node-0.trace", folder_ / "link");
  const std::string file = "t/node-0.trace";
  for (const char* option : {"--html", "--report"}) {
    spares(file, {"analyze", "t", option, file}, {option, "the run"});
    spares(file, {"analyze", file, option, "link"}, {option, "the run"});
  }
  for (const char* option : {"--report", "--picture"}) {
    spares(file, {"replay", "t", option, "d/t/node-0.trace"}, {option, "the run"});
  }
  spares(file, {"replay", "t", "--trace", "d/t"}, {"--trace", "the run"});
  spares(file, {"replay", "t", "--actual", "t", "--report", "link"}, {"--report", "the run"});
  for (const char* format : {"perfetto", "chrome", "csv", "paje"}) {
    spares(file, {"export", "t", "--to", format, "--output", "link"}, {"--output", "the run"});
  }
}

TEST_F(Files, that_are_two_results_have_two_names) {
  for (const int nodes : {0, 2}) {
    const std::vector<std::string> words{"solve", "p.yaml", "--set",
                                         "problem.output.factor=d/x.npy"};
    expect_refused(run(nodes == 0 ? alone(words) : on(nodes, words)),
                   {"problem.output.factor", "d/x.npy", "both name the same file"});
  }
  expect_refused(run(alone({"generate", "--kind", "spd", "-n", "9", "--output", "m.npy",
                            "--rhs-columns", "1", "--rhs-output", "d/m.npy"})),
                 {"--rhs-output", "--output", "both name the same file"});
  record();
  expect_refused(run(alone({"analyze", "t", "--report", "a", "--html", "d/a"})),
                 {"--html", "--report", "both name the same file"});
}

TEST_F(Files, that_are_links_lead_to_the_results) {
  std::filesystem::create_directory(folder_ / "far");
  std::filesystem::create_symlink("far/x.npy", folder_ / "x.npy");
  std::filesystem::create_symlink("far/r.json", folder_ / "r.json");
  std::filesystem::create_symlink("far/t", folder_ / "t");
  for (const int nodes : {0, 2}) {
    const std::vector<std::string> words{"solve",  "p.yaml",  "--report",
                                         "r.json", "--trace", nodes == 0 ? "t" : "t/"};
    const Ended ended = run(nodes == 0 ? alone(words) : on(nodes, words));
    ASSERT_EQ(ended.status, 0) << ended.error;
    for (const char* name : {"x.npy", "r.json", "t"}) {
      EXPECT_TRUE(std::filesystem::is_symlink(folder_ / name)) << name;
    }
    EXPECT_TRUE(std::filesystem::exists(folder_ / "far/t/node-0.trace"));
    EXPECT_EQ(testing::read_npy(folder_ / "far/x.npy").columns, 2);
    EXPECT_EQ(nlohmann::json::parse(read_file(folder_ / "far/r.json"))["status"], "ok");
    std::filesystem::remove(folder_ / "far/x.npy");
    std::filesystem::remove(folder_ / "far/r.json");
    std::filesystem::remove_all(folder_ / "far/t");
  }
}

TEST_F(Files, that_are_replaced_keep_mode_and_owner) {
  const bool is_root = ::geteuid() == 0;
  for (const char* name : {"x.npy", "r.json"}) {
    folder_.write(name, "old");
    ASSERT_EQ(::chmod((folder_ / name).c_str(), 0640), 0);
    ASSERT_EQ(is_root ? ::chown((folder_ / name).c_str(), 1234, 4321) : 0, 0);
  }
  const Ended ended = run(alone({"solve", "p.yaml", "--report", "r.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  for (const char* name : {"x.npy", "r.json"}) {
    EXPECT_NE(read_file(folder_ / name), "old") << name;
    struct stat file {};
    ASSERT_EQ(::stat((folder_ / name).c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 07777U, 0640U) << name;
    EXPECT_EQ(file.st_uid, is_root ? 1234U : ::geteuid()) << name;
  }
}

TEST_F(Files, that_are_write_protected_are_refused) {
  folder_.write("old.npy", "dear");
  ASSERT_EQ(::chmod((folder_ / "old.npy").c_str(), 0444), 0);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0777), 0);
  std::vector<std::string> words{HEDDLE_BINARY, "solve", "p.yaml", "--set",
                                 "problem.output.solution=old.npy"};
  if (::geteuid() == 0) {
    const std::vector<std::string> as_user{"setpriv", "--reuid=65534", "--regid=65534",
                                           "--clear-groups"};
    words.insert(words.begin(), as_user.begin(), as_user.end());
  }
  expect_refused(run(words), {"problem.output.solution", "old.npy", "write-protected"});
  EXPECT_EQ(read_file(folder_ / "old.npy"), "dear");
}

TEST_F(Files, of_a_trace_may_be_asked_for_by_a_folder_with_a_slash) {
  for (const int nodes : {0, 2}) {
    const std::string folder = fmt::format("t{}/", nodes);
    const std::vector<std::string> words{"solve", "g.yaml", "-q", "--trace", folder};
    const Ended ended = run(nodes == 0 ? alone(words) : on(nodes, words));
    EXPECT_EQ(ended.status, 0) << ended.error;
    EXPECT_EQ(run(alone({"analyze", folder})).status, 0);
  }
  EXPECT_EQ(run(alone({"replay", "t0/", "--trace", "u/"})).status, 0);
  EXPECT_EQ(run(alone({"analyze", "u"})).status, 0);
}

TEST_F(Files, are_not_called_by_a_dash) {
  record();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"solve", "g.yaml", "--report", "-"},
        {"solve", "g.yaml", "--trace", "-"},
        {"solve", "g.yaml", "--set", "logging.file=\"-\""},
        {"generate", "--kind", "spd", "-n", "9", "--output", "-"},
        {"tune", "--output", "-"},
        {"analyze", "t", "--report", "-"},
        {"analyze", "t", "--html", "-"},
        {"simulate", "g.yaml", "--picture", "-"},
        {"replay", "t", "--report", "-"},
        {"export", "t", "--to", "csv", "--output", "-"},
        {"doctor", "--report", "-"}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(words, " ")));
    expect_refused(run(alone(words)), {"'-' does not mean standard output"});
  }
  expect_refused(run(on(2, {"bench", "p2p", "--report", "-"})), {"--report", "standard output"});
}

}  // namespace heddle
