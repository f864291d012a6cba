#include <filesystem>
#include <fmt/format.h>
#include <string>

#include "tests/system/heddle_run.hpp"

/// Matrix files as programs write them, valid and not: what is valid is read, what is not is told
/// in the same words on any number of nodes, and nothing of an input reaches the terminal but text.
namespace heddle {
namespace {

using testing::Dense;
using testing::Ended;
using testing::HeddleRun;

constexpr const char* problem =
    "problem:\n  matrix: {file: k.mtx}\n  rhs: {file: b.npy}\n"
    "  output: {solution: x.npy, factor: l.npy}\nlayout: {tile: 16}\n";

constexpr std::int64_t order = 60;
const std::string array_banner = "%%MatrixMarket matrix array real general\n60 60\n";

/// Lines of an array file: line 3 + k holds element k, column after column.
std::vector<std::string> array_lines() {
  const Dense a = testing::spd(order);
  std::vector<std::string> lines;
  for (const double element : a.elements) lines.push_back(fmt::format("{}", element));
  return lines;
}

std::string joined(const std::vector<std::string>& lines, const std::string& end = "\n") {
  return fmt::format("{}{}", fmt::join(lines, end), end);
}

/// Entries of the lower triangle, the first in line 3.
std::vector<std::string> coordinate_lines() {
  const Dense a = testing::spd(order);
  std::vector<std::string> lines;
  for (std::int64_t j = 0; j < order; ++j) {
    for (std::int64_t i = j; i < order; ++i) {
      lines.push_back(fmt::format("{} {} {}", i + 1, j + 1, a(i, j)));
    }
  }
  return lines;
}

std::string coordinate_text(const std::vector<std::string>& lines) {
  return fmt::format("%%MatrixMarket matrix coordinate real symmetric\n60 60 {}\n{}",
                     order * (order + 1) / 2, joined(lines));
}

class Formats : public HeddleRun {
 protected:
  void SetUp() override {
    HeddleRun::SetUp();
    folder_.write("b.npy", testing::npy(testing::sides(order, 2)));
  }

  /// Writes the matrix file and expects the same refusal, with these parts, alone and on 1 to 4
  /// nodes.
  void refused_alike(const std::string& text, const std::vector<std::string>& parts) {
    folder_.write("k.mtx", text);
    const Ended alone = solve(problem);
    expect_refused(alone, parts);
    for (const int nodes : {1, 2, 3, 4}) {
      SCOPED_TRACE(fmt::format("{} nodes", nodes));
      const Ended ended = solve(problem, nodes);
      EXPECT_EQ(ended.status, 2);
      EXPECT_EQ(message_of(ended), message_of(alone));
    }
  }

  /// What heddle says; a launcher may add lines of its own.
  static std::string message_of(const Ended& ended) {
    const auto begin = ended.error.find("heddle: ");
    if (begin == std::string::npos) return ended.error;
    return ended.error.substr(begin, ended.error.find('\n', begin) - begin);
  }

  static void expect_no_control_characters(const std::string& text) {
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      EXPECT_TRUE(byte == '\n' || (byte >= 0x20 && byte != 0x7F))
          << "byte " << int{byte} << " in " << text;
    }
  }
};

}  // namespace

TEST_F(Formats, matrix_market_as_other_programs_write_it_gives_the_same_solution) {
  folder_.write("k.npy", testing::npy(testing::spd(order)));
  std::string yaml = problem;
  static_cast<void>(solved(yaml.replace(yaml.find("k.mtx"), 5, "k.npy")));
  const std::string expected = testing::read_file(folder_ / "x.npy");

  std::vector<std::string> gaps = array_lines();
  for (std::size_t i = 0; i < gaps.size(); i += 7) gaps[i] += i % 2 == 0 ? "\n" : "\n \t\n% and\n";
  std::vector<std::string> fortran = array_lines();
  for (std::string& line : fortran) line = "  " + line + "D+00";
  std::string windows = "\xEF\xBB\xBF" + array_banner + joined(array_lines());
  for (auto at = windows.find('\n'); at != std::string::npos; at = windows.find('\n', at + 2)) {
    windows.insert(at, 1, '\r');
  }
  const std::string texts[] = {
      windows,
      array_banner + joined(gaps),
      array_banner + joined(fortran),
      "\n%%matrixmarket MATRIX Array REAL General\n% why\n\n60 60\n\n" + joined(array_lines()),
      coordinate_text(coordinate_lines()),
  };
  for (const std::string& text : texts) {
    SCOPED_TRACE(text.substr(0, 90));
    folder_.write("k.mtx", text);
    for (const int nodes : {0, 3}) {
      static_cast<void>(solved(problem, nodes));
      EXPECT_TRUE(testing::read_file(folder_ / "x.npy") == expected) << nodes;
    }
  }
}

TEST_F(Formats, the_first_wrong_line_is_told_alike_on_any_number_of_nodes) {
  std::vector<std::string> lines = array_lines();
  // In tiles of three nodes each: (30, 30) in line 1833 with the blank line, and others behind.
  lines[100] += "\n";
  lines[30 + 30 * 60] = "1,01";
  lines[10 + 50 * 60] = "x";
  lines[50 + 40 * 60] = "1e400";
  refused_alike(array_banner + joined(lines, "\r\n"),
                {"k.mtx", "line 1834", "'1,01' is not a number", "write a point"});
  lines = array_lines();
  lines[59 + 59 * 60] = "1e400";
  refused_alike(array_banner + joined(lines), {"line 3602", "'1e400' is too large"});
}

TEST_F(Formats, missing_and_surplus_entries_are_told_alike_on_any_number_of_nodes) {
  std::vector<std::string> lines = array_lines();
  lines[1825] += "\n";
  lines.emplace_back("5");
  refused_alike(array_banner + joined(lines, "\r\n"), {"line 3604", "too many entries", "'5'"});
  lines = array_lines();
  lines.resize(3000);
  refused_alike(array_banner + joined(lines), {"line 3003", "too few entries", "ends after 3000"});
}

TEST_F(Formats, wrong_entries_of_coordinate_files_are_told_alike_on_any_number_of_nodes) {
  std::vector<std::string> lines = coordinate_lines();
  lines[700] = "60 1 5";
  lines[1500] = "61 1 5";
  refused_alike(coordinate_text(lines), {"line 703", "(60, 1)", "line 62"});
  lines = coordinate_lines();
  lines[900] += "7e";
  lines[1000] = "61 1 5";
  refused_alike(coordinate_text(lines), {"line 903", "is not a number"});
}

TEST_F(Formats, control_characters_of_inputs_are_written_out) {
  std::vector<std::string> lines = array_lines();
  lines[5] = std::string("\0\0\0\x1b[2J", 7);
  refused_alike(array_banner + joined(lines), {"line 8", "'\\x00\\x00\\x00\\x1B[2J'"});
  expect_no_control_characters(solve(problem).error);

  folder_.write("k\x1b[2J.mtx", "%%MatrixMarket \x07 array real general\n");
  const std::string yaml =
      "problem: {matrix: {file: \"k\\e[2J.mtx\"}, output: {factor: l.npy}}\nlay\u0085out: 1\n";
  for (const int nodes : {0, 2}) {
    for (const Ended& ended :
         {solve(yaml, nodes), solve("layout: {tile: \"\\e[31m\\n\", \"\\a\": 1}\n", nodes),
          solve(problem, nodes, {"--set", "layout.tile=\x1b[31m"}),
          solve(problem, nodes, {"--set", "layout.\x1b[31m=3"}),
          solve(problem, nodes, {"--report", "\x1b[31m/r.json"}),
          solve(problem, nodes, {"--trace", "no\nwhere/\x1b[31m"}),
          run(nodes == 0 ? alone({"solve", "p\x1b[2J\n.yaml"})
                         : on(nodes, {"solve", "p\x1b[2J\n.yaml"}))}) {
      EXPECT_EQ(ended.status, 2) << ended.error;
      expect_no_control_characters(ended.error);
    }
  }
  for (const Ended& ended :
       {run(alone({"analyze", "k\x1b[2J.mtx"})), run(alone({"replay", "\x1b[2J"})),
        run(alone({"simulate", "problem.yaml", "--machine", "k\x1b[2J.mtx"})),
        run(alone({"\x1b[2J"})), run(alone({"generate", "--kind", "\x1b[2J", "-n", "3"}))}) {
    EXPECT_EQ(ended.status, 2) << ended.error;
    expect_no_control_characters(ended.error);
  }
}

TEST_F(Formats, names_of_traces_are_written_out) {
  static_cast<void>(solved("problem: {matrix: {generate: spd, n: 30}}\n", 0, {"--trace", "run"}));
  const std::string name = "r\x1b[2J\xE9\n";
  std::filesystem::rename(folder_ / "run", folder_ / name);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"analyze", name},
                                                {"analyze", name, name, "--report", "a.json"},
                                                {"replay", name}}) {
    const Ended ended = run(alone(words));
    EXPECT_EQ(ended.status, 0) << ended.error;
    EXPECT_NE(ended.out.find("r\\x1B[2J\\xE9\\n"), std::string::npos) << ended.out;
    expect_no_control_characters(ended.out + ended.error);
  }
}

TEST_F(Formats, an_asymmetric_matrix_is_refused_with_the_tolerance_and_the_cure) {
  Dense a = testing::spd(order);
  a(40, 30) += 1e-12;
  folder_.write("k.npy", testing::npy(a));
  std::string yaml = problem;
  yaml.replace(yaml.find("k.mtx"), 5, "k.npy");
  const Ended alone = solve(yaml);
  expect_refused(
      alone, {"k.npy", "not symmetric", "(41, 31)", "8 epsilon", "1.78e-15", "give (A + A^T) / 2"});
  for (const int nodes : {1, 2, 3, 4}) EXPECT_EQ(message_of(solve(yaml, nodes)), message_of(alone));
}

}  // namespace heddle
