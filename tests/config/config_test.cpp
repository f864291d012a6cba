#include "config/config.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <unistd.h>

#include "config/config_error.hpp"
#include "config/effective.hpp"
#include "config/problem.hpp"

namespace heddle {
namespace {

using namespace config;
namespace fs = std::filesystem;

const char* const full_text = R"(
problem:
  factorization: qr
  matrix: {generate: random, n: 30, m: 40, seed: 9}
  rhs: {generate: random, columns: 3, seed: 4}
  output: {solution: out/x.npy, factor: 'f.npy'}
  verify: false
layout: {grid: [2, 3], tile: 64, strip: 32, small: 16, inner: 8, virtual: 4}
runtime:
  cpu_workers: 5
  devices: {backend: emulated, per_node: 2, memory: 1.5GiB}
  window: 1000
  placement: dynamic
  messages: {path: ring, explain: true}
  collectives: {order: places, algorithm: chain, copies: static, fragment: 64KiB, explain: true}
  watchdog_seconds: 2.5
  wait: park
machine: m.json
logging: {level: debug, file: run.log}
trace: {file: t.json}
)";

class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(fs::temp_directory_path() / ("heddle_config_test." + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

std::string refusal_of_file(const std::string& path) {
  try {
    static_cast<void>(Config::from_file(path));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Config, ReadsEveryKey) {
  const Config config = Config::from_text(full_text, "full");
  const Problem& problem = config.require_problem();
  EXPECT_EQ(problem.factorization, Factorization::qr);
  EXPECT_EQ(problem.matrix.generate, MatrixKind::random);
  EXPECT_EQ(problem.matrix.n, 30);
  EXPECT_EQ(problem.matrix.rows(), 40);
  EXPECT_EQ(problem.matrix.seed, 9U);
  ASSERT_TRUE(problem.rhs.has_value());
  EXPECT_EQ(problem.rhs->generate, RhsKind::random);
  EXPECT_EQ(problem.rhs->columns, 3);
  EXPECT_EQ(problem.rhs->seed, 4U);
  EXPECT_EQ(problem.output.solution, "out/x.npy");
  EXPECT_EQ(problem.output.factor, "f.npy");
  EXPECT_EQ(problem.verify, Verify::none);
  EXPECT_EQ(config.layout.grid, (Grid{2, 3}));
  EXPECT_EQ(config.layout.tile, 64);
  EXPECT_EQ(config.layout.strip, 32);
  EXPECT_EQ(config.layout.small, 16);
  EXPECT_EQ(config.layout.inner, 8);
  EXPECT_EQ(config.layout.virtual_tiles, 4);
  EXPECT_EQ(config.runtime.cpu_workers, 5);
  EXPECT_EQ(config.runtime.devices.backend, DeviceBackend::emulated);
  EXPECT_EQ(config.runtime.devices.per_node, 2);
  EXPECT_EQ(config.runtime.devices.memory, 3ULL << 29U);
  EXPECT_EQ(config.runtime.window, 1000);
  EXPECT_EQ(config.runtime.placement, Placement::dynamic);
  EXPECT_EQ(config.runtime.messages.path, MessagePath::ring);
  EXPECT_TRUE(config.runtime.messages.explain);
  EXPECT_EQ(config.runtime.collectives.order, ReductionOrder::places);
  EXPECT_EQ(config.runtime.collectives.algorithm, CollectiveAlgorithm::chain);
  EXPECT_EQ(config.runtime.collectives.copies, BufferCopies::by_table);
  EXPECT_EQ(config.runtime.collectives.fragment, 65536U);
  EXPECT_TRUE(config.runtime.collectives.explain);
  EXPECT_EQ(config.runtime.watchdog_seconds, 2.5);
  EXPECT_EQ(config.runtime.wait, Wait::park);
  EXPECT_EQ(config.machine, "m.json");
  EXPECT_EQ(config.logging.level, LogLevel::debug);
  EXPECT_EQ(config.logging.file, "run.log");
  EXPECT_EQ(config.trace.file, "t.json");
}

/// The matrix of a QR problem from its keys.
Matrix matrix_of(const std::string& keys) {
  return Config::from_text("problem: {factorization: qr, matrix: {" + keys + "}}", "t")
      .problem->matrix;
}

TEST(Config, ReadsTheKeysOfMatricesForQr) {
  const Matrix conditioned =
      matrix_of("generate: conditioned, n: 6, m: 9, condition: 1e7, seed: 3");
  EXPECT_EQ(conditioned.generate, MatrixKind::conditioned);
  EXPECT_EQ(conditioned.condition, 1e7);
  EXPECT_EQ(conditioned.seed, 3U);
  const Matrix graded = matrix_of("generate: graded, n: 6, condition: 1e9, seed: 4");
  EXPECT_EQ(graded.generate, MatrixKind::graded);
  EXPECT_EQ(graded.condition, 1e9);
  const Matrix dependent =
      matrix_of("generate: dependent, n: 6, m: 9, rank: 4, distance: 1e-6, seed: 5");
  EXPECT_EQ(dependent.generate, MatrixKind::dependent);
  EXPECT_EQ(dependent.rank, 4);
  EXPECT_EQ(dependent.distance, 1e-6);
  const Matrix polynomial = matrix_of("generate: polynomial, n: 6, m: 9");
  EXPECT_EQ(polynomial.generate, MatrixKind::polynomial);
  EXPECT_EQ(polynomial.rows(), 9);
}

TEST(Config, ADependentMatrixHasOneDependentColumnUnlessTold) {
  EXPECT_EQ(matrix_of("generate: dependent, n: 6").rank, 5);
  EXPECT_EQ(matrix_of("generate: dependent, n: 6").distance, 1e-10);
  EXPECT_EQ(matrix_of("generate: dependent, n: 6, rank: 0, distance: 0").rank, 0);
  EXPECT_EQ(matrix_of("generate: dependent, n: 6, rank: 6").rank, 6);
  EXPECT_EQ(matrix_of("generate: dependent, n: 0").rank, 0);
}

TEST(Config, TakesTrueAndFalseForTheWordsOfVerify) {
  const auto verify_of = [](const std::string& word) {
    return Config::from_text("problem: {matrix: {file: k.npy}, verify: " + word + "}", "t")
        .problem->verify;
  };
  EXPECT_EQ(verify_of("auto"), Verify::automatic);
  EXPECT_EQ(verify_of("true"), Verify::automatic);
  EXPECT_EQ(verify_of("full"), Verify::full);
  EXPECT_EQ(verify_of("none"), Verify::none);
  EXPECT_EQ(verify_of("false"), Verify::none);
}

TEST(Config, LeftOutKeysHaveTheirDefaults) {
  const Config config = Config::from_text("problem: {matrix: {file: k.npy}}", "t");
  EXPECT_EQ(config.problem->factorization, Factorization::cholesky);
  EXPECT_EQ(config.problem->matrix.file, "k.npy");
  EXPECT_FALSE(config.problem->rhs.has_value());
  EXPECT_FALSE(config.problem->output.solution.has_value());
  EXPECT_EQ(config.problem->verify, Verify::automatic);
  EXPECT_FALSE(config.layout.grid.has_value());
  EXPECT_FALSE(config.layout.tile.has_value());
  EXPECT_FALSE(config.runtime.devices.backend.has_value());
  EXPECT_EQ(config.runtime.placement, Placement::fixed);
  EXPECT_EQ(config.runtime.messages.path, std::nullopt);
  EXPECT_FALSE(config.runtime.messages.explain);
  EXPECT_EQ(config.runtime.collectives.order, ReductionOrder::ranks);
  EXPECT_EQ(config.runtime.collectives.algorithm, std::nullopt);
  EXPECT_EQ(config.runtime.collectives.copies, std::nullopt);
  EXPECT_EQ(config.runtime.collectives.fragment, std::nullopt);
  EXPECT_FALSE(config.runtime.collectives.explain);
  EXPECT_EQ(config.runtime.watchdog_seconds, 60);
  EXPECT_EQ(config.runtime.wait, Wait::adaptive);
  EXPECT_FALSE(config.machine.has_value());
  EXPECT_EQ(config.logging.level, LogLevel::info);
}

TEST(Config, AnEmptyMappingAndEmptyGroupsAreAllDefaults) {
  const auto defaults = to_json(Config{});
  EXPECT_EQ(to_json(Config::from_text("{}", "t")), defaults);
  EXPECT_EQ(to_json(Config::from_text("problem:\nlayout:\nruntime: {devices: }\n", "t")), defaults);
}

TEST(Config, AcceptsTheSmallestAndOddestOfValidValues) {
  EXPECT_EQ(Config::from_text("problem: {matrix: {generate: spd, n: 0}}", "t").problem->matrix.n,
            0);
  const Config config = Config::from_text(
      "layout: {tile: 8, strip: 0, small: 3}\nruntime: {window: 1, devices: {memory: 512 MiB, "
      "backend: none, per_node: 0}}\nmachine: \"auto\"\ntrace: {file: ~}\n"
      "logging: {file: \"5\"}\n",
      "t");
  EXPECT_EQ(config.layout.strip, 0);
  EXPECT_EQ(config.runtime.devices.memory, 512U << 20U);
  EXPECT_FALSE(config.machine.has_value());
  EXPECT_EQ(config.logging.file, "5");
}

TEST(Config, EffectiveValuesAreAFileThatLoadsToTheSame) {
  for (const char* text :
       {"{}", full_text, "problem: {matrix: {file: k.npy}, rhs: {file: b.mtx}}",
        "problem: {matrix: {generate: kriging, n: 12, range: 0.123456789012345678}}",
        "problem: {matrix: {generate: lehmer, n: 7}, rhs: {generate: random}}",
        "problem: {factorization: qr, matrix: {generate: dependent, n: 7, m: 9}}",
        "problem: {factorization: qr, matrix: {generate: graded, n: 7, condition: 1e9}}"}) {
    const Config config = Config::from_text(text, "t");
    const auto effective = to_json(config);
    const Config again = Config::from_text(effective.dump(), "again");
    EXPECT_EQ(to_json(again), effective) << text;
    EXPECT_EQ(fingerprint(again), fingerprint(config)) << text;
  }
}

TEST(Config, EffectiveValuesNameOnlyWhatApplies) {
  const auto json = to_json(Config::from_text("problem: {matrix: {generate: lehmer, n: 7}}", "t"));
  EXPECT_EQ(json["problem"]["matrix"],
            (nlohmann::json{{"generate", "lehmer"}, {"n", 7}, {"m", 7}}));
  const auto dependent = to_json(Config::from_text(
      "problem: {factorization: qr, matrix: {generate: dependent, n: 7, m: 9}}", "t"));
  EXPECT_EQ(dependent["problem"]["matrix"], (nlohmann::json{{"generate", "dependent"},
                                                            {"n", 7},
                                                            {"m", 9},
                                                            {"seed", 1},
                                                            {"rank", 6},
                                                            {"distance", 1e-10}}));
  EXPECT_TRUE(json["problem"]["rhs"].is_null());
  EXPECT_EQ(json["layout"]["grid"], "auto");
}

TEST(Config, FingerprintChangesWithEveryEffectiveValueAndWithNothingElse) {
  const auto of = [](const std::string& text, const std::string& name) {
    return fingerprint(Config::from_text(text, name));
  };
  EXPECT_EQ(of("layout: {tile: 64}", "a"),
            of("# comment\n{layout: {tile: +64, strip: auto}}", "b"));
  EXPECT_NE(of("layout: {tile: 64}", "a"), of("layout: {tile: 65}", "a"));
  EXPECT_NE(of("layout: {tile: 64}", "a"), of("layout: {small: 64}", "a"));
  EXPECT_NE(of("{}", "a"), of("trace: {file: t.json}", "a"));
  const std::string dependent = "problem: {factorization: qr, matrix: {generate: dependent, n: 7";
  EXPECT_EQ(of(dependent + "}}", "a"), of(dependent + ", rank: 6}}", "b"));
  EXPECT_NE(of(dependent + "}}", "a"), of(dependent + ", rank: 5}}", "a"));
  EXPECT_NE(of(dependent + "}}", "a"), of(dependent + ", distance: 1e-9}}", "a"));
}

TEST(Config, ReadsAFileAndNamesItInErrors) {
  const TemporaryFolder folder;
  const std::string good = folder.write("good.yaml", "layout: {tile: 96}\n");
  const std::string bad = folder.write("bad.yaml", "layout:\n  tile: x\n");
  EXPECT_EQ(Config::from_file(good).layout.tile, 96);
  EXPECT_EQ(Config::from_file(good).name, good);
  const std::vector<std::string> overrides{"layout.tile=32"};
  EXPECT_EQ(Config::from_file(good, overrides).layout.tile, 32);
  EXPECT_EQ(refusal_of_file(bad),
            bad + ":2:9: layout.tile: expected auto | integer >= 1; found 'x'");
}

TEST(Config, FilesThatAreNoConfigurationAreRefusedByName) {
  const TemporaryFolder folder;
  const std::string missing = folder.path() + "/missing.yaml";
  const std::string empty = folder.write("empty.yaml", "");
  const std::string binary = folder.write("binary.yaml", std::string("\x93NUMPY\x01\x00", 8));
  const std::string huge = folder.write("huge.yaml", std::string(10'000'000, 'a'));
  EXPECT_EQ(refusal_of_file(missing), missing + ": cannot be read: No such file or directory");
  EXPECT_EQ(refusal_of_file(folder.path()),
            folder.path() + ": is a directory; expected a YAML file");
  EXPECT_EQ(refusal_of_file(empty), empty +
                                        ": the file is empty; expected a mapping with problem, "
                                        "layout, runtime, machine, logging, trace");
  EXPECT_EQ(refusal_of_file(binary),
            binary + ":1:1: byte 0x93 is no text; expected a YAML file in UTF-8");
  EXPECT_EQ(refusal_of_file(huge), huge + ": is longer than 256 KiB; this is no configuration");
}

TEST(Config, AFileWithoutAProblemLoadsButCannotBeSolved) {
  const Config config = Config::from_text("layout: {tile: 64}", "node.yaml");
  EXPECT_FALSE(config.problem.has_value());
  try {
    static_cast<void>(config.require_problem());
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.diagnostics().at(0).path, "problem");
    EXPECT_EQ(std::string(error.what()).substr(0, 28), "node.yaml: problem: missing;");
  }
}

TEST(Config, TwoConfigurationsLiveSideBySide) {
  const Config a = Config::from_text("layout: {tile: 1}", "a");
  const Config b = Config::from_text("layout: {tile: 2}", "b");
  EXPECT_EQ(a.layout.tile, 1);
  EXPECT_EQ(b.layout.tile, 2);
}

TEST(Presets, AllLoad) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(HEDDLE_CONFIG_FOLDER "/presets")) {
    SCOPED_TRACE(entry.path());
    const Config config = Config::from_file(entry.path().string());
    EXPECT_EQ(config.problem.has_value(), entry.path().filename() != "node.yaml");
    ++count;
  }
  EXPECT_GE(count, 4U);
}

TEST(Presets, GeneratedListsEveryDefault) {
  const Config listed = Config::from_file(HEDDLE_CONFIG_FOLDER "/presets/generated.yaml");
  const Config short_form = Config::from_text(
      "problem: {matrix: {generate: spd, n: 4096}, rhs: {generate: random}}", "t");
  EXPECT_EQ(to_json(listed), to_json(short_form));
}

}  // namespace
}  // namespace heddle
