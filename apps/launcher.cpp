#include "apps/launcher.hpp"

#include <cstdlib>
#include <fmt/format.h>
#include <mpi.h>
#include <string>

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

}  // namespace

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

void MpiSession::throw_together(const std::optional<Error>& mine) const {
  if (active_) {
    Communicator(MPI_COMM_WORLD).throw_together(mine);
  } else if (mine) {
    throw *mine;
  }
}

}  // namespace heddle
