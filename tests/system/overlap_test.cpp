#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <limits>
#include <string>
#include <vector>

#include "tests/system/heddle_run.hpp"

/// A factorization on devices that begins while its matrix is read: the same results, and the same
/// refusals, as one that waits.
namespace heddle {
namespace {

using testing::Dense;
using testing::Ended;
using testing::HeddleRun;

struct Case {
  const char* factorization;
  const char* layout;
  int nodes;  ///< 0: without mpiexec
  int devices;
};
constexpr Case cases[] = {{"cholesky", "tile: 16, strip: 0", 0, 2},
                          {"cholesky", "tile: 16, strip: 8, small: 8", 2, 1},
                          {"cholesky", "tile: 16, strip: 0", 4, 1},
                          {"qr", "tile: 16, strip: 0, virtual: 2, tree: binomial", 0, 2},
                          {"qr", "tile: 16, strip: 0, virtual: 2, tree: flat", 3, 1}};

class Overlap : public HeddleRun {
 protected:
  void SetUp() override {
    HeddleRun::SetUp();
    write(testing::spd(order));
    folder_.write("b.npy", testing::npy(testing::sides(order, 2)));
  }
  void write(const Dense& a) { folder_.write("a.npy", testing::npy(a)); }

  [[nodiscard]] static std::string yaml(const Case& c, bool overlap) {
    return fmt::format(
        "problem:\n  factorization: {}\n  matrix: {{file: a.npy}}\n  rhs: {{file: b.npy}}\n"
        "  output: {{solution: x.npy, factor: l.npy}}\n  overlap: {}\nlayout: {{{}}}\n"
        "runtime: {{cpu_workers: 1, devices: {{backend: emulated, per_node: {}, memory: "
        "64MiB}}}}\n",
        c.factorization, overlap, c.layout, c.devices);
  }

  static constexpr std::int64_t order = 400;
};

}  // namespace

TEST_F(Overlap, changes_no_bit_and_the_report_and_the_table_tell_it) {
  for (const Case& c : cases) {
    SCOPED_TRACE(fmt::format("{} on {} nodes", c.factorization, c.nodes));
    std::vector<std::string> results;
    for (const bool overlap : {false, true}) {
      const auto report = solved(yaml(c, overlap), c.nodes);
      const auto& seconds = report["seconds"];
      EXPECT_EQ(seconds["overlap"].is_null(), !overlap);
      EXPECT_EQ(seconds["prepare"].is_null(), overlap);
      EXPECT_EQ(report["gflops"].is_null(), overlap) << "no rate of the factorization alone";
      if (overlap) {
        EXPECT_LE(seconds["overlap"], seconds["factor"]);
        EXPECT_LE(seconds["overlap"], seconds["read"]);
      }
      results.push_back(testing::read_file(folder_ / "x.npy") +
                        testing::read_file(folder_ / "l.npy"));
    }
    EXPECT_TRUE(results[0] == results[1]) << "other bits";
  }
  const Ended ended = solve(yaml(cases[0], true));
  EXPECT_NE((ended.out + ended.error).find("while the file was read"), std::string::npos);
}

TEST_F(Overlap, is_not_where_a_matrix_is_generated_cpus_factorize_or_a_trace_is_recorded) {
  const std::string generated =
      "problem: {matrix: {generate: spd, n: 200}}\nlayout: {tile: 16, strip: 0}\n"
      "runtime: {cpu_workers: 1, devices: {backend: emulated, per_node: 1, memory: 64MiB}}\n";
  const std::string cpus =
      "problem: {matrix: {file: a.npy}}\nruntime: {devices: {backend: none}}\n";
  const std::string traced = yaml(cases[0], true) + "trace: {file: run.trace}\n";
  for (const std::string& text : {generated, cpus, traced}) {
    const auto report = solved(text);
    EXPECT_TRUE(report["seconds"]["overlap"].is_null()) << text;
    EXPECT_FALSE(report["gflops"].is_null()) << text;
  }
}

TEST_F(Overlap, ends_with_the_refusal_of_elements_that_come_late) {
  Dense not_a_number = testing::spd(order);
  not_a_number(order - 1, order - 1) = std::numeric_limits<double>::quiet_NaN();
  Dense asymmetric = testing::spd(order);
  asymmetric(order - 1, order - 2) += 1;
  // What the factorization finds first does not count.
  Dense indefinite = not_a_number;
  indefinite(0, 0) = -1;
  for (const bool overlap : {false, true}) {
    for (const Case& c : cases) {
      SCOPED_TRACE(fmt::format("{} on {} nodes, {}", c.factorization, c.nodes, overlap));
      for (const Dense* matrix : {&not_a_number, &indefinite}) {
        write(*matrix);
        expect_refused(solve(yaml(c, overlap), c.nodes), {"a.npy", "nan", "row 400, column 400"});
      }
      if (std::string(c.factorization) == "qr") continue;
      write(asymmetric);
      expect_refused(solve(yaml(c, overlap), c.nodes), {"not symmetric", "(400, 399)"});
    }
  }
  write(testing::spd(order));
  Dense b = testing::sides(order, 2);
  b(order - 1, 1) = std::numeric_limits<double>::infinity();
  folder_.write("b.npy", testing::npy(b));
  for (const Case& c : cases) {
    expect_refused(solve(yaml(c, true), c.nodes), {"b.npy", "inf", "row 400, column 2"});
  }
}

TEST_F(Overlap, gives_the_info_of_a_matrix_that_is_not_positive_definite) {
  for (const std::int64_t pivot : {std::int64_t{3}, order - 1}) {
    Dense a = testing::spd(order);
    a(pivot, pivot) = -1;
    write(a);
    for (const Case& c : cases) {
      if (std::string(c.factorization) == "qr") continue;
      const Ended ended = solve(yaml(c, true), c.nodes);
      EXPECT_EQ(ended.status, 3) << ended.error;
      const std::string expected = fmt::format("leading minor of order {} is not", pivot + 1);
      EXPECT_NE((ended.out + ended.error).find(expected), std::string::npos) << ended.error;
    }
  }
}

}  // namespace heddle
