#include "apps/launcher.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <mpi.h>
#include <nlohmann/json.hpp>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "apps/start_watch.hpp"
#include "node-runtime/transport/communicator.hpp"

namespace heddle {
namespace {

std::optional<std::int32_t> number(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < 0 || value > 1'000'000) return std::nullopt;
  return static_cast<std::int32_t>(value);
}

/// Reads name and parent of a process; false if it is not visible.
bool look_up(pid_t process, std::string& name, pid_t& parent) {
  std::ifstream file(fmt::format("/proc/{}/status", process));
  std::string word;
  parent = 0;
  while (file >> word) {
    if (word == "Name:") file >> name;
    if (word == "PPid:") {
      file >> parent;
      return true;
    }
  }
  return false;
}

/// PMI variables are set, but for another process or by another MPI.
[[noreturn]] void refuse_pmi(const std::string& why) {
  const auto value = [](const char* variable) {
    const char* text = std::getenv(variable);
    return text == nullptr ? "not set" : text;
  };
  throw Error(ErrorCode::usage,
              fmt::format("{}, but PMI_RANK is {} and PMI_SIZE is {}: they belong to another MPI's "
                          "launcher or to another process. Start heddle by mpiexec.mpich, or alone "
                          "without them: env -u PMI_RANK -u PMI_SIZE -u PMI_FD heddle ...",
                          why, value("PMI_RANK"), value("PMI_SIZE")));
}

/// MPI reaches its launcher through an inherited socket or a port.
void check_connection() {
  if (std::getenv("PMI_FD") == nullptr) {
    for (const char* port : {"PMI_PORT", "PMI_CONTROL_PORT"}) {
      if (std::getenv(port) != nullptr) return;
    }
    refuse_pmi("neither PMI_FD nor PMI_PORT says how to reach a launcher");
  }
  const auto file = number("PMI_FD");
  struct stat status {};
  if (file && ::fstat(*file, &status) == 0 && S_ISSOCK(status.st_mode)) return;
  refuse_pmi(fmt::format(
      "the launcher's connection, file {} (PMI_FD), is not open here, as the program that was "
      "launched has not passed it on to heddle (Python's subprocess: close_fds=False)",
      std::getenv("PMI_FD")));
}

/// Launchers with their own variables, which our MPI does not understand.
void refuse_other_launchers() {
  const auto refuse = [](const std::string& who, const char* cure) {
    throw Error(ErrorCode::usage,
                fmt::format("started by {}, so the nodes would not find each other; use {}: "
                            "mpiexec.mpich -n P heddle solve FILE.yaml",
                            who, cure));
  };
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK"}) {
    if (std::getenv(variable) == nullptr) continue;
    refuse(fmt::format("another MPI's launcher ({} is set, PMI_RANK is not)", variable), "MPICH's");
  }
  // A batch script has SLURM_PROCID and SLURM_NTASKS too, but no step.
  const bool is_step =
      std::getenv("SLURM_PROCID") != nullptr && (number("SLURM_STEP_ID") || number("SLURM_STEPID"));
  const auto tasks = number("SLURM_STEP_NUM_TASKS");
  if (is_step || tasks) {
    const std::int32_t count = tasks ? *tasks : number("SLURM_NTASKS").value_or(1);
    if (count > 1) {
      refuse(fmt::format("srun as one of {} processes, without PMI (SLURM_PROCID is set, PMI_RANK "
                         "is not)",
                         count),
             "srun --mpi=pmi2, or MPICH's launcher in the job's script");
    }
  }
  for (const char* variable : {"FLUX_JOB_SIZE", "JSM_NAMESPACE_SIZE", "MV2_COMM_WORLD_SIZE"}) {
    const auto count = number(variable);
    if (!count || *count <= 1) continue;
    refuse(fmt::format("another launcher as one of {} processes ({} is set, PMI_RANK is not)",
                       *count, variable),
           "MPICH's");
  }
}

/// Time for all processes of a run to start. HEDDLE_START_SECONDS extends it; the configuration is
/// not read yet.
double start_seconds_max(const Launcher& launcher) {
  constexpr double seconds = 25;
  constexpr double seconds_per_process = 0.02;
  if (const auto wanted = number("HEDDLE_START_SECONDS"); wanted && *wanted > 0) return *wanted;
  return seconds + seconds_per_process * launcher.size;
}

}  // namespace

bool stderr_is_watched(const Launcher& launcher) {
  if (::isatty(STDERR_FILENO) == 1) return true;
  if (!launcher.launched) return false;
  constexpr int generations_max =
      4;  // shells may be between the launcher, its proxy and this process
  pid_t process = ::getppid();
  std::string name;
  pid_t parent = 0;
  for (int g = 0; g < generations_max && look_up(process, name, parent); ++g, process = parent) {
    if (!name.starts_with("mpiexec") && !name.starts_with("mpirun")) continue;
    std::error_code unreadable;
    const std::string target =
        std::filesystem::read_symlink(fmt::format("/proc/{}/fd/2", process), unreadable).string();
    return target.starts_with("/dev/pts/") || target.starts_with("/dev/tty");
  }
  return false;
}

Launcher Launcher::detect() {
  if (std::getenv("PMI_RANK") == nullptr && std::getenv("PMI_SIZE") == nullptr) {
    refuse_other_launchers();
    return {};
  }
  const auto rank = number("PMI_RANK");
  const auto size = number("PMI_SIZE");
  if (!rank || !size || *rank >= *size) {
    refuse_pmi("PMI_RANK and PMI_SIZE do not say which of how many processes this is");
  }
  check_connection();
  const std::int32_t local_size = number("MPI_LOCALNRANKS").value_or(1);
  return {*rank, *size, true, number("MPI_LOCALRANKID").value_or(0), std::max(1, local_size)};
}

MpiSession::MpiSession(const Launcher& launcher,
                       const std::function<void(double seconds)>& give_up) {
  if (!launcher.launched) return;
  int provided = MPI_THREAD_SINGLE;
  {
    const double seconds = start_seconds_max(launcher);
    // Node 0 reports the error, unless it is the missing one.
    const double patience = launcher.rank == 0 ? seconds : seconds + 1;
    const StartWatch watch(std::chrono::milliseconds(static_cast<std::int64_t>(patience * 1000)),
                           [&give_up, seconds] { give_up(seconds); });
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided),
              "MPI_Init_thread");
  }
  active_ = true;
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == launcher.rank && size == launcher.size) return;
  MPI_Finalize();
  active_ = false;
  refuse_pmi(fmt::format("MPI finds this to be process {} of {}", rank, size));
}

MpiSession::~MpiSession() {
  if (active_) MPI_Finalize();
}

std::vector<std::string> MpiSession::all_texts(const std::string& mine) const {
  if (!active_) return {mine};
  const Communicator all(MPI_COMM_WORLD);
  const nlohmann::json texts(all.gather(mine));
  return nlohmann::json::parse(all.broadcast(texts.dump())).get<std::vector<std::string>>();
}

void MpiSession::throw_together(const std::optional<Error>& mine) const {
  if (active_) {
    Communicator(MPI_COMM_WORLD).throw_together(mine);
  } else if (mine) {
    throw *mine;
  }
}

}  // namespace heddle
