#include "apps/run.hpp"

#include <cstdio>
#include <fmt/core.h>
#include <unistd.h>

namespace heddle {

Run::Run(const Launcher& launcher)
    : launcher_(launcher),
      janitor_(launcher.size > 1),
      results_(janitor_),
      interrupts_([this](const char* name) {
        const std::string account = results_.seal();
        if (launcher_.rank == 0) {
          if (stderr_is_watched(launcher_)) static_cast<void>(std::fputs("\r\x1b[K", stderr));
          print_error(fmt::format("interrupted by {}; {}", name, account));
        }
        janitor_.finish();
      }),
      mpi_(launcher) {}

void Run::complain(const std::string& message) const {
  print_error(launcher_.size == 1 ? message : fmt::format("node {}: {}", launcher_.rank, message));
}

void Run::leave(int status) {
  if (interrupted()) interrupts_.await_end();
  janitor_.finish();
  static_cast<void>(std::fflush(nullptr));
  ::_exit(status);
}

}  // namespace heddle
