#include <cmath>
#include <fmt/core.h>
#include <set>

#include "tests/system/heddle_run.hpp"

/// Whole runs through the binary that end well. The sanitizer builds run these too.
namespace heddle {
namespace {

using testing::Dense;
using testing::HeddleRun;

class GoodRun : public HeddleRun {
 protected:
  void expect_close(const Dense& actual, const Dense& expected, double tolerance) {
    ASSERT_EQ(actual.rows, expected.rows);
    ASSERT_EQ(actual.columns, expected.columns);
    double worst = 0;
    for (std::size_t i = 0; i < actual.elements.size(); ++i) {
      worst = std::max(worst, std::abs(actual.elements[i] - expected.elements[i]));
    }
    EXPECT_LT(worst, tolerance);
  }

  /// Writes the files of a problem of order n, runs it, and compares with LAPACK.
  void expect_like_lapack(std::int64_t n, std::int64_t columns, int nodes,
                          const std::string& layout, testing::NpyOrder order) {
    SCOPED_TRACE(fmt::format("n {} sides {} nodes {} {}", n, columns, nodes, layout));
    const Dense a = testing::spd(n);
    const Dense b = testing::sides(n, columns);
    folder_.write("k.npy", testing::npy(a, order));
    folder_.write("b.npy", testing::npy(b, order));
    const auto report = solved(
        "problem:\n  matrix: {file: k.npy}\n  rhs: {file: b.npy}\n"
        "  output: {solution: x.npy, factor: l.npy}\n" +
            layout,
        nodes);
    const testing::Reference expected = testing::reference(a, b);
    expect_close(testing::read_npy(folder_ / "x.npy"), expected.solution, 1e-12);
    expect_close(testing::read_npy(folder_ / "l.npy"), expected.factor, 1e-11);
    double log_determinant = 0;
    for (std::int64_t i = 0; i < n; ++i) log_determinant += 2 * std::log(expected.factor(i, i));
    EXPECT_NEAR(report["log_determinant"].get<double>(), log_determinant, 1e-9);
  }
};

}  // namespace

TEST_F(GoodRun, solves_from_numpy_files_alone) {
  expect_like_lapack(157, 3, 0, "layout: {tile: 48}\n", testing::NpyOrder::fortran);
}

TEST_F(GoodRun, solves_from_numpy_files_in_c_order_on_two_nodes) {
  expect_like_lapack(157, 3, 2, "layout: {tile: 48}\n", testing::NpyOrder::c);
}

TEST_F(GoodRun, solves_with_devices_on_two_nodes) {
  expect_like_lapack(157, 2, 2,
                     "layout: {tile: 48, strip: 16, small: 8}\n"
                     "runtime: {devices: {backend: emulated, per_node: 2, memory: 64MiB}}\n",
                     testing::NpyOrder::fortran);
}

TEST_F(GoodRun, solves_least_squares_alone_and_with_devices_on_two_nodes) {
  const Dense a = testing::tall(150, 61);
  const Dense b = testing::sides(150, 2);
  folder_.write("a.npy", testing::npy(a));
  folder_.write("b.npy", testing::npy(b));
  const std::string problem =
      "problem:\n  factorization: qr\n  matrix: {file: a.npy}\n  rhs: {file: b.npy}\n"
      "  output: {solution: x.npy, q: q.npy}\n";
  const Dense expected = testing::least_squares(a, b).solution;
  static_cast<void>(solved(problem + "layout: {tile: 16, virtual: 3}\n"));
  expect_close(testing::read_npy(folder_ / "x.npy"), expected, 1e-12);
  static_cast<void>(
      solved(problem + "layout: {tile: 16, strip: 8, small: 4, virtual: 2, tree: binomial}\n"
                       "runtime: {devices: {backend: emulated, per_node: 2, memory: 64MiB}}\n",
             2));
  expect_close(testing::read_npy(folder_ / "x.npy"), expected, 1e-12);
}

TEST_F(GoodRun, writes_a_trace_with_the_rows_of_both_nodes) {
  static_cast<void>(solved("problem:\n  matrix: {generate: spd, n: 150}\nlayout: {tile: 48}\n", 2,
                           {"--trace", "trace.json"}));
  const auto trace = nlohmann::json::parse(testing::read_file(folder_ / "trace.json"));
  const auto& events = trace.at("traceEvents");
  bool arrow = false;
  std::set<std::string> nodes;
  for (const auto& event : events) {
    arrow = arrow || event["ph"] == "s";
    if (event["name"] == "process_name") nodes.insert(event["args"]["name"].get<std::string>());
  }
  EXPECT_TRUE(arrow) << "no message has an arrow";
  EXPECT_EQ(nodes, (std::set<std::string>{"node 0", "node 1"}));
}

}  // namespace heddle
