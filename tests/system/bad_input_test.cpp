#include <fmt/format.h>
#include <limits>
#include <unistd.h>

#include "tests/system/heddle_run.hpp"

/// What bad input gets: exit status 2, one message that names it, nothing written. On three nodes
/// too, since every node has to come to the same end.
namespace heddle {
namespace {

using testing::Dense;
using testing::Ended;
using testing::HeddleRun;

constexpr const char* problem =
    "problem:\n  matrix: {file: k.npy}\n  rhs: {file: b.npy}\n"
    "  output: {solution: x.npy, factor: l.npy}\nlayout: {tile: 16}\n";

class BadInput : public HeddleRun {
 protected:
  void SetUp() override {
    HeddleRun::SetUp();
    folder_.write("k.npy", testing::npy(testing::spd(50)));
    folder_.write("b.npy", testing::npy(testing::sides(50, 2)));
  }

  /// Alone and on three nodes.
  void refused(const std::vector<std::string>& parts, const std::string& yaml = problem,
               const std::vector<std::string>& options = {}) {
    for (const int nodes : {0, 3}) {
      SCOPED_TRACE(fmt::format("nodes {}", nodes));
      expect_refused(solve(yaml, nodes, options), parts);
    }
  }
};

}  // namespace

TEST_F(BadInput, a_missing_matrix_file) {
  std::filesystem::remove(folder_ / "k.npy");
  refused({"k.npy", "no such file"});
}

TEST_F(BadInput, an_empty_matrix_file) {
  folder_.write("k.npy", "");
  refused({"k.npy"});
}

TEST_F(BadInput, a_truncated_matrix_file) {
  folder_.write("k.npy", testing::npy(testing::spd(50)).substr(0, 5000));
  refused({"k.npy", "bytes"});
}

TEST_F(BadInput, a_file_that_is_no_numpy_file) {
  folder_.write("k.npy", "these are not the bytes you are looking for");
  refused({"k.npy"});
}

TEST_F(BadInput, words_where_numbers_should_be) {
  folder_.write("k.mtx", "%%MatrixMarket matrix array real general\n2 2\n1\ntwo\n3\n4\n");
  refused({"k.mtx", "4", "two"},
          "problem: {matrix: {file: k.mtx}, output: {factor: l.npy}}\nlayout: {tile: 16}\n");
}

TEST_F(BadInput, another_data_type) {
  std::string text = testing::npy(testing::spd(50));
  text.replace(text.find("<f8"), 3, "<f4");
  folder_.write("k.npy", text);
  refused({"k.npy", "f4"});
}

TEST_F(BadInput, a_matrix_of_one_dimension) {
  folder_.write("k.npy", testing::npy(testing::sides(50, 1), testing::NpyOrder::c,
                                      testing::NpyDimensions::one));
  refused({"k.npy"});
}

TEST_F(BadInput, a_matrix_that_is_not_square) {
  folder_.write("k.npy", testing::npy(Dense(50, 40)));
  refused({"k.npy", "50 x 40", "square"});
}

TEST_F(BadInput, right_hand_sides_of_another_length) {
  folder_.write("b.npy", testing::npy(testing::sides(49, 2)));
  refused({"b.npy", "49", "50"});
}

TEST_F(BadInput, nan_and_infinity_with_the_position_of_the_first) {
  Dense a = testing::spd(50);
  a(40, 30) = a(30, 40) = std::numeric_limits<double>::quiet_NaN();
  a(45, 3) = a(3, 45) = std::numeric_limits<double>::infinity();
  folder_.write("k.npy", testing::npy(a));
  refused({"k.npy", "inf", "row 46, column 4"});
}

/// What devices warm up on ends before the nodes part.
TEST_F(BadInput, nan_while_devices_warm_up) {
  constexpr std::int64_t n = 1200;
  Dense a(n, n);
  for (std::int64_t i = 0; i < n; ++i) a(i, i) = 1;
  a(n - 1, n - 1) = std::numeric_limits<double>::quiet_NaN();
  folder_.write("k.npy", testing::npy(a));
  for (int k = 0; k < 3; ++k) {
    refused({"k.npy", "nan", "row 1200, column 1200"},
            "problem: {matrix: {file: k.npy}}\nlayout: {tile: 128}\n"
            "runtime: {devices: {backend: emulated, per_node: 2, memory: 1GiB}}\n");
  }
}

TEST_F(BadInput, nan_above_the_diagonal) {
  Dense a = testing::spd(50);
  a(2, 47) = std::numeric_limits<double>::quiet_NaN();
  folder_.write("k.npy", testing::npy(a));
  refused({"k.npy", "nan", "row 3, column 48"});
}

TEST_F(BadInput, nan_in_the_right_hand_sides) {
  Dense b = testing::sides(50, 2);
  b(33, 1) = std::numeric_limits<double>::quiet_NaN();
  folder_.write("b.npy", testing::npy(b));
  refused({"b.npy", "nan", "row 34, column 2"});
}

TEST_F(BadInput, a_matrix_that_is_not_symmetric_with_the_worst_pair) {
  Dense a = testing::spd(50);
  a(10, 2) += 0.25;
  a(20, 40) += 0.5;
  folder_.write("k.npy", testing::npy(a));
  refused({"k.npy", "not symmetric", "(41, 21)", "(21, 41)"});
}

TEST_F(BadInput, a_grid_that_does_not_multiply_to_the_number_of_nodes) {
  expect_refused(solve(problem, 3, {"--set", "layout.grid=[2, 1]"}),
                 {"layout.grid", "[2, 1]", "3"});
}

TEST_F(BadInput, a_strip_that_is_no_multiple_of_small) {
  refused({"layout.strip", "multiple", "7"}, problem,
          {"--set", "layout.strip=16", "--set", "layout.small=7"});
}

TEST_F(BadInput, a_placement_that_is_none) {
  refused({"runtime.placement", "auto | static | dynamic", "dynamc", "did you mean 'dynamic'?"},
          problem, {"--set", "runtime.placement=dynamc"});
}

TEST_F(BadInput, a_hierarchy_that_is_none) {
  refused({"layout.hierarchy", "off | on", "yes"}, problem, {"--set", "layout.hierarchy=yes"});
  refused({"layout.small", "tile", "200"}, problem,
          {"--set", "layout.hierarchy=on", "--set", "layout.tile=64", "--set", "layout.small=200"});
  refused({"layout.small 1", "256", "at least 4"}, problem,
          {"--set", "layout.hierarchy=on", "--set", "layout.tile=256", "--set", "layout.small=1"});
}

TEST_F(BadInput, memory_that_cannot_suffice) {
  refused({"memory", "TiB", "1000000"},
          "problem: {matrix: {generate: spd, n: 1000000}, output: {factor: l.npy}}\n");
}

TEST_F(BadInput, devices_whose_memory_cannot_suffice) {
  refused({"device 0", "KiB"},
          "problem: {matrix: {generate: spd, n: 400}, output: {factor: l.npy}}\n"
          "layout: {tile: 64, strip: 0}\n"
          "runtime: {devices: {backend: emulated, per_node: 1, memory: 100KiB}}\n");
}

TEST_F(BadInput, an_output_folder_that_is_not_there) {
  refused({"problem.output.solution", "no folder"}, problem,
          {"--set", "problem.output.solution=nowhere/x.npy"});
  refused({"--report", "nowhere"}, problem, {"--report", "nowhere/report.json"});
  refused({"--trace", "nowhere"}, problem, {"--trace", "nowhere/trace.json"});
}

TEST_F(BadInput, an_output_folder_that_cannot_be_written) {
  if (::geteuid() == 0) {
    // Root may write everywhere but where there is no place for files.
    refused({"problem.output.factor", "/proc"}, problem,
            {"--set", "problem.output.factor=/proc/l.npy"});
    return;
  }
  std::filesystem::create_directory(folder_ / "locked");
  std::filesystem::permissions(folder_ / "locked", std::filesystem::perms::owner_read);
  refused({"problem.output.factor", "not writable"}, problem,
          {"--set", "problem.output.factor=locked/l.npy"});
}

TEST_F(BadInput, an_output_that_would_replace_an_input_or_another_output) {
  refused({"k.npy"}, problem, {"--set", "problem.output.factor=k.npy"});
  refused({"--report", "k.npy"}, problem, {"--report", "k.npy"});
  refused({"--report", "x.npy"}, problem, {"--report", "x.npy"});
}

TEST_F(BadInput, a_problem_file_that_is_not_there) {
  for (const int nodes : {0, 3}) {
    const std::vector<std::string> words{"solve", "nothing.yaml"};
    expect_refused(run(nodes == 0 ? alone(words) : on(nodes, words)), {"nothing.yaml", "No such"});
  }
}

TEST_F(BadInput, all_errors_of_a_file_at_once) {
  const Ended ended = solve("problem:\n  matrix: {fil: k.npy}\nlayout: {tile: many}\n", 2);
  EXPECT_EQ(ended.status, 2);
  for (const char* part :
       {"problem.yaml:2:12", "fil", "did you mean 'file'", "problem.yaml:3:16"}) {
    EXPECT_NE(ended.error.find(part), std::string::npos) << part << " in: " << ended.error;
  }
}

TEST_F(BadInput, words_that_are_no_command_line) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"solve"},
        {"dance"},
        {"solve", "a.yaml", "--nonsense"},
        {"solve", "a.yaml", "-v", "-q"},
        {"generate", "--kind", "spd"},
        {"generate", "--kind", "odd", "-n", "3", "--output", "m.npy"}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(words, " ")));
    expect_refused(run(alone(words)), {"--help"});
  }
  expect_refused(run(on(2, {"solve"})), {"--help"});
}

TEST_F(BadInput, no_words_at_all_get_the_help) {
  for (const std::vector<std::string>& words : {alone({}), on(2, {})}) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.status, 0) << ended.error;
    EXPECT_TRUE(ended.error.empty()) << ended.error;
    const auto solve = ended.out.find("\n  solve ");
    ASSERT_NE(solve, std::string::npos) << ended.out;
    EXPECT_NE(ended.out.find("\n  analyze "), std::string::npos) << ended.out;
    EXPECT_EQ(ended.out.find("\n  solve ", solve + 1), std::string::npos) << "printed twice";
  }
}

TEST_F(BadInput, a_command_of_the_second_program_where_that_is_not_built) {
  const std::string lonely = folder_ / "heddle";
  std::filesystem::copy_file(HEDDLE_BINARY, lonely);
  const std::vector<std::string> parts{"'heddle analyze'", folder_ / "heddle-tools",
                                       "cmake --build"};
  expect_refused(run({lonely, "analyze", "run"}), parts);
  expect_refused(run({HEDDLE_MPIEXEC, "-n", "2", lonely, "analyze", "run"}), parts);
}

TEST_F(BadInput, a_command_that_is_none) {
  expect_refused(run(alone({"anlyze", "run"})),
                 {"unknown command 'anlyze'", "did you mean 'analyze'?"});
  expect_refused(run(on(2, {"sovle", "a.yaml"})), {"'sovle'", "did you mean 'solve'?"});
  expect_refused(run(alone({"exprt", "run"})),
                 {"'exprt'", "did you mean 'export'?", "heddle --help"});
  expect_refused(run(alone({"bench"})),
                 {"after 'bench' a command is missing: collectives, p2p; heddle bench --help"});
  const Ended dance = run(alone({"dance"}));
  expect_refused(dance, {"unknown command 'dance'; heddle --help tells more"});
  EXPECT_EQ(dance.error.find("did you mean"), std::string::npos) << dance.error;
}

TEST_F(BadInput, options_that_no_generated_matrix_can_have) {
  const auto generate = [](std::vector<std::string> words) {
    words.insert(words.begin(), "generate");
    words.insert(words.end(), {"--output", "m.npy"});
    return alone(words);
  };
  expect_refused(run(generate({"--kind", "odd", "-n", "3"})),
                 {"--kind", "spd, random", "dependent, polynomial", "'odd'"});
  expect_refused(run(generate({"--kind", "dependent", "-n", "3", "--rank", "4"})),
                 {"dependent", "rank is 4", "0 to n (3)"});
  expect_refused(run(generate({"--kind", "dependent", "-n", "3", "--distance", "-1"})),
                 {"dependent", "distance is -1"});
  expect_refused(run(generate({"--kind", "graded", "-n", "3", "--condition", "0"})),
                 {"graded", "condition is 0"});
}

TEST_F(BadInput, nodes_that_were_started_with_different_configurations) {
  folder_.write("one.yaml", problem);
  folder_.write("two.yaml", std::string(problem) + "runtime: {window: 77}\n");
  expect_refused(run({HEDDLE_MPIEXEC, "-n", "1", HEDDLE_BINARY, "solve", "one.yaml", ":", "-n", "1",
                      HEDDLE_BINARY, "solve", "two.yaml"}),
                 {"configuration", "node 1"});
}

TEST_F(BadInput, a_file_that_only_one_node_misses) {
  folder_.write("one.yaml", problem);
  expect_refused(run({HEDDLE_MPIEXEC, "-n", "2", HEDDLE_BINARY, "solve", "one.yaml", ":", "-n", "1",
                      HEDDLE_BINARY, "solve", "none.yaml"}),
                 {"node 2", "none.yaml"});
}

TEST_F(BadInput, the_launcher_of_another_mpi) {
  ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  const Ended ended = solve(problem);
  ::unsetenv("OMPI_COMM_WORLD_SIZE");
  expect_refused(ended, {"OMPI_COMM_WORLD_SIZE", "mpiexec.mpich"});
}

}  // namespace heddle
