#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/system/heddle_run.hpp"

/// How results are verified: by random vectors, in full, or not at all.
namespace heddle {
namespace {

using testing::HeddleRun;

constexpr const char* cholesky =
    "problem:\n  matrix: {file: a.npy}\n  rhs: {file: b.npy}\n  output: {solution: x.npy}\n"
    "layout: {tile: 16}\n";
constexpr const char* least_squares =
    "problem:\n  factorization: qr\n  matrix: {file: a.npy}\n  rhs: {file: b.npy}\n"
    "  output: {solution: x.npy}\nlayout: {tile: 16}\n";

class Verify : public HeddleRun {
 protected:
  /// Runs `problem` with that verification on some nodes with two devices each, or none.
  [[nodiscard]] nlohmann::json run_with(const char* problem, const char* verify, int nodes,
                                        bool has_devices) {
    SCOPED_TRACE(fmt::format("verify {}, {} nodes, devices: {}", verify, nodes, has_devices));
    const std::string backend = has_devices ? "emulated" : "none";
    return solved(problem, nodes,
                  {"--set", fmt::format("problem.verify={}", verify), "--set",
                   "runtime.devices.backend=" + backend, "--set",
                   fmt::format("runtime.devices.per_node={}", has_devices ? 2 : 0)});
  }
};

}  // namespace

TEST_F(Verify, in_each_way_accepts_a_cholesky_solution_on_any_number_of_nodes) {
  folder_.write("a.npy", testing::npy(testing::spd(100)));
  folder_.write("b.npy", testing::npy(testing::sides(100, 3)));
  for (const int nodes : {0, 2, 4}) {
    for (const bool has_devices : {false, true}) {
      for (const char* verify : {"auto", "full"}) {
        const nlohmann::json report = run_with(cholesky, verify, nodes, has_devices);
        EXPECT_EQ(report["verification"], verify);
        EXPECT_LT(report["factorization_residual"].get<double>(), 1);
        EXPECT_LT(report["solution_residual"].get<double>(), 1);
        EXPECT_TRUE(report["orthogonality"].is_null());
      }
    }
  }
}

TEST_F(Verify, in_each_way_accepts_a_least_squares_solution_on_any_number_of_nodes) {
  for (const int rows : {40, 90}) {
    folder_.write("a.npy", testing::npy(testing::tall(rows, 40)));
    folder_.write("b.npy", testing::npy(testing::sides(rows, 3)));
    for (const int nodes : {0, 2, 4}) {
      for (const bool has_devices : {false, true}) {
        for (const char* verify : {"auto", "full"}) {
          const nlohmann::json report = run_with(least_squares, verify, nodes, has_devices);
          EXPECT_EQ(report["verification"], verify);
          EXPECT_LT(report["factorization_residual"].get<double>(), 1);
          EXPECT_LT(report["solution_residual"].get<double>(), 1);
          EXPECT_LT(report["orthogonality"].get<double>(), 1);
        }
      }
    }
  }
}

TEST_F(Verify, false_computes_no_residual_and_true_those_of_auto) {
  folder_.write("a.npy", testing::npy(testing::spd(60)));
  folder_.write("b.npy", testing::npy(testing::sides(60, 1)));
  folder_.write("p.yaml", cholesky);
  const auto report_with = [&](const char* verify) {
    const auto ended = run(alone({"solve", "p.yaml", "--report", "r.json", "--set",
                                  fmt::format("problem.verify={}", verify)}));
    EXPECT_EQ(ended.status, 0) << ended.error;
    return nlohmann::json::parse(testing::read_file(folder_ / "r.json"));
  };
  for (const char* none : {"none", "false"}) {
    const nlohmann::json report = report_with(none);
    EXPECT_EQ(report["verification"], "none");
    EXPECT_TRUE(report["residual"].is_null());
    EXPECT_TRUE(report["seconds"]["verify"].is_null());
  }
  const nlohmann::json by_true = report_with("true");
  const nlohmann::json by_auto = report_with("auto");
  EXPECT_EQ(by_true["verification"], "auto");
  EXPECT_EQ(by_true["residual"], by_auto["residual"]);
}

TEST_F(Verify, keeps_a_copy_on_devices_only_where_there_is_room) {
  folder_.write("a.npy", testing::npy(testing::spd(400)));
  const auto plan_of = [&](const char* matrix, const char* memory) {
    const std::string yaml = fmt::format(
        "problem: {{matrix: {{{}}}, rhs: {{generate: random}}}}\nlayout: {{tile: 64}}\n"
        "runtime: {{cpu_workers: 1, devices: {{backend: emulated, per_node: 1, memory: {}}}}}\n",
        matrix, memory);
    const std::string out = solve(yaml, 0).out;
    EXPECT_NE(out.find("solved"), std::string::npos) << out;
    return out;
  };
  const auto expect = [](const std::string& plan, const char* words) {
    EXPECT_NE(plan.find(words), std::string::npos) << plan;
  };
  expect(plan_of("file: a.npy", "64MiB"), "a copy of the matrix is kept for it");
  expect(plan_of("file: a.npy", "1500KiB"), "the input is read once more");
  expect(plan_of("generate: spd, n: 400", "64MiB"), "the matrix is generated once more");
  expect(plan_of("generate: spd, n: 400", "1500KiB"), "the matrix is generated once more");
}

}  // namespace heddle
