#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/config_error.hpp"
#include "config/problem.hpp"

namespace heddle {
namespace {

const std::string from_file = "problem:\n  matrix: {file: k.npy}\n  rhs: {file: b.npy}\n";
const std::string kriging =
    "problem:\n  matrix: {generate: kriging, n: 10, range: 0.3, seed: 5}\nlayout: {tile: 64}\n";

Config with(const std::string& text, const std::vector<std::string>& overrides) {
  return Config::from_text(text, "p.yaml", overrides);
}

std::vector<std::string> errors_of(const std::string& text,
                                   const std::vector<std::string>& overrides) {
  std::vector<std::string> lines;
  try {
    static_cast<void>(with(text, overrides));
  } catch (const ConfigError& error) {
    for (const auto& diagnostic : error.diagnostics()) lines.push_back(diagnostic.to_string());
  }
  return lines;
}

TEST(Override, ReplacesAValueOfTheFile) {
  const Config config = with(kriging, {"layout.tile=128", "problem.matrix.range=0.5"});
  EXPECT_EQ(config.layout.tile, 128);
  EXPECT_EQ(config.problem->matrix.range, 0.5);
  EXPECT_EQ(config.problem->matrix.seed, 5U);
}

TEST(Override, AddsKeysAndGroupsThatTheFileLeavesOut) {
  const Config config =
      with("layout:\n", {"runtime.devices.backend=emulated", "runtime.devices.memory=512MiB",
                         "layout.grid=[2, 3]", "trace.file=t.json"});
  EXPECT_EQ(config.runtime.devices.backend, config::DeviceBackend::emulated);
  EXPECT_EQ(config.runtime.devices.memory, 512U << 20U);
  EXPECT_EQ(config.layout.grid, (config::Grid{2, 3}));
  EXPECT_EQ(config.trace.file, "t.json");
}

TEST(Override, TheLastOfSeveralCounts) {
  EXPECT_EQ(with(kriging, {"layout.tile=1", "layout.tile=auto"}).layout.tile, std::nullopt);
}

TEST(Override, MayHoldAWholeGroup) {
  const Config config = with(kriging, {"problem.matrix={generate: lehmer, n: 3}"});
  EXPECT_EQ(config.problem->matrix.generate, config::MatrixKind::lehmer);
  EXPECT_EQ(config.problem->matrix.n, 3);
}

TEST(Override, NullLeavesAGroupOrFileOut) {
  const Config config = with(from_file, {"problem.rhs=null", "logging.file=null"});
  EXPECT_FALSE(config.problem->rhs.has_value());
  EXPECT_FALSE(with(from_file, {"problem=null"}).problem.has_value());
}

TEST(Override, SettingAFileClearsTheGeneratorAndItsOptions) {
  const Config config = with(kriging, {"problem.matrix.file=k.mtx"});
  EXPECT_EQ(config.problem->matrix.file, "k.mtx");
  EXPECT_FALSE(config.problem->matrix.generate.has_value());
}

TEST(Override, SettingAGeneratorClearsTheFileAndOptionsOfOtherKinds) {
  const Config a = with(from_file, {"problem.matrix.n=7", "problem.matrix.generate=spd"});
  EXPECT_FALSE(a.problem->matrix.file.has_value());
  EXPECT_EQ(a.problem->matrix.n, 7);
  EXPECT_EQ(a.problem->matrix.m, 7);
  const Config b = with(kriging, {"problem.matrix.generate=spd"});
  EXPECT_EQ(b.problem->matrix.n, 10);
  EXPECT_EQ(b.problem->matrix.seed, 5U);
}

TEST(Override, OptionsOfOtherOverridesAreNotClearedButChecked) {
  EXPECT_EQ(errors_of(from_file, {"problem.matrix.n=7"}),
            (std::vector<std::string>{
                "--set 1: problem.matrix.n=7: goes only with generate, not with file; leave it "
                "out"}));
}

TEST(Override, ErrorsNameTheOverrideAndTheNearestKey) {
  const auto errors = errors_of(
      kriging, {"layout.tlie=7", "layout.tile=0", "layout.tile=0", "tile=9", "layuot.tile=3",
                "layout.grid=[2, 0]", "problem={matrix: {file: k.npy, mm: 1}}",
                "logging.level=\"info", "runtime.window=*x", "nonsense", "=1", "layout..tile=1",
                "layout.tile.x=1", "trace={file: a, file: b}"});
  const std::vector<std::string> expected{
      "--set 1: layout.tlie=7: unknown key; expected one of grid, tile, strip, small, hierarchy, "
      "inner, "
      "virtual, tree; did you mean 'tile'?",
      "--set 3: layout.tile=0: expected auto | integer >= 1; found 0",
      "--set 4: tile=9: unknown key; expected one of problem, layout, runtime, machine, logging, "
      "trace; did you mean 'layout.tile'?",
      "--set 5: layuot.tile=3: layuot: unknown key; expected one of problem, layout, runtime, "
      "machine, logging, trace; did you mean 'layout'?",
      "--set 6: layout.grid=[2, 0]: expected two integers 1..1000000 in [rows, columns]; found 0",
      "--set 7: problem={matrix: {file: k.npy, mm: 1}}: problem.matrix.mm: unknown key; expected "
      "one of file, generate, n, m, condition, seed, range, smoothness, nugget, rank, distance",
      "--set 8: logging.level=\"info: not valid YAML: illegal EOF in scalar (at character 6 of the "
      "value)",
      "--set 9: runtime.window=*x: a value that begins with '*' means something else in YAML; put "
      "it in quotes: --set 'runtime.window=\"*x\"'",
      "--set 10: nonsense: expected key.path=value, such as layout.tile=512",
      "--set 11: =1: expected key.path=value, such as layout.tile=512",
      "--set 12: layout..tile=1: layout.: unknown key; expected one of grid, tile, strip, small, "
      "hierarchy, "
      "inner, virtual, tree",
      "--set 13: layout.tile.x=1: layout.tile holds a value and has no keys below it",
      "--set 14: trace={file: a, file: b}: trace.file: key given twice; the first is at --set 14: "
      "trace={file: a, file: b}; keep one",
  };
  EXPECT_EQ(errors, expected);
}

TEST(Override, ErrorsOfFileAndOverridesComeTogether) {
  EXPECT_EQ(errors_of("layout: {tile: 64, strip: x}\n", {"layout.small=100"}),
            (std::vector<std::string>{
                "p.yaml:1:27: layout.strip: expected auto | integer >= 0; found 'x'",
                "--set 1: layout.small=100: expected at most tile = 64; found 100"}));
}

/// File names that a shell passes on as they are.
TEST(Override, SaysWhereANameHasToBeInQuotes) {
  struct Case {
    std::string value;
    std::string why;
  };
  for (const Case& c : {Case{"%k.log", "begins with '%'"}, Case{"!k.log", "begins with '!'"},
                        Case{"@k.log", "begins with '@'"}, Case{"`k.log", "begins with '`'"},
                        Case{"&k.log", "begins with '&'"}, Case{"*k.log", "begins with '*'"},
                        Case{"#k.log", "begins with '#'"}, Case{"|k.log", "begins with '|'"},
                        Case{">k.log", "begins with '>'"}, Case{"k #1.log", "begins a comment"},
                        Case{"[k].log", "no plain text"}, Case{"{k}.log", "no plain text"},
                        Case{"k: 1.log", "no plain text"}, Case{"- k.log", "no plain text"},
                        Case{"'k.log", "no plain text"}, Case{"5", "no text"}}) {
    SCOPED_TRACE(c.value);
    const auto errors = errors_of(kriging, {"logging.file=" + c.value});
    ASSERT_EQ(errors.size(), 1U);
    EXPECT_NE(errors[0].find(c.why), std::string::npos) << errors[0];
    EXPECT_NE(errors[0].find("--set 'logging.file=\"" + c.value + "\"'"), std::string::npos)
        << errors[0];
    EXPECT_EQ(with(kriging, {"logging.file=\"" + c.value + "\""}).logging.file, c.value);
  }
}

TEST(Override, AnEmptyValueIsNothing) {
  EXPECT_EQ(errors_of(kriging, {"layout.tile="}),
            (std::vector<std::string>{
                "--set 1: layout.tile=: expected auto | integer >= 1; found nothing"}));
}

}  // namespace
}  // namespace heddle
