#include <fmt/core.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/config_error.hpp"
#include "config/options.hpp"

namespace heddle {
namespace {

using config::Diagnostic;

std::vector<Diagnostic> errors_of(const std::string& text) {
  try {
    static_cast<void>(Config::from_text(text, "p.yaml"));
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.diagnostics();
  }
  return {};
}

struct BadInput {
  std::string text;
  int line;
  int column;
  std::string path;
  std::string message;  ///< a part of it
  std::string nearest;
};

void expect_refused(const std::vector<BadInput>& cases) {
  for (const BadInput& bad : cases) {
    SCOPED_TRACE(bad.text);
    const auto errors = errors_of(bad.text);
    ASSERT_EQ(errors.size(), 1U) << (errors.empty() ? "accepted" : errors[1].to_string());
    EXPECT_EQ(errors[0].source, "p.yaml");
    EXPECT_EQ(errors[0].line, bad.line) << errors[0].to_string();
    EXPECT_EQ(errors[0].column, bad.column) << errors[0].to_string();
    EXPECT_EQ(errors[0].path, bad.path);
    EXPECT_NE(errors[0].message.find(bad.message), std::string::npos) << errors[0].message;
    EXPECT_EQ(errors[0].nearest, bad.nearest);
  }
}

const std::string file_matrix = "problem:\n  matrix: {file: k.npy}\n";  // lines 1 and 2
const std::string spd = "problem:\n  matrix: {generate: spd, n: 8, ";
const std::string qr = "problem:\n  factorization: qr\n  matrix: {generate: ";  // to line 3

TEST(Diagnostics, UnknownKeysNameTheirSiblingsAndTheNearest) {
  expect_refused({
      {"problem:\n  matrx: {file: k.npy}\n  matrix: {file: k.npy}\n", 2, 3, "problem.matrx",
       "unknown key; expected one of factorization, matrix, rhs, output, verify", "matrix"},
      {"layout: {tlie: 5}\n", 1, 10, "layout.tlie",
       "expected one of grid, tile, strip, small, hierarchy, inner, virtual, tree", "tile"},
      {"runtime:\n  devices:\n    per-node: 1\n", 3, 5, "runtime.devices.per-node",
       "expected one of backend, per_node, memory, streams", "per_node"},
      {"tile: 5\n", 1, 1, "tile", "expected one of problem, layout", "layout.tile"},
      {"layuot: {tile: 5}\n", 1, 1, "layuot", "unknown key", "layout"},
      {"layout.tile: 5\n", 1, 1, "layout.tile", "unknown key", "layout: {tile: ...}"},
      {"banana: {a: 1, b: {c: 2}}\n", 1, 1, "banana", "unknown key", ""},
      {"\"\": 1\n", 1, 1, "", "unknown key", ""},
  });
}

TEST(Diagnostics, DuplicateKeysNameBothPositions) {
  expect_refused({
      {"layout:\n  tile: 1\n  small: 1\n  tile: 2\n", 4, 3, "layout.tile",
       "given twice; the first is at p.yaml:2:3", ""},
      {"trace: {}\nmachine: auto\ntrace: {}\n", 3, 1, "trace", "first is at p.yaml:1:1", ""},
  });
}

TEST(Diagnostics, WrongTypesTellWhatWasExpectedAndFound) {
  expect_refused({
      {"layout: {tile: big}\n", 1, 16, "layout.tile", "expected auto | integer >= 1; found 'big'",
       ""},
      {"layout: {tile: atuo}\n", 1, 16, "layout.tile", "found 'atuo'", "auto"},
      {"layout: {tile: 1e2}\n", 1, 16, "layout.tile", "found 1e2", "100"},
      {"layout: {tile: 12.5}\n", 1, 16, "layout.tile", "found 12.5", ""},
      {"layout: {tile: \"12\"}\n", 1, 16, "layout.tile", "write it without quotes", ""},
      {"layout: {tile: [1]}\n", 1, 16, "layout.tile", "found a list of 1", ""},
      {"layout: {tile: {a: 1}}\n", 1, 16, "layout.tile", "found a mapping", ""},
      {"layout:\n  tile:\n  small: 1\n", 2, 3, "layout.tile", "found nothing", ""},
      {"layout: 5\n", 1, 9, "layout", "expected a mapping with grid, tile", ""},
      {"layout: [tile]\n", 1, 9, "layout", "found a list of 1", ""},
      {"runtime: {wait: 5}\n", 1, 17, "runtime.wait", "expected adaptive | spin | park; found 5",
       ""},
      {"runtime: {wait: spni}\n", 1, 17, "runtime.wait", "found 'spni'", "spin"},
      {"runtime: {watchdog_seconds: soon}\n", 1, 29, "runtime.watchdog_seconds", "expected number",
       ""},
      {"runtime: {devices: {memory: lots}}\n", 1, 29, "runtime.devices.memory",
       "size such as 512MiB; found 'lots'", ""},
      {"trace: {file: true}\n", 1, 15, "trace.file", "expected null | path; found true", ""},
      {"machine: 5\n", 1, 10, "machine", "expected auto | path; found 5", ""},
      {"logging: {file: \"\"}\n", 1, 17, "logging.file", "found the quoted text \"\"", ""},
      {"logging: {file: \"a\\nb\"}\n", 1, 17, "logging.file", "control characters", ""},
      {file_matrix + "  verify: yes\n", 3, 11, "problem.verify",
       "expected auto | full | none | true | false", ""},
      {"layout: {grid: 4}\n", 1, 16, "layout.grid", "auto | [rows, columns]; found 4", ""},
      {"layout: {grid: 2x3}\n", 1, 16, "layout.grid", "found '2x3'", "[2, 3]"},
      {"layout: {grid: [1, 2, 3]}\n", 1, 16, "layout.grid", "found a list of 3", ""},
      {"layout: {grid: [2, two]}\n", 1, 20, "layout.grid", "found 'two'", ""},
  });
}

/// "a: {b: {c: value}}" of "a.b.c".
std::string nested(std::string_view path, const std::string& value) {
  const auto dot = path.find('.');
  if (dot == std::string_view::npos) return fmt::format("{}: {}", path, value);
  return fmt::format("{}: {{{}}}", path.substr(0, dot), nested(path.substr(dot + 1), value));
}

TEST(Diagnostics, IntegersAreTakenUpToTheEndsOfTheirRangesAndNotBeyond) {
  int keys = 0;
  for (const config::Option& option : config::options()) {
    if (option.kind != config::Kind::integer || option.kinds != 0) continue;
    ++keys;
    SCOPED_TRACE(option.path);
    for (const std::int64_t inside : {option.integer_min, option.integer_max}) {
      EXPECT_TRUE(errors_of(nested(option.path, fmt::format("{}", inside)) + "\n").empty());
    }
    const std::string above = fmt::format("{}", option.integer_max + 1);
    for (const std::string& outside :
         {above, std::string("9223372036854775808"), std::string("18446744073709551617")}) {
      const auto errors = errors_of(nested(option.path, outside) + "\n");
      ASSERT_EQ(errors.size(), 1U) << outside;
      EXPECT_EQ(errors[0].path, option.path);
      EXPECT_EQ(errors[0].line, 1);
      EXPECT_EQ(errors[0].message,
                fmt::format("expected at most {}; found {}", option.integer_max, outside));
    }
    for (const std::string& outside :
         {fmt::format("{}", option.integer_min - 1), std::string("-9223372036854775809")}) {
      const auto errors = errors_of(nested(option.path, outside) + "\n");
      ASSERT_EQ(errors.size(), 1U) << outside;
      EXPECT_EQ(errors[0].path, option.path);
      EXPECT_NE(errors[0].message.find(fmt::format("found {}", outside)), std::string::npos);
    }
  }
  EXPECT_GT(keys, 8);
}

TEST(Diagnostics, ImpossibleValuesAreRefused) {
  expect_refused({
      {"layout: {tile: 0}\n", 1, 16, "layout.tile", "integer >= 1; found 0", ""},
      {"layout: {tile: -3}\n", 1, 16, "layout.tile", "found -3", ""},
      {"layout: {tile: 99999999999999999999}\n", 1, 16, "layout.tile",
       "at most 1000000000; found 99999999999999999999", ""},
      {"layout: {tile: -99999999999999999999}\n", 1, 16, "layout.tile",
       "integer >= 1; found -99999999999999999999", ""},
      {"layout: {tile: 2000000000}\n", 1, 16, "layout.tile", "at most 1000000000", ""},
      {"layout: {grid: [0, 2]}\n", 1, 17, "layout.grid", "found 0", ""},
      {"layout: {grid: [1000000, 1000000]}\n", 1, 16, "layout.grid",
       "at most 1000000 nodes, rows x columns; found 1000000000000", ""},
      {"layout: {grid: [4294967297, 1]}\n", 1, 17, "layout.grid", "1..1000000", ""},
      {"runtime: {window: 0}\n", 1, 19, "runtime.window", "integer >= 1", ""},
      {"runtime: {cpu_workers: 5000}\n", 1, 24, "runtime.cpu_workers", "at most 4096", ""},
      {"runtime: {watchdog_seconds: 0}\n", 1, 29, "runtime.watchdog_seconds", ">= 0.1", ""},
      {"runtime: {watchdog_seconds: .inf}\n", 1, 29, "runtime.watchdog_seconds", "found .inf", ""},
      {"runtime: {devices: {memory: 0}}\n", 1, 29, "runtime.devices.memory", "found 0", ""},
      {"runtime: {devices: {memory: -1GiB}}\n", 1, 29, "runtime.devices.memory", "-1GiB", ""},
      {spd + "condition: 0.5}\n", 2, 44, "problem.matrix.condition", "number >= 1; found 0.5", ""},
      {spd + "condition: .nan}\n", 2, 44, "problem.matrix.condition", "found .nan", ""},
      {spd + "condition: nan}\n", 2, 44, "problem.matrix.condition", "found 'nan'", ""},
      {spd + "condition: 1e999}\n", 2, 44, "problem.matrix.condition",
       "found 1e999, which is too large for a double: the largest is 1.79e+308", ""},
      {spd + "condition: -1e999}\n", 2, 44, "problem.matrix.condition", "too large", ""},
      {"problem:\n  matrix: {generate: kriging, n: 8, nugget: 1e-999}\n", 2, 45,
       "problem.matrix.nugget", "found 1e-999, which is too small for a double", ""},
      {spd + "seed: -1}\n", 2, 39, "problem.matrix.seed", "integer >= 0; found -1", ""},
      {spd + "seed: 9223372036854775808}\n", 2, 39, "problem.matrix.seed",
       "at most 9223372036854775807; found 9223372036854775808", ""},
      {"runtime: {devices: {memory: 99999TiB}}\n", 1, 29, "runtime.devices.memory",
       "at most 64.00 TiB; found 99999TiB", ""},
      {"runtime: {devices: {memory: 1e400GiB}}\n", 1, 29, "runtime.devices.memory",
       "at most 64.00 TiB", ""},
      {"runtime: {devices: {memory: 255}}\n", 1, 29, "runtime.devices.memory",
       "at least 256 B; found 255", ""},
      {"runtime: {devices: {per_node: 65}}\n", 1, 31, "runtime.devices.per_node",
       "at most 64; found 65", ""},
      {"problem:\n  matrix: {generate: kriging, n: 8, range: 0}\n", 2, 44, "problem.matrix.range",
       "number > 0; found 0", ""},
      {"problem:\n  matrix: {generate: kriging, n: 8, smoothness: 21}\n", 2, 49,
       "problem.matrix.smoothness", "<= 20", ""},
      {"problem:\n  matrix: {generate: kriging, n: 8, nugget: -1}\n", 2, 45,
       "problem.matrix.nugget", "number >= 0", ""},
      {qr + "conditioned, n: 8, condition: 0.5}\n", 3, 52, "problem.matrix.condition",
       "number >= 1; found 0.5", ""},
      {qr + "dependent, n: 8, rank: -1}\n", 3, 45, "problem.matrix.rank", "integer >= 0; found -1",
       ""},
      {qr + "dependent, n: 8, rank: 2.5}\n", 3, 45, "problem.matrix.rank", "found 2.5", ""},
      {qr + "dependent, n: 8, distance: -1e-9}\n", 3, 49, "problem.matrix.distance",
       "number >= 0; found -1e-9", ""},
      {qr + "dependent, n: 8, distance: .inf}\n", 3, 49, "problem.matrix.distance", "found .inf",
       ""},
      {qr + "dependant, n: 8}\n", 3, 22, "problem.matrix.generate", "found 'dependant'",
       "dependent"},
      {"problem:\n  matrix: {file: k.csv}\n", 2, 18, "problem.matrix.file",
       "path ending in .npy or .mtx; found 'k.csv'", ""},
      {"problem:\n  matrix: {file: .npy}\n", 2, 18, "problem.matrix.file", "found '.npy'", ""},
      {file_matrix + "  output: {factor: l.mtx}\n", 3, 20, "problem.output.factor",
       "path ending in .npy", ""},
      {file_matrix + "  rhs: {generate: random, columns: 0}\n", 3, 36, "problem.rhs.columns",
       "integer >= 1", ""},
  });
}

TEST(Diagnostics, MissingKeysAreNamedWhereTheyBelong) {
  expect_refused({
      {"problem: {verify: true}\n", 1, 1, "problem.matrix", "missing; the matrix", ""},
      {"problem:\n  matrix:\n", 2, 3, "problem.matrix", "expected a mapping", ""},
      {"problem:\n  matrix: {}\n", 2, 3, "problem.matrix", "either file or generate", ""},
      {"problem:\n  matrix: {n: 5}\n", 2, 3, "problem.matrix", "either file or generate", ""},
      {"problem:\n  matrix: {generate: spd}\n", 2, 22, "problem.matrix.n", "missing", ""},
      {file_matrix + "  rhs: {columns: 2}\n", 3, 3, "problem.rhs", "either file or generate", ""},
  });
}

TEST(Diagnostics, ContradictingKeysAreRefused) {
  expect_refused({
      {"problem:\n  matrix: {file: k.npy, generate: spd, n: 4}\n", 2, 25, "problem.matrix.generate",
       "exclude each other; the other is at p.yaml:2:12", ""},
      {"problem:\n  matrix: {generate: spd, n: 4, file: k.npy}\n", 2, 33, "problem.matrix.file",
       "the other is at p.yaml:2:12", ""},
      {"problem:\n  matrix: {file: k.npy, n: 4}\n", 2, 25, "problem.matrix.n",
       "goes only with generate", ""},
      {spd + "range: 0.5}\n", 2, 33, "problem.matrix.range",
       "does not apply to generate: spd; it goes with kriging", ""},
      {"problem:\n  matrix: {generate: lehmer, n: 8, seed: 1}\n", 2, 36, "problem.matrix.seed",
       "goes with spd, random, kriging, conditioned, graded, dependent", ""},
      {spd + "m: 9}\n", 2, 36, "problem.matrix.m", "m = n = 8", ""},
      {"problem:\n  factorization: qr\n  matrix: {generate: random, n: 8, m: 7}\n", 3, 39,
       "problem.matrix.m", "m >= n = 8", ""},
      {"problem:\n  factorization: qr\n  matrix: {generate: kriging, n: 8, m: 9}\n", 3, 40,
       "problem.matrix.m", "generate: kriging is square", ""},
      {"problem:\n  matrix: {generate: random, n: 8}\n", 2, 22, "problem.matrix.generate",
       "a random matrix is not symmetric positive definite", ""},
      {"problem:\n  matrix: {generate: conditioned, n: 8}\n", 2, 22, "problem.matrix.generate",
       "a conditioned matrix is not symmetric positive definite, so cholesky cannot factorize it; "
       "use spd, or factorization: qr",
       ""},
      {"problem:\n  matrix: {generate: graded, n: 8}\n", 2, 22, "problem.matrix.generate",
       "a graded matrix is not", ""},
      {"problem:\n  matrix: {generate: dependent, n: 8}\n", 2, 22, "problem.matrix.generate",
       "a dependent matrix is not", ""},
      {"problem:\n  matrix: {generate: polynomial, n: 8}\n", 2, 22, "problem.matrix.generate",
       "a polynomial matrix is not", ""},
      {qr + "polynomial, n: 8, m: 7}\n", 3, 43, "problem.matrix.m", "m >= n = 8", ""},
      {qr + "polynomial, n: 8, seed: 7}\n", 3, 40, "problem.matrix.seed",
       "does not apply to generate: polynomial", ""},
      {qr + "dependent, n: 8, condition: 7}\n", 3, 39, "problem.matrix.condition",
       "it goes with spd, conditioned, graded", ""},
      {qr + "graded, n: 8, rank: 9}\n", 3, 36, "problem.matrix.rank",
       "does not apply to generate: graded; it goes with dependent", ""},
      {qr + "dependent, n: 8, m: 12, rank: 9}\n", 3, 52, "problem.matrix.rank",
       "expected at most n = 8; found 9", ""},
      {file_matrix + "  rhs: {file: b.npy, seed: 1}\n", 3, 22, "problem.rhs.seed",
       "goes only with generate", ""},
      {file_matrix + "  output: {solution: x.npy}\n", 3, 22, "problem.output.solution",
       "no solution without right-hand sides", ""},
      {file_matrix + "  output: {factor: ./k.npy}\n", 3, 20, "problem.output.factor",
       "would overwrite 'k.npy', which problem.matrix.file uses", ""},
      {"logging: {file: a/log}\ntrace: {file: a/./log}\n", 2, 15, "trace.file",
       "which logging.file uses", ""},
      {"machine: m.json\ntrace: {file: m.json}\n", 2, 15, "trace.file", "which machine uses", ""},
      {"layout: {tile: 64, strip: 96, small: 32}\n", 1, 27, "layout.strip", "at most tile = 64",
       ""},
      {"layout: {tile: 64, strip: 48, small: 32}\n", 1, 27, "layout.strip",
       "multiple of small = 32; found 48", ""},
      {"layout: {tile: 64, small: 65}\n", 1, 27, "layout.small", "at most tile = 64", ""},
      {"layout: {tile: 64, inner: 65}\n", 1, 27, "layout.inner", "at most tile = 64", ""},
      {"runtime: {devices: {backend: none, per_node: 1}}\n", 1, 46, "runtime.devices.per_node",
       "expected 0 or auto with backend: none", ""},
  });
}

TEST(Diagnostics, TextThatIsNoMappingIsRefused) {
  expect_refused({
      {"", 0, 0, "", "file is empty", ""},
      {"# nothing\n", 0, 0, "", "file is empty", ""},
      {"---\n...\n", 0, 0, "", "file is empty", ""},
      {"hello\n", 1, 1, "", "expected a mapping with problem, layout", ""},
      {"- a\n- b\n", 1, 1, "", "found a list of 2", ""},
      {"a: [\n", 2, 1, "", "']' is missing", ""},
      {std::string("\x7F"
                   "ELF\0\0",
                   6),
       1, 1, "", "byte 0x7F is no text", ""},
      {std::string(300'000, ' '), 0, 0, "", "longer than 256 KiB", ""},
  });
}

TEST(Diagnostics, ReportsAllErrorsOfAFileInItsOrder) {
  const auto errors = errors_of(
      "trace: {fiel: t.json}\n"
      "layout: {tile: 0, strip: 5, grid: [1]}\n"
      "problem:\n"
      "  factorization: lu\n"
      "  matrix: {generate: spd, n: -1, range: 2}\n"
      "  output: {solution: x.txt}\n"
      "layout: {}\n");
  std::vector<std::string> lines;
  for (const Diagnostic& error : errors) lines.push_back(error.to_string());
  const std::vector<std::string> expected{
      "p.yaml:1:9: trace.fiel: unknown key; expected one of file; did you mean 'file'?",
      "p.yaml:2:16: layout.tile: expected auto | integer >= 1; found 0",
      "p.yaml:2:35: layout.grid: expected auto | [rows, columns]; found a list of 1",
      "p.yaml:4:18: problem.factorization: expected cholesky | qr; found 'lu'",
      "p.yaml:5:30: problem.matrix.n: expected integer >= 0; found -1",
      "p.yaml:5:34: problem.matrix.range: does not apply to generate: spd; it goes with kriging",
      "p.yaml:6:22: problem.output.solution: expected null | path ending in .npy; found 'x.txt'",
      "p.yaml:7:1: layout: key given twice; the first is at p.yaml:2:1; keep one",
  };
  EXPECT_EQ(lines, expected);
}

TEST(Diagnostics, TheExceptionsTextHasOneLineForEachError) {
  try {
    static_cast<void>(Config::from_text("a: 1\nlayout: {tile: 0}\n", "p.yaml"));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "p.yaml:1:1: a: unknown key; expected one of problem, layout, runtime, machine, "
                 "logging, trace\n"
                 "p.yaml:2:16: layout.tile: expected auto | integer >= 1; found 0");
    EXPECT_EQ(exit_status(error.code()), 2);
  }
}

TEST(Diagnostics, AnyMutationOfAValidFileIsLoadedOrRefusedWithConfigError) {
  const std::string valid =
      "problem:\n  matrix: {generate: spd, n: 64, condition: 1e3}\n  rhs: {generate: random}\n"
      "layout: {grid: [1, 2], tile: 32, strip: 8, small: 4}\nruntime: {devices: {memory: 1MiB}}\n";
  for (unsigned seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::string text = valid;
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        default:
          text.insert(at, valid.substr(random() % valid.size(), random() % 8));
      }
    }
    try {
      static_cast<void>(Config::from_text(text, "mutated"));
    } catch (const ConfigError& error) {
      EXPECT_FALSE(error.diagnostics().empty());
    }
  }
}

}  // namespace
}  // namespace heddle
