#include <cmath>
#include <filesystem>
#include <fmt/core.h>
#include <string>
#include <vector>

#include "tests/system/heddle_run.hpp"

/// Numbers at the ends of the range of doubles, and beyond them: how a run ends is the same on any
/// number of nodes.
namespace heddle {
namespace {

using testing::Dense;
using testing::Ended;
using testing::HeddleRun;

constexpr const char* cholesky =
    "problem:\n  matrix: {file: a.npy}\n  rhs: {file: b.npy}\n  output: {solution: x.npy}\n"
    "layout: {tile: 16}\nruntime: {cpu_workers: 1}\n";
constexpr const char* qr =
    "problem:\n  factorization: qr\n  matrix: {file: a.npy}\n  rhs: {file: b.npy}\n"
    "  output: {solution: x.npy}\nlayout: {tile: 16}\nruntime: {cpu_workers: 1}\n";

/// Element by element.
template <class Factor>
Dense scaled(Dense matrix, const Factor& factor) {
  for (std::int64_t j = 0; j < matrix.columns; ++j) {
    for (std::int64_t i = 0; i < matrix.rows; ++i) matrix(i, j) *= factor(i, j);
  }
  return matrix;
}

Dense times(const Dense& matrix, double factor) {
  return scaled(matrix, [factor](std::int64_t, std::int64_t) { return factor; });
}

/// diag(1, ..., 1, last).
Dense ones_and(std::int64_t n, double last) {
  Dense a(n, n);
  for (std::int64_t i = 0; i < n; ++i) a(i, i) = i + 1 < n ? 1 : last;
  return a;
}

class Numbers : public HeddleRun {
 protected:
  void write_problem(const Dense& a, const Dense& b) {
    folder_.write("a.npy", testing::npy(a));
    folder_.write("b.npy", testing::npy(b));
  }

  /// On 0 (alone) to 4 nodes, verified and not: no solution, and the report says so on all.
  void expect_no_solution(const char* problem, const std::string& part) {
    for (const int nodes : {0, 2, 3, 4}) {
      for (const char* verify : {"true", "false"}) {
        if (nodes == 4 && verify[0] == 'f') continue;
        SCOPED_TRACE(fmt::format("{} nodes, verify {}", nodes, verify));
        const Ended ended =
            solve(problem, nodes,
                  {"--report", "r.json", "--set", fmt::format("problem.verify={}", verify)});
        EXPECT_EQ(ended.status, 1) << ended.out << ended.error;
        EXPECT_NE(ended.error.find(part), std::string::npos) << ended.error;
        EXPECT_FALSE(std::filesystem::exists(folder_ / "x.npy"));
        const auto report = nlohmann::json::parse(testing::read_file(folder_ / "r.json"));
        EXPECT_EQ(report["status"], "failed");
        EXPECT_TRUE(report["solution_residual"].is_null()) << report["solution_residual"];
      }
    }
  }
};

}  // namespace

TEST_F(Numbers, that_no_double_holds_are_no_solution_by_least_squares_on_any_number_of_nodes) {
  const Dense a = scaled(testing::tall(90, 40),
                         [](std::int64_t, std::int64_t j) { return j == 39 ? 1e-5 : 1.0; });
  write_problem(a, times(testing::sides(90, 1), 1e306));
  expect_no_solution(qr, "the solution has elements that are not finite, first ");
}

TEST_F(Numbers, of_a_matrix_below_the_normal_range_end_alike_on_any_number_of_nodes) {
  write_problem(times(testing::tall(90, 40), 1e-310), testing::sides(90, 1));
  expect_no_solution(qr, "the solution has elements that are not finite, first ");
}

TEST_F(Numbers, that_no_double_holds_are_no_solution_by_cholesky_on_any_number_of_nodes) {
  // What is infinite below meets zeros above.
  Dense b(60, 2);
  for (std::int64_t i = 0; i < 60; ++i) b(i, 0) = b(i, 1) = static_cast<double>(i);
  b(59, 0) = 0;
  write_problem(ones_and(60, 1e-308), b);
  expect_no_solution(cholesky,
                     "the solution has elements that are not finite, first nan at row 1, column 2");
}

TEST_F(Numbers, of_a_factor_that_no_double_holds_are_no_result_on_any_number_of_nodes) {
  // The last column of R is a sum of 90 elements squared, and its root is beyond doubles.
  Dense a = scaled(testing::tall(90, 40),
                   [](std::int64_t, std::int64_t j) { return j == 39 ? 1e307 : 1.0; });
  for (std::int64_t i = 0; i < 90; ++i) a(i, 39) = 1.7e308;
  folder_.write("a.npy", testing::npy(a));
  for (const int nodes : {0, 2, 3, 4}) {
    SCOPED_TRACE(nodes);
    const Ended ended = solve(
        "problem: {factorization: qr, matrix: {file: a.npy}, verify: false, output: {factor: "
        "r.npy}}\nlayout: {tile: 16}\nruntime: {cpu_workers: 1}\n",
        nodes);
    EXPECT_EQ(ended.status, 1) << ended.out << ended.error;
    EXPECT_NE(ended.error.find("R has elements that are not finite"), std::string::npos)
        << ended.error;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "r.npy"));
  }
}

TEST_F(Numbers, whose_norms_no_double_holds_have_the_residual_of_the_same_problem_scaled_down) {
  // A power of two changes no bit but the exponents.
  const Dense a = testing::spd(100);
  const Dense b = times(testing::sides(100, 2), 512);
  const double up = std::ldexp(1.0, 1014);
  for (const int nodes : {0, 2, 3}) {
    SCOPED_TRACE(nodes);
    write_problem(a, b);
    const auto expected = solved(cholesky, nodes);
    ASSERT_GT(expected["solution_residual"].get<double>(), 0);
    write_problem(a, times(b, up));
    const auto by_sides = solved(cholesky, nodes);
    EXPECT_NEAR(by_sides["solution_residual"].get<double>(),
                expected["solution_residual"].get<double>(), 1e-9);
    write_problem(times(a, up), times(b, up));
    const auto by_both = solved(cholesky, nodes);
    EXPECT_NEAR(by_both["solution_residual"].get<double>(),
                expected["solution_residual"].get<double>(), 1e-9);
    EXPECT_NEAR(by_both["factorization_residual"].get<double>(),
                expected["factorization_residual"].get<double>(), 1e-9);
  }
}

TEST_F(Numbers, of_columns_scaled_by_any_power_have_the_residual_of_those_that_are_not) {
  const auto power = [](std::int64_t, std::int64_t j) {
    return std::ldexp(1.0, static_cast<int>(-990 + 1980 * j / 39));
  };
  for (const std::int64_t rows : {40, 90}) {
    const Dense a = testing::tall(rows, 40);
    const Dense b = testing::sides(rows, 2);
    for (const int nodes : {0, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} rows, {} nodes", rows, nodes));
      write_problem(a, b);
      const double expected = solved(qr, nodes)["solution_residual"].get<double>();
      ASSERT_GT(expected, 0);
      write_problem(scaled(a, power), b);
      const double found = solved(qr, nodes)["solution_residual"].get<double>();
      EXPECT_GT(found, expected / 20);  // norms round otherwise
      EXPECT_LT(found, expected * 20);
    }
  }
}

TEST_F(Numbers, that_are_no_exact_zero_have_no_residual_of_exactly_zero) {
  // |A| |x| is 1e600 times as large as what is left.
  const std::int64_t n = 40;
  Dense a(n, n);
  Dense b(n, 1);
  for (std::int64_t i = 0; i < n; ++i) {
    a(i, i) = std::pow(10.0, -300.0 + 600.0 * static_cast<double>(i) / (n - 1)) * 1.1;
    b(i, 0) = 1.0 / 3;
  }
  write_problem(a, b);
  EXPECT_GT(solved(cholesky)["solution_residual"].get<double>(), 0);
}

}  // namespace heddle
