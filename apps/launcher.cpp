#include "apps/launcher.hpp"

#include <cstdlib>
#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <mpi.h>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <unistd.h>

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

/// Name and parent of a process; false when it cannot be seen.
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

}  // namespace

bool stderr_is_watched(const Launcher& launcher) {
  if (::isatty(STDERR_FILENO) == 1) return true;
  if (!launcher.launched) return false;
  constexpr int generations_max = 4;  // shells may stand between the launcher, its proxy and this
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
  const auto rank = number("PMI_RANK");
  const auto size = number("PMI_SIZE");
  if (rank && size && *rank < *size) return {*rank, *size, true};
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK"}) {
    if (std::getenv(variable) == nullptr) continue;
    throw Error(
        ErrorCode::usage,
        fmt::format("started by another MPI's launcher ({} is set, PMI_RANK is not), so the "
                    "nodes would not find each other; use MPICH's: mpiexec.mpich -n P "
                    "heddle solve FILE.yaml",
                    variable));
  }
  return {};
}

MpiSession::MpiSession(const Launcher& launcher) {
  if (!launcher.launched) return;
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  active_ = true;
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
