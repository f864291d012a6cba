#include "node-runtime/machine/machine_file.hpp"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>

#include "base/error.hpp"
#include "tests/kernels/machine_fixture.hpp"
#include "tests/kernels/scratch_folder.hpp"

namespace heddle::test {
namespace {

std::string contents_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The message with which reading `text` as a machine file fails; empty if it does not.
std::string refusal(const std::string& text) {
  const ScratchFolder folder;
  const auto path = folder.path() / "m.yaml";
  std::ofstream(path) << text;
  try {
    static_cast<void>(read_machine_file(path));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
    return error.what();
  }
  return "";
}

/// A sound file with one piece of its text exchanged.
std::string damaged(const std::string& piece, const std::string& by) {
  const ScratchFolder folder;
  const auto path = folder.path() / "m.yaml";
  MachineFile machine = sample_machine();
  machine.measured = sample_measurements();
  write_machine_file(path, machine);
  std::string text = contents_of(path);
  const auto at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece << " in\n" << text;
  return text.replace(at, piece.size(), by);
}

TEST(MachineFile, ReadsBackWhatItWrote) {
  const ScratchFolder folder;
  const auto path = folder.path() / "m.yaml";
  MachineFile machine = sample_machine();
  write_machine_file(path, machine);
  EXPECT_EQ(read_machine_file(path), machine);

  machine.tuned = {
      .tile = 320, .strip = 0, .small = 64, .inner = {}, .virtual_tiles = 3, .streams = 4};
  machine.measured = sample_measurements();
  machine.kernels.sets[0].rates[0] = 1.0 / 3;
  write_machine_file(path, machine);
  EXPECT_EQ(read_machine_file(path), machine);
  // Nothing else is left beside it.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(MachineFile, IsRefusedWithPlaceAndReasonWhenDamaged) {
  struct Case {
    std::string piece;
    std::string by;
    std::string expected;
  };
  for (const Case& c :
       {Case{"heddle_machine: 2", "heddle_machine: 1", "it has format 1, this heddle reads 2"},
        Case{"cores: 2", "cores: two", "'cores' must be a number"},
        Case{"cores: 2", "cores: 0", "'cores' must be at least 1"},
        Case{"cores: 2", "colours: 2", "no key 'colours'"},
        Case{"host: \"12\"\n", "", "the key 'host' is missing"},
        Case{"gemm: 50.5", "gemm: .nan", "'gemm' must be positive"},
        Case{"gemm: 50.5", "gemm: -1", "'gemm' must be positive"},
        Case{"core_type: \"SANDYBRIDGE\"", "core_type: \"ZEN\"", "not in the list"},
        Case{"own: false", "own: perhaps", "'own' must be true or false"},
        Case{"openblas:", "openblas: 3\ntuned:", "'openblas' must be a map"},
        Case{"cores: 2", "cores: 2\ncores: 3", "has the key 'cores' twice; the first is in line 5"},
        Case{"kernels:", "tuned: {tile: -4}\nkernels:", "'tile' must be at least 1"},
        Case{"kernels:", "tuned: {streams: 17}\nkernels:", "'streams' must be at most 16"},
        Case{"kernels:", "tuned: {tyle: 4}\nkernels:", "no key 'tyle'"}}) {
    const std::string message = refusal(damaged(c.piece, c.by));
    EXPECT_NE(message.find(c.expected), std::string::npos) << c.by << ": '" << message << "'";
  }
}

TEST(MachineFile, IsRefusedWithPlaceAndReasonWhenItsMeasurementsAreDamaged) {
  struct Case {
    std::string piece;
    std::string by;
    std::string expected;
  };
  for (const Case& c :
       {Case{"workers: 2", "workers: 0", "'workers' must be at least 1"},
        Case{"workers: 2", "worker: 2", "'cpu' has no key 'worker'"},
        Case{"kernel: tsmqr", "kernel: tsmrq",
             "no factorization has a kernel 'tsmrq'; expected one of potrf, trsm, syrk, gsmm"},
        Case{"kernel: tsmqr", "kernel: tsmrq", "did you mean 'tsmqr'?"},
        Case{"rows: 320", "rows: many", "'rows' must be a whole number"},
        Case{"us: 655.5", "us: 0", "'us' must be positive"},
        Case{"us: 655.5", "us: fast", "'us' must be a time in microseconds"},
        Case{"inner: 48", "inner: 0", "'inner' must be at least 1"},
        Case{"backend: \"cuda\"", "backend: \"metal\"", "'backend' must be cuda or emulated"},
        Case{"backend: \"cuda\"\n      name: \"Loom GPU\"",
             "backend: \"emulated\"\n      name: \"emulated\"", "'emulated' is there twice"},
        Case{"streams: 3", "streams: 17", "'streams' must be at most 16"},
        Case{"size_min: 3072", "size_min: 1536", "'size_min' must rise"},
        Case{"to_host: 52.5", "to_host: -1", "'to_host' must be positive"},
        Case{"to_host: 52.5", "to_hst: 1", "no key 'to_hst'"},
        Case{"operation: all_reduce", "operation: scan",
             "'operation' must be one of broadcast, reduce, all_reduce"},
        Case{"ranks: 4", "ranks: 1", "'ranks' must be at least 2"},
        Case{"bytes: 8192", "bytes: 0", "'bytes' must be at least 1"},
        Case{"staged: 3", "staged: 4", "'staged' must be less than 'ranks', 4"},
        Case{"staged: 3", "stages: 3", "no key 'stages'"},
        Case{"latency_us: 1.5", "latency: 1.5", "no key 'latency'"}}) {
    const std::string message = refusal(damaged(c.piece, c.by));
    EXPECT_NE(message.find(c.expected), std::string::npos) << c.by << ": '" << message << "'";
    EXPECT_NE(message.find("m.yaml:"), std::string::npos) << "no line: " << message;
  }
}

TEST(MachineFile, HandsItsTuningToOtherNodesAsText) {
  const Tuning tuning{
      {.tile = 320, .strip = 0, .small = {}, .inner = {}, .virtual_tiles = {}, .streams = {}},
      sample_measurements()};
  EXPECT_EQ(tuning_from_text(to_text(tuning)), tuning);
  EXPECT_EQ(tuning_from_text(to_text({})), Tuning{});
  EXPECT_THROW(static_cast<void>(tuning_from_text("[1, 2")), Error);
  EXPECT_THROW(static_cast<void>(tuning_from_text("tuning: {}")), Error);
}

TEST(Measurements, KeepWhatALaterMeasurementLeftOut) {
  const Measurements older = sample_measurements();
  Measurements newer;
  newer.cpu = CpuMeasurement{4, {}, {}};
  newer.devices = {older.devices[0]};
  newer.devices[0].streams = 1;

  const Measurements merged = merge(newer, older);

  EXPECT_EQ(merged.cpu, newer.cpu);
  ASSERT_EQ(merged.devices.size(), 2U);
  EXPECT_EQ(merged.device("cuda", "Loom GPU")->streams, 1);
  EXPECT_NE(merged.device("emulated", "emulated"), nullptr);
  EXPECT_EQ(merged.messages, older.messages);
}

TEST(MachineFile, IsRefusedWhenItIsSomethingElse) {
  EXPECT_NE(refusal("").find("empty"), std::string::npos);
  EXPECT_NE(refusal("# nothing\n").find("must be a map"), std::string::npos);
  EXPECT_NE(refusal("[1, 2").find("no YAML"), std::string::npos);
  EXPECT_NE(refusal(std::string("\x7f"
                                "ELF\0\0\1",
                                7)),
            "");
  EXPECT_NE(refusal("heddle_machine: 2\n").find("missing"), std::string::npos);
  EXPECT_THROW(static_cast<void>(read_machine_file("/nonexistent/m.yaml")), Error);
  const ScratchFolder folder;
  EXPECT_THROW(static_cast<void>(read_machine_file(folder.path())), Error);
}

TEST(MachineFile, NamesTheReasonWhenItCannotBeWrittenAndLeavesNothing) {
  const ScratchFolder folder;
  const auto file = folder.path() / "file";
  std::ofstream(file) << "not a folder";
  try {
    write_machine_file(file / "m.yaml", sample_machine());
    FAIL() << "written below a file";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("is not a folder"), std::string::npos) << error.what();
  }
  // A folder in its place lets the rename fail.
  std::filesystem::create_directory(folder.path() / "taken");
  EXPECT_THROW(write_machine_file(folder.path() / "taken", sample_machine()), Error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
}

TEST(MachineFile, HasAPlaceOfItsOwnForEachHostAndProcessor) {
  ::setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(default_machine_file({"loom", "Weaver(R) X / 5", 4}),
            std::filesystem::path("/cache/heddle/machine-loom-Weaver-R-X-5.yaml"));
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(default_machine_file({"loom", "x", 4}),
            std::filesystem::path("/home/me/.cache/heddle/machine-loom-x.yaml"));
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");
  EXPECT_EQ(default_machine_file({"loom", "x", 4}), std::nullopt);
}

}  // namespace
}  // namespace heddle::test
