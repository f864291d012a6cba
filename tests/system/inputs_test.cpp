#include <fmt/core.h>

#include "algorithms/matrix/generators.hpp"
#include "config/problem.hpp"
#include "config/words.hpp"
#include "tests/system/heddle_run.hpp"

/// Sources, sizes, layouts and options through the binary.
namespace heddle {
namespace {

using testing::Dense;
using testing::Ended;
using testing::HeddleRun;

class Inputs : public HeddleRun {};

std::string generated(const std::string& matrix, const std::string& more = "") {
  return fmt::format(
      "problem:\n  matrix: {{{}}}\n  rhs: {{generate: random, columns: 2}}\n"
      "  output: {{solution: x.npy}}\n{}",
      matrix, more);
}

}  // namespace

TEST_F(Inputs, from_matrix_market_files_give_what_numpy_files_give) {
  const Dense a = testing::spd(60);
  const Dense b = testing::sides(60, 1);
  folder_.write("k.npy", testing::npy(a));
  folder_.write("general.mtx", testing::mtx(a, false));
  folder_.write("symmetric.mtx", testing::mtx(a, true));
  folder_.write("b.npy", testing::npy(b));
  folder_.write("b.mtx", testing::mtx(b, false));
  std::vector<std::string> solutions;
  for (const auto& [matrix, sides] :
       {std::pair{"k.npy", "b.npy"}, {"general.mtx", "b.mtx"}, {"symmetric.mtx", "b.mtx"}}) {
    for (const int nodes : {0, 3}) {
      static_cast<void>(solved(fmt::format("problem:\n  matrix: {{file: {}}}\n  rhs: {{file: {}}}\n"
                                           "  output: {{solution: x.npy}}\nlayout: {{tile: 16}}\n",
                                           matrix, sides),
                               nodes));
      solutions.push_back(testing::read_file(folder_ / "x.npy"));
    }
  }
  for (const std::string& solution : solutions) EXPECT_EQ(solution, solutions.front());
}

TEST_F(Inputs, of_one_dimension_give_a_solution_of_one_dimension) {
  folder_.write("k.npy", testing::npy(testing::spd(30)));
  folder_.write("b.npy", testing::npy(testing::sides(30, 1), testing::NpyOrder::c,
                                      testing::NpyDimensions::one));
  static_cast<void>(
      solved("problem:\n  matrix: {file: k.npy}\n  rhs: {file: b.npy}\n"
             "  output: {solution: x.npy}\n"));
  EXPECT_NE(testing::read_file(folder_ / "x.npy").find("(30,)"), std::string::npos);
}

TEST_F(Inputs, of_all_generated_kinds_are_solved) {
  for (const char* matrix :
       {"generate: spd, n: 120, condition: 1.0e6, seed: 3", "generate: lehmer, n: 120",
        "generate: kriging, n: 120, range: 0.2, smoothness: 2.5, nugget: 0.05, seed: 4",
        "generate: identity, n: 120"}) {
    SCOPED_TRACE(matrix);
    static_cast<void>(solved(generated(matrix, "layout: {tile: 32}\n"), 2));
  }
}

TEST_F(Inputs, of_any_size_are_solved_on_any_number_of_nodes) {
  for (const int n : {0, 1, 2, 33, 97}) {
    for (const int nodes : {0, 3}) {
      SCOPED_TRACE(fmt::format("n {} nodes {}", n, nodes));
      const auto report =
          solved(generated(fmt::format("generate: spd, n: {}", n), "layout: {tile: 32}\n"), nodes);
      EXPECT_EQ(report["n"], n);
      const Dense x = testing::read_npy(folder_ / "x.npy");
      EXPECT_EQ(x.rows, n);
      EXPECT_EQ(x.columns, 2);
    }
  }
}

TEST_F(Inputs, may_be_smaller_than_a_tile_and_the_plan_says_which_nodes_idle) {
  const Ended ended =
      solve(generated("generate: spd, n: 20", "layout: {tile: 500, grid: [2, 2]}\n"), 4);
  EXPECT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("3 of 4 nodes idle"), std::string::npos) << ended.out;
}

TEST_F(Inputs, may_leave_out_right_hand_sides_and_verification) {
  const auto report =
      solved("problem: {matrix: {generate: spd, n: 50}, verify: false, output: {factor: l.npy}}\n");
  EXPECT_EQ(report["nrhs"], 0);
  EXPECT_TRUE(report["residual"].is_null());
  EXPECT_EQ(testing::read_npy(folder_ / "l.npy").rows, 50);
}

TEST_F(Inputs, are_changed_by_set_and_a_dry_run_writes_nothing) {
  const Ended ended = solve(generated("generate: spd, n: 50"), 2,
                            {"--set", "problem.matrix.n=77", "--set", "layout.tile=16", "--dry-run",
                             "--report", "report.json"});
  EXPECT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("77 x 77"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("16 x 16"), std::string::npos) << ended.out;
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"problem.yaml"});
}

TEST_F(Inputs, run_quietly_when_asked_to) {
  const Ended ended = solve(generated("generate: spd, n: 50"), 2, {"-q"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(ended.error, "");
}

TEST_F(Inputs, give_a_report_with_every_field) {
  const auto report = solved(generated("generate: spd, n: 60", "layout: {tile: 16}\n"), 2);
  for (const char* field : {"status",     "info",           "m",
                            "n",          "nrhs",           "factorization",
                            "nodes",      "grid",           "tile",
                            "strip",      "small",          "hierarchy",
                            "inner",      "virtual",        "cpu_workers",
                            "devices",    "device_backend", "seconds",
                            "gflops",     "gemm_gflops",    "efficiency",
                            "residual",   "orthogonality",  "log_determinant",
                            "tasks",      "messages",       "bytes_sent",
                            "copies",     "bytes_copied",   "evictions",
                            "peak_bytes", "threads",        "window",
                            "priorities"}) {
    EXPECT_TRUE(report.contains(field)) << field;
  }
  EXPECT_EQ(report["nodes"], 2);
  EXPECT_EQ(report["tile"], 16);
  EXPECT_GT(report["gflops"].get<double>(), 0);
  EXPECT_GT(report["messages"].get<int>(), 0);
  EXPECT_GT(report["seconds"]["factor"].get<double>(), 0);
  EXPECT_GE(report["seconds"]["total"].get<double>(), report["seconds"]["factor"].get<double>());
  EXPECT_GE(report["threads"].size(), 6U);  // generation, a worker, messages on each node
}

TEST_F(Inputs, written_by_generate_are_what_a_run_generates) {
  const Ended ended =
      run(alone({"generate", "--kind", "kriging", "-n", "70", "--seed", "5", "--output", "k.npy",
                 "--rhs-columns", "2", "--rhs-output", "b.npy", "--rhs-seed", "9"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_TRUE(ended.error.empty()) << ended.error;
  static_cast<void>(
      solved("problem:\n  matrix: {file: k.npy}\n  rhs: {file: b.npy}\n"
             "  output: {solution: x.npy}\nlayout: {tile: 32}\n"));
  const std::string from_file = testing::read_file(folder_ / "x.npy");
  static_cast<void>(
      solved("problem:\n  matrix: {generate: kriging, n: 70, seed: 5}\n"
             "  rhs: {generate: random, columns: 2, seed: 9}\n"
             "  output: {solution: x.npy}\nlayout: {tile: 32}\n",
             2));
  EXPECT_EQ(testing::read_file(folder_ / "x.npy"), from_file);
}

TEST_F(Inputs, written_under_old_names_of_options_which_say_the_new_ones) {
  const Ended now = run(alone({"generate", "--kind", "random", "-n", "9", "-o", "a.npy",
                               "--rhs-columns", "2", "--rhs-output", "b.npy"}));
  ASSERT_EQ(now.status, 0) << now.error;
  const Ended old = run(alone({"generate", "--kind", "random", "-n", "9", "--matrix=c.npy", "--rhs",
                               "2", "--right-hand-sides", "d.npy"}));
  ASSERT_EQ(old.status, 0) << old.error;
  EXPECT_EQ(old.error,
            "heddle: '--matrix' is now '--output'; the old name goes on working\n"
            "heddle: '--rhs' is now '--rhs-columns'; the old name goes on working\n"
            "heddle: '--right-hand-sides' is now '--rhs-output'; the old name goes on working\n");
  EXPECT_EQ(testing::read_file(folder_ / "a.npy"), testing::read_file(folder_ / "c.npy"));
  EXPECT_EQ(testing::read_file(folder_ / "b.npy"), testing::read_file(folder_ / "d.npy"));
}

TEST_F(Inputs, of_every_kind_are_written_by_generate) {
  const std::vector<std::string> common{"-n",          "12",   "--seed",   "6",
                                        "--condition", "1e5",  "--rank",   "7",
                                        "--distance",  "1e-3", "--output", "a.npy"};
  for (const std::string_view name : config::names_of(config::MatrixKind{})) {
    for (const std::int64_t rows : {12, 31}) {
      GeneratorOptions options;
      ASSERT_TRUE(generator_kind(name)) << name;
      options.kind = *generator_kind(name);
      options.n = 12;
      options.m = rows;
      options.seed = 6;
      options.condition = 1e5;
      options.rank = 7;
      options.distance = 1e-3;
      const bool is_square =
          options.kind == GeneratorKind::spd || options.kind == GeneratorKind::kriging;
      if (is_square && rows != 12) continue;
      std::vector<std::string> words{"generate", "--kind", std::string(name)};
      if (rows != 12) words.insert(words.end(), {"-m", std::to_string(rows)});
      words.insert(words.end(), common.begin(), common.end());
      const Ended ended = run(alone(words));
      ASSERT_EQ(ended.status, 0) << ended.error;
      const Dense written = testing::read_npy(folder_ / "a.npy");
      Dense expected(rows, 12);
      make_generator(options)->read(GlobalRow{0}, GlobalColumn{0},
                                    {expected.elements.data(), rows, 12, rows});
      EXPECT_EQ(written.rows, rows) << name;
      EXPECT_EQ(written.columns, 12) << name;
      EXPECT_EQ(written.elements, expected.elements) << name;
    }
  }
}

TEST_F(Inputs, are_explained_by_help_version_and_schema) {
  const Ended help = run(alone({"--help"}));
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("solve"), std::string::npos);
  const Ended solve_help = run(alone({"solve", "--help"}));
  EXPECT_EQ(solve_help.status, 0);
  EXPECT_NE(solve_help.out.find("layout.tile"), std::string::npos) << solve_help.out;
  EXPECT_EQ(run(alone({"--version"})).out.substr(0, 7), "heddle ");
  const Ended generate_help = run(alone({"generate", "--help"}));
  EXPECT_EQ(generate_help.status, 0);
  for (const std::string_view name : config::names_of(config::MatrixKind{})) {
    EXPECT_NE(generate_help.out.find(name), std::string::npos) << name;
  }
  for (const char* old : {"--matrix", "--right-hand-sides", "--rhs "}) {
    EXPECT_EQ(generate_help.out.find(old), std::string::npos) << generate_help.out;
  }
  EXPECT_EQ(help.out.find("\n  trace "), std::string::npos) << help.out;
  for (const std::string& text :
       {help.out, solve_help.out, generate_help.out, run(alone({"tune", "--help"})).out,
        run(alone({"bench", "p2p", "--help"})).out, run(alone({"replay", "--help"})).out}) {
    for (const char* part : {"Excludes", " in [", "INT", "FLOAT", "REQUIRED"}) {
      EXPECT_EQ(text.find(part), std::string::npos) << part << " in " << text;
    }
  }
  const auto statuses = solve_help.out.find("Exit status");
  EXPECT_LT(statuses, solve_help.out.find("layout.tile")) << solve_help.out;
  const Ended schema = run(alone({"schema"}));
  EXPECT_TRUE(nlohmann::json::parse(schema.out).contains("properties"));
}

}  // namespace heddle
