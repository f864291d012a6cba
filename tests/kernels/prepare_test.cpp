#include "node-runtime/machine/prepare.hpp"

#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "node-runtime/machine/file_lock.hpp"
#include "tests/kernels/machine_fixture.hpp"
#include "tests/kernels/scratch_folder.hpp"

namespace heddle::test {
namespace {

/// A cache folder of its own, and probes that count instead of measuring.
class PrepareMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
    ::unsetenv("OPENBLAS_CORETYPE");
    probes_.host = [this] { return host_; };
    probes_.identify = [this] { return openblas_; };
    probes_.measure = [this] {
      ++measurements_;
      return sample_choice();
    };
  }

  MachineProfile prepare() { return prepare_machine(std::nullopt, probes_); }
  [[nodiscard]] std::filesystem::path file() const { return *default_machine_file(host_); }

  [[nodiscard]] std::ptrdiff_t files_in_cache() const {
    return std::distance(std::filesystem::directory_iterator(file().parent_path()), {});
  }

  static bool contains(const std::string& text, const std::string& piece) {
    return text.find(piece) != std::string::npos;
  }

  ScratchFolder folder_;
  Host host_{"loom", "Loom 9000", 2};
  OpenBlasIdentity openblas_{"0.3.21", "OpenBLAS 0.3.21 Prescott"};
  MachineProbes probes_;
  int measurements_ = 0;
};

TEST_F(PrepareMachine, MeasuresTheFirstTimeAndReadsAfterwards) {
  const MachineProfile first = prepare();
  EXPECT_EQ(first.source, ProfileSource::measured);
  EXPECT_TRUE(first.warnings.empty());
  EXPECT_EQ(first.blas.core_type, "SANDYBRIDGE");
  EXPECT_EQ(first.blas.tile_kernels, "openblas");
  EXPECT_TRUE(contains(first.explanation,
                       "OpenBLAS 0.3.21 kernels SANDYBRIDGE (trsm 44.6 against 27.7 GFLOP/s with "
                       "the library's own choice PRESCOTT)"))
      << first.explanation;

  const MachineProfile second = prepare();
  EXPECT_EQ(second.source, ProfileSource::file);
  EXPECT_TRUE(second.warnings.empty());
  EXPECT_EQ(second.blas.core_type, "SANDYBRIDGE");
  EXPECT_EQ(second.file, file());
  EXPECT_EQ(measurements_, 1);
  EXPECT_EQ(files_in_cache(), 1);
}

TEST_F(PrepareMachine, ReplacesACorruptFileAndSaysSo) {
  std::filesystem::create_directories(file().parent_path());
  std::ofstream(file()) << "heddle_machine: [";

  const MachineProfile profile = prepare();

  EXPECT_EQ(profile.source, ProfileSource::measured);
  ASSERT_EQ(profile.warnings.size(), 1U);
  EXPECT_TRUE(contains(profile.warnings[0], file().string())) << profile.warnings[0];
  EXPECT_EQ(prepare().source, ProfileSource::file);
  EXPECT_EQ(files_in_cache(), 1);
}

TEST_F(PrepareMachine, MeasuresAgainWhenTheFileIsOfAnotherMachineOrLibrary) {
  const auto change_and_expect = [&](const char* what,
                                     const std::function<void(MachineFile&)>& change) {
    static_cast<void>(prepare());
    MachineFile contents = read_machine_file(file());
    change(contents);
    write_machine_file(file(), contents);
    const MachineProfile profile = prepare();
    EXPECT_EQ(profile.source, ProfileSource::measured) << what;
    ASSERT_EQ(profile.warnings.size(), 1U) << what;
    EXPECT_TRUE(contains(profile.warnings[0], what)) << profile.warnings[0];
    EXPECT_EQ(prepare().source, ProfileSource::file) << what;
  };
  change_and_expect("processor", [](MachineFile& m) { m.cpu_model = "Loom 8000"; });
  change_and_expect("host", [](MachineFile& m) { m.host = "distaff"; });
  change_and_expect("0.3.20", [](MachineFile& m) { m.openblas.version = "0.3.20"; });
  change_and_expect("OpenBLAS", [](MachineFile& m) { m.openblas.configuration = "OpenMP"; });
  change_and_expect("instructions", [](MachineFile& m) {
    m.kernels.sets.push_back({"A64FX", false, {1, 1, 1, 1}});
    m.kernels.core_type = "A64FX";
  });
}

TEST_F(PrepareMachine, WorksWithoutAPlaceForTheFileAndSaysSo) {
  const auto blocker = folder_.path() / "file";
  std::ofstream(blocker) << "not a folder";
  ::setenv("XDG_CACHE_HOME", blocker.c_str(), 1);

  const MachineProfile profile = prepare();

  EXPECT_EQ(profile.source, ProfileSource::measured);
  EXPECT_EQ(profile.blas.core_type, "SANDYBRIDGE");
  ASSERT_EQ(profile.warnings.size(), 1U);
  EXPECT_TRUE(contains(profile.warnings[0], blocker.string())) << profile.warnings[0];
  EXPECT_TRUE(profile.file.empty());
}

TEST_F(PrepareMachine, WorksInAFolderThatCannotBeWrittenAndSaysSo) {
  // The process file system refuses new files to everybody, root included.
  ::setenv("XDG_CACHE_HOME", "/proc/self", 1);
  const MachineProfile profile = prepare();
  EXPECT_EQ(profile.source, ProfileSource::measured);
  ASSERT_EQ(profile.warnings.size(), 1U);
  EXPECT_TRUE(contains(profile.warnings[0], "/proc/self/heddle")) << profile.warnings[0];
}

TEST_F(PrepareMachine, WorksWithoutAHomeAndSaysSo) {
  const char* home = std::getenv("HOME");
  const std::string old = home != nullptr ? home : "";
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");
  const MachineProfile profile = prepare();
  if (home != nullptr) ::setenv("HOME", old.c_str(), 1);
  EXPECT_EQ(profile.source, ProfileSource::measured);
  ASSERT_EQ(profile.warnings.size(), 1U);
  EXPECT_TRUE(contains(profile.warnings[0], "XDG_CACHE_HOME")) << profile.warnings[0];
}

TEST_F(PrepareMachine, ReportsAFailedMeasurementAndGoesOnWithTheLibrarysChoice) {
  probes_.measure = []() -> KernelChoice {
    throw Error(ErrorCode::internal, "no process to measure kernels in");
  };
  const MachineProfile profile = prepare();
  EXPECT_EQ(profile.source, ProfileSource::unmeasured);
  EXPECT_TRUE(profile.blas.core_type.empty());
  ASSERT_EQ(profile.warnings.size(), 1U);
  EXPECT_TRUE(contains(profile.warnings[0], "no process")) << profile.warnings[0];
  EXPECT_EQ(files_in_cache(), 0);
}

TEST_F(PrepareMachine, RefusesAFileThatTheUserNamedWhenItIsMissingOrCorrupt) {
  const auto named = folder_.path() / "mine.yaml";
  EXPECT_THROW(static_cast<void>(prepare_machine(named, probes_)), Error);
  std::ofstream(named) << "{}";
  EXPECT_THROW(static_cast<void>(prepare_machine(named, probes_)), Error);
  EXPECT_EQ(measurements_, 0);
}

TEST_F(PrepareMachine, UsesTheFileThatTheUserNamedOnAnyHostWithTheSameProcessor) {
  const auto named = folder_.path() / "mine.yaml";
  MachineFile contents{"elsewhere", host_.cpu_model, 64, openblas_, sample_choice(), {}};
  contents.tuned.tile = 448;
  write_machine_file(named, contents);
  const MachineProfile profile = prepare_machine(named, probes_);
  EXPECT_EQ(profile.source, ProfileSource::file);
  EXPECT_TRUE(profile.warnings.empty());
  EXPECT_EQ(profile.tuning.fixed.tile, 448);
}

TEST_F(PrepareMachine, NeverWritesTheFileThatTheUserNamed) {
  const auto named = folder_.path() / "mine.yaml";
  const MachineFile contents{"loom", "Loom 7", 2, openblas_, sample_choice(), {}};
  write_machine_file(named, contents);
  const MachineProfile profile = prepare_machine(named, probes_);
  EXPECT_EQ(profile.source, ProfileSource::measured);
  ASSERT_EQ(profile.warnings.size(), 1U);
  EXPECT_TRUE(contains(profile.warnings[0], "Loom 7")) << profile.warnings[0];
  EXPECT_EQ(read_machine_file(named), contents);
}

TEST_F(PrepareMachine, LetsTheEnvironmentWin) {
  ::setenv("OPENBLAS_CORETYPE", "NEHALEM", 1);
  const MachineProfile profile = prepare();
  ::unsetenv("OPENBLAS_CORETYPE");
  EXPECT_EQ(profile.source, ProfileSource::environment);
  EXPECT_TRUE(profile.blas.core_type.empty());
  EXPECT_TRUE(contains(profile.explanation, "NEHALEM (OPENBLAS_CORETYPE in the environment)"))
      << profile.explanation;
  EXPECT_EQ(measurements_, 0);
}

/// Starts `count` processes that prepare at once; how many of them measured, or -1 for a failure.
int measured_by(int count, const MachineProbes& probes) {
  std::array<int, 2> gate{};
  EXPECT_EQ(::pipe(gate.data()), 0);
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(gate[1]);
      char nothing = 0;
      // Returns for all at once when the parent closes its end.
      static_cast<void>(!::read(gate[0], &nothing, 1));
      const MachineProfile profile = prepare_machine(std::nullopt, probes);
      const bool good = profile.warnings.empty() && profile.kernels.has_value();
      ::_exit(!good ? 2 : profile.source == ProfileSource::measured ? 1 : 0);
    }
    children.push_back(child);
  }
  ::close(gate[0]);
  ::close(gate[1]);
  int measured = 0;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) return -1;
    measured += WEXITSTATUS(status);
  }
  return measured;
}

TEST_F(PrepareMachine, LetsOneOfSeveralProcessesMeasureForAll) {
  for (int repeat = 0; repeat < 10; ++repeat) {
    EXPECT_EQ(measured_by(6, probes_), 1);
    EXPECT_EQ(files_in_cache(), 1);
    std::filesystem::remove(file());
  }
}

TEST_F(PrepareMachine, LetsOneOfTwoProcessesMeasureForRealAndBothAgree) {
  EXPECT_EQ(measured_by(2, MachineProbes{}), 1);
  const MachineProfile profile = prepare_machine();
  EXPECT_EQ(profile.source, ProfileSource::file);
  RecordProperty("explanation", profile.explanation);
}

TEST_F(PrepareMachine, LoadsWhatItChose) {
  const MachineProfile profile = prepare_machine();
  ASSERT_EQ(profile.source, ProfileSource::measured);
  const pid_t child = ::fork();
  if (child == 0) {
    const Blas& loaded = load_blas(profile.blas);
    const MachineProfile later = prepare_machine();
    const bool good = loaded.core_name == profile.blas.core_type &&
                      loaded.tile_kernels == profile.blas.tile_kernels &&
                      later.source == ProfileSource::process &&
                      later.blas.core_type == loaded.core_name;
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(FileLock, IsTakenByOneAtATimeAndFreedByDeath) {
  const ScratchFolder folder;
  const auto path = folder.path() / "x.lock";
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = FileLock::acquire(path, std::chrono::seconds(5));
    static_cast<void>(!::write(ready[1], "x", 1));
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_FALSE(FileLock::acquire(path, std::chrono::milliseconds(30)).has_value());
  ::kill(child, SIGKILL);
  EXPECT_TRUE(FileLock::acquire(path, std::chrono::seconds(10)).has_value());
  EXPECT_FALSE(std::filesystem::exists(path));
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace heddle::test
