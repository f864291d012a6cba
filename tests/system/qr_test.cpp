#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <map>

#include "tests/system/heddle_run.hpp"

/// QR and least squares through the binary.
namespace heddle {
namespace {

using testing::Dense;
using testing::Ended;
using testing::HeddleRun;

constexpr const char* problem =
    "problem:\n  factorization: qr\n  matrix: {file: a.npy}\n  rhs: {file: b.npy}\n"
    "  output: {solution: x.npy, factor: r.npy, q: q.npy}\n";

double largest_difference(const Dense& a, const Dense& b) {
  double worst =
      a.rows == b.rows && a.columns == b.columns ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(a.elements.size(), b.elements.size()); ++i) {
    worst = std::max(worst, std::abs(a.elements[i] - b.elements[i]));
  }
  return worst;
}

/// R with a diagonal that is not negative: signs are free.
Dense with_signs(Dense r) {
  for (std::int64_t i = 0; i < r.rows; ++i) {
    if (r(i, i) >= 0) continue;
    for (std::int64_t j = 0; j < r.columns; ++j) r(i, j) = -r(i, j);
  }
  return r;
}

Dense product(const Dense& a, bool a_transposed, const Dense& b) {
  const std::int64_t inner = a_transposed ? a.rows : a.columns;
  Dense c(a_transposed ? a.columns : a.rows, b.columns);
  for (std::int64_t j = 0; j < c.columns; ++j) {
    for (std::int64_t i = 0; i < c.rows; ++i) {
      for (std::int64_t k = 0; k < inner; ++k) {
        c(i, j) += (a_transposed ? a(k, i) : a(i, k)) * b(k, j);
      }
    }
  }
  return c;
}

class Qr : public HeddleRun {
 protected:
  void write_problem(const Dense& a, const Dense& b) {
    folder_.write("a.npy", testing::npy(a));
    folder_.write("b.npy", testing::npy(b, testing::NpyOrder::c));
  }
  void write_problem(std::int64_t m, std::int64_t n, std::int64_t columns) {
    write_problem(testing::tall(m, n), testing::sides(m, columns));
  }

  /// Runs the problem of the files and compares all that it writes with LAPACK.
  void expect_like_lapack(const Dense& a, const Dense& b, int nodes, const std::string& more) {
    SCOPED_TRACE(
        fmt::format("{} x {}, {} sides, {} nodes, {}", a.rows, a.columns, b.columns, nodes, more));
    write_problem(a, b);
    const auto report = solved(problem + more, nodes);
    const testing::LeastSquares expected = testing::least_squares(a, b);
    const double within = 1e-13 * static_cast<double>(a.rows + 10);
    EXPECT_LT(largest_difference(testing::read_npy(folder_ / "x.npy"), expected.solution), within);
    const Dense r = testing::read_npy(folder_ / "r.npy");
    EXPECT_LT(largest_difference(with_signs(r), with_signs(expected.r)), within);
    for (std::int64_t j = 0; j < r.columns; ++j) {
      for (std::int64_t i = j + 1; i < r.rows; ++i) ASSERT_EQ(r(i, j), 0) << i << ", " << j;
    }
    const Dense q = testing::read_npy(folder_ / "q.npy");
    EXPECT_LT(largest_difference(product(q, false, r), a), within);
    Dense identity(a.columns, a.columns);
    for (std::int64_t i = 0; i < a.columns; ++i) identity(i, i) = 1;
    EXPECT_LT(largest_difference(product(q, true, q), identity), within);
    EXPECT_EQ(report["m"], a.rows);
    EXPECT_EQ(report["factorization"], "qr");
    EXPECT_TRUE(report["orthogonality"].is_number());
    if (a.rows == a.columns) {
      EXPECT_TRUE(report["residual_norms"].is_null());
      return;
    }
    ASSERT_EQ(report["residual_norms"].size(), expected.residual_norms.size());
    for (std::size_t k = 0; k < expected.residual_norms.size(); ++k) {
      EXPECT_NEAR(report["residual_norms"][k].get<double>(), expected.residual_norms[k], within);
    }
  }

  /// Exit status 3 and the index; R is written and good, x is not.
  void expect_deficient(const Dense& a, std::int64_t index) {
    for (const int nodes : {0, 3}) {
      for (const char* tree : {"flat", "binomial"}) {
        SCOPED_TRACE(fmt::format("{} x {}, {} nodes, {}", a.rows, a.columns, nodes, tree));
        write_problem(a, testing::sides(a.rows, 2));
        const Ended ended =
            solve(fmt::format("{}layout: {{tile: 16, virtual: 2, tree: {}}}\n", problem, tree),
                  nodes, {"--report", "report.json"});
        EXPECT_EQ(ended.status, 3) << ended.error;
        EXPECT_NE(ended.error.find(fmt::format("column {} ", index)), std::string::npos)
            << ended.error;
        const auto report = nlohmann::json::parse(testing::read_file(folder_ / "report.json"));
        EXPECT_EQ(report["status"], "rank_deficient");
        EXPECT_EQ(report["info"], index);
        EXPECT_LT(report["residual"].get<double>(), 10);
        EXPECT_LT(report["orthogonality"].get<double>(), 10);
        EXPECT_FALSE(std::filesystem::exists(folder_ / "x.npy"));
        const Dense r = testing::read_npy(folder_ / "r.npy");
        const Dense q = testing::read_npy(folder_ / "q.npy");
        EXPECT_LT(largest_difference(product(q, false, r), a), 1e-11);
        for (const char* name : {"r.npy", "q.npy"}) std::filesystem::remove(folder_ / name);
      }
    }
  }
};

}  // namespace

TEST_F(Qr, solves_least_squares_and_square_systems_like_lapack) {
  const Dense a = testing::tall(150, 61);
  expect_like_lapack(a, testing::sides(150, 3), 0, "layout: {tile: 16}\n");
  expect_like_lapack(a, testing::sides(150, 40), 2, "layout: {tile: 16, virtual: 2, inner: 5}\n");
  expect_like_lapack(testing::tall(90, 90), testing::sides(90, 2), 0, "");
  expect_like_lapack(testing::tall(90, 90), testing::sides(90, 2), 3,
                     "layout: {tile: 13, virtual: 1, grid: [3, 1]}\n");
  expect_like_lapack(testing::tall(400, 9), testing::sides(400, 1), 3, "layout: {tile: 16}\n");
  expect_like_lapack(testing::tall(130, 50), testing::sides(130, 2), 2,
                     "layout: {tile: 24, strip: 8, small: 4, virtual: 2, tree: binomial}\n"
                     "runtime: {devices: {backend: emulated, per_node: 2, memory: 64MiB}}\n");
}

TEST_F(Qr, is_like_lapacks_where_cpus_divide_tasks_and_run_those_of_devices) {
  const Dense a = testing::tall(150, 61);
  const Dense b = testing::sides(150, 3);
  expect_like_lapack(a, b, 0, "layout: {tile: 32, hierarchy: on, small: 9, virtual: 2}\n");
  for (const char* hierarchy : {"on, small: 9", "off"}) {
    expect_like_lapack(a, b, 2,
                       fmt::format("layout: {{tile: 16, virtual: 2, hierarchy: {}}}\n"
                                   "runtime: {{placement: dynamic, devices: {{backend: emulated, "
                                   "per_node: 2, memory: 64MiB}}}}\n",
                                   hierarchy));
  }
}

TEST_F(Qr, reads_matrix_market_files_and_solutions_of_one_dimension) {
  const Dense a = testing::tall(70, 33);
  const Dense b = testing::sides(70, 1);
  folder_.write("a.mtx", testing::mtx(a, false));
  folder_.write("b.npy", testing::npy(b, testing::NpyOrder::c, testing::NpyDimensions::one));
  for (const int nodes : {0, 3}) {
    for (const char* tree : {"flat", "binomial"}) {
      static_cast<void>(
          solved(fmt::format("problem:\n  factorization: qr\n  matrix: {{file: a.mtx}}\n"
                             "  rhs: {{file: b.npy}}\n  output: {{solution: x.npy}}\n"
                             "layout: {{tile: 8, virtual: 2, tree: {}}}\n",
                             tree),
                 nodes));
      EXPECT_LT(largest_difference(testing::read_npy(folder_ / "x.npy"),
                                   testing::least_squares(a, b).solution),
                1e-12);
      EXPECT_NE(testing::read_file(folder_ / "x.npy").find("(33,)"), std::string::npos);
    }
  }
  // The lower half of a symmetric matrix is all that the file has.
  const Dense square = testing::spd(40);
  folder_.write("a.mtx", testing::mtx(square, true));
  folder_.write("b.npy", testing::npy(testing::sides(40, 1)));
  const auto report = solved(
      "problem: {factorization: qr, matrix: {file: a.mtx}, rhs: {file: b.npy}}\n"
      "layout: {tile: 8, virtual: 2, grid: [3, 1]}\n",
      3);
  EXPECT_LT(report["solution_residual"].get<double>(), 10);
}

TEST_F(Qr, solves_all_generated_kinds) {
  for (const char* matrix :
       {"generate: random, n: 60, m: 200", "generate: conditioned, n: 60, m: 90, condition: 1.0e8",
        "generate: graded, n: 60, m: 90, condition: 1.0e12",
        "generate: dependent, n: 60, m: 90, rank: 40, distance: 1.0e-6",
        "generate: polynomial, n: 9, m: 300", "generate: lehmer, n: 60, m: 70",
        "generate: identity, n: 30, m: 50", "generate: spd, n: 50", "generate: kriging, n: 50"}) {
    SCOPED_TRACE(matrix);
    static_cast<void>(
        solved(fmt::format("problem:\n  factorization: qr\n  matrix: {{{}}}\n"
                           "  rhs: {{generate: random, columns: 2}}\nlayout: {{tile: 16}}\n",
                           matrix),
               2));
  }
  const Ended ended = solve(
      "problem:\n  factorization: qr\n"
      "  matrix: {generate: dependent, n: 60, m: 90, rank: 40, distance: 0}\n");
  EXPECT_EQ(ended.status, 3);
  EXPECT_NE(ended.error.find("column 41 "), std::string::npos) << ended.error;
}

TEST_F(Qr, is_good_on_all_grids_with_all_sizes_of_tiles_and_both_trees) {
  write_problem(119, 45, 2);
  const std::map<int, std::vector<const char*>> grids{
      {1, {"[1, 1]"}}, {2, {"[2, 1]", "[1, 2]"}}, {4, {"[2, 2]"}}, {6, {"[3, 2]", "[6, 1]"}}};
  for (const auto& [nodes, of_these] : grids) {
    for (const char* grid : of_these) {
      for (const char* tiles : {"tile: 8, virtual: 3, inner: 8", "tile: 11, virtual: 1, inner: 4",
                                "tile: 64, virtual: 2, inner: 1", "tile: 7, virtual: 100"}) {
        for (const char* tree : {"flat", "binomial"}) {
          SCOPED_TRACE(fmt::format("{} {} {}", grid, tiles, tree));
          const auto report = solved(
              fmt::format("{}layout: {{grid: {}, {}, tree: {}}}\n", problem, grid, tiles, tree),
              nodes);
          EXPECT_EQ(report["tree"], tree);
        }
      }
    }
  }
}

TEST_F(Qr, gives_the_same_bits_on_any_nodes_grid_workers_and_devices) {
  write_problem(170, 64, 3);
  struct Shape {
    int nodes;
    const char* grid;
  };
  constexpr Shape shapes[] = {{1, "[1, 1]"}, {2, "[2, 1]"}, {3, "[1, 3]"},
                              {4, "[2, 2]"}, {4, "[4, 1]"}, {6, "[3, 2]"}};
  for (const char* tree : {"flat", "binomial"}) {
    for (const bool devices : {false, true}) {
      std::map<std::string, std::string> first;
      int workers = 0;
      for (const Shape& shape : shapes) {
        SCOPED_TRACE(fmt::format("{} {} {}", tree, shape.grid, devices));
        const std::string backend =
            devices
                ? fmt::format("{{backend: emulated, per_node: {}, memory: 64MiB}}", 1 + workers % 2)
                : "{backend: none}";
        const Ended ended =
            solve(fmt::format(
                      "{}  verify: false\nlayout: {{tile: 16, strip: 8, small: 4, virtual: 2, "
                      "inner: 6, tree: {}, grid: {}}}\nruntime: {{cpu_workers: {}, devices: {}}}\n",
                      problem, tree, shape.grid, 1 + workers++ % 3, backend),
                  shape.nodes);
        ASSERT_EQ(ended.status, 0) << ended.error;
        for (const char* name : {"x.npy", "r.npy", "q.npy"}) {
          const std::string bytes = testing::read_file(folder_ / name);
          EXPECT_TRUE(first.emplace(name, bytes).first->second == bytes) << name << " differs";
          std::filesystem::remove(folder_ / name);
        }
      }
    }
  }
}

TEST_F(Qr, sends_of_r_its_triangle_and_of_v_its_lower_part) {
  const auto traffic = [&](int m, int n, const std::string& layout) {
    const auto report = solved(
        fmt::format("problem: {{factorization: qr, matrix: {{generate: random, m: {}, n: {}}}, "
                    "verify: false}}\nlayout: {{tile: 16, inner: 16, {}}}\n",
                    m, n, layout),
        2);
    return std::pair(report["messages"].get<int>(), report["bytes_sent"].get<int>());
  };
  constexpr int triangle = 8 * 16 * 17 / 2;
  // R passes to the other node and comes home.
  for (const char* tree : {"flat", "binomial"}) {
    EXPECT_EQ(traffic(32, 16, fmt::format("virtual: 1, grid: [2, 1], tree: {}", tree)),
              std::pair(2, 2 * triangle));
  }
  // V of one tall tile, what is below the diagonal of each panel, and T of each.
  constexpr int first = 8 * (16 * 47 - 16 * 15 / 2);
  EXPECT_EQ(traffic(48, 32, "virtual: 3, grid: [1, 2]"), std::pair(2, first + 8 * 16 * 16));
  // Two columns: beside R its rows travel as they are.
  EXPECT_EQ(traffic(32, 32, "virtual: 1, grid: [2, 1]"),
            std::pair(4, 2 * triangle + 2 * 8 * 16 * 16));
}

TEST_F(Qr, takes_columns_of_any_scale) {
  Dense a = testing::tall(80, 30);
  Dense plain = a;
  for (std::int64_t j = 0; j < a.columns; ++j) {
    const double scale = j % 3 == 0 ? 1e150 : j % 3 == 1 ? 1e-150 : 1.0;
    for (std::int64_t i = 0; i < a.rows; ++i) a(i, j) *= scale;
  }
  const Dense b = testing::sides(80, 2);
  write_problem(a, b);
  for (const int nodes : {0, 2}) {
    static_cast<void>(solved(problem + std::string("layout: {tile: 8, virtual: 2}\n"), nodes));
    Dense x = testing::read_npy(folder_ / "x.npy");
    const Dense expected = testing::least_squares(plain, b).solution;
    for (std::int64_t j = 0; j < a.columns; ++j) {
      const double scale = j % 3 == 0 ? 1e150 : j % 3 == 1 ? 1e-150 : 1.0;
      for (std::int64_t k = 0; k < 2; ++k) {
        EXPECT_NEAR(x(j, k) * scale, expected(j, k), 1e-12) << j << ", " << k;
      }
    }
  }
  // The whole matrix at the edge of what doubles hold.
  for (const double scale : {1e-290, 1e290}) {
    Dense all = plain;
    for (double& value : all.elements) value *= scale;
    write_problem(all, b);
    static_cast<void>(solved(problem + std::string("layout: {tile: 8}\n")));
  }
}

TEST_F(Qr, reports_the_first_dependent_column_and_still_writes_the_factor) {
  Dense repeated = testing::tall(70, 40);
  for (std::int64_t i = 0; i < 70; ++i) {
    repeated(i, 22) = 2 * repeated(i, 3) - repeated(i, 17);
    repeated(i, 30) = repeated(i, 1);
  }
  expect_deficient(repeated, 23);
  Dense zero_column = testing::tall(70, 40);
  for (std::int64_t i = 0; i < 70; ++i) zero_column(i, 0) = 0;
  expect_deficient(zero_column, 1);
  expect_deficient(Dense(50, 20), 1);  // all of it
  Dense square = testing::tall(40, 40);
  for (std::int64_t i = 0; i < 40; ++i) square(i, 39) = square(i, 38) + square(i, 0);
  expect_deficient(square, 40);
}

TEST_F(Qr, does_not_call_badly_scaled_or_nearly_dependent_columns_deficient) {
  Dense a = testing::tall(70, 20);
  for (std::int64_t i = 0; i < 70; ++i) {
    a(i, 9) *= 1e-40;
    a(i, 19) = a(i, 4) + 1e-9 * a(i, 19);
  }
  write_problem(a, testing::sides(70, 1));
  EXPECT_EQ(solved(problem)["info"], 0);
}

TEST_F(Qr, of_nothing_or_of_one_element_is_fine) {
  for (const auto& [m, n] : {std::pair{1, 1}, {5, 1}, {7, 0}, {0, 0}}) {
    for (const int nodes : {0, 3}) {
      SCOPED_TRACE(fmt::format("{} x {} nodes {}", m, n, nodes));
      const auto report =
          solved(fmt::format(
                     "problem:\n  factorization: qr\n  matrix: {{generate: random, m: {}, n: {}}}\n"
                     "  rhs: {{generate: random, columns: 2}}\n  output: {{solution: x.npy}}\n",
                     m, n),
                 nodes);
      EXPECT_EQ(testing::read_npy(folder_ / "x.npy").rows, n);
    }
  }
}

TEST_F(Qr, refuses_more_columns_than_rows_and_sides_of_another_length) {
  for (const int nodes : {0, 3}) {
    write_problem(20, 30, 1);
    expect_refused(solve(problem, nodes), {"a.npy", "20 x 30", "transposed"});
    write_problem(30, 20, 1);
    folder_.write("b.npy", testing::npy(testing::sides(20, 1)));
    expect_refused(solve(problem, nodes), {"b.npy", "20 rows", "30"});
  }
  expect_refused(solve("problem: {factorization: qr, matrix: {generate: random, n: 9, m: 3}}\n"),
                 {"problem.matrix.m", "m >= n = 9"});
  expect_refused(solve("problem: {matrix: {generate: spd, n: 9}, output: {q: q.npy}}\n"),
                 {"problem.output.q", "qr"});
}

TEST_F(Qr, refuses_blocks_of_reflectors_wider_than_its_own_choice_of_tile) {
  write_problem(30, 20, 1);
  for (const int nodes : {0, 3}) {
    expect_refused(solve(problem + std::string("layout: {inner: 5000}\n"), nodes),
                   {"layout.inner 5000", "tile"});
  }
}

TEST_F(Qr, names_what_is_no_number) {
  Dense a = testing::tall(50, 20);
  a(41, 7) = std::numeric_limits<double>::quiet_NaN();
  a(3, 12) = std::numeric_limits<double>::infinity();
  write_problem(a, testing::sides(50, 1));
  for (const int nodes : {0, 3}) {
    expect_refused(solve(problem + std::string("layout: {tile: 8}\n"), nodes),
                   {"a.npy", "nan at row 42, column 8"});
  }
}

TEST_F(Qr, ends_without_results_when_numbers_leave_the_range_of_doubles) {
  Dense a = testing::tall(50, 20);
  for (double& value : a.elements) value *= 3e307;
  write_problem(a, testing::sides(50, 1));
  const Ended ended = solve(problem, 2, {"--report", "report.json"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.error.find("not finite"), std::string::npos) << ended.error;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "r.npy"));
}

}  // namespace heddle
