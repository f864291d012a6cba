#include "apps/run.hpp"

#include <cstdio>
#include <fmt/core.h>
#include <unistd.h>

#include "base/printable.hpp"

namespace heddle {

void print_error(const std::string& message) {
  const std::string text = fmt::format("heddle: {}\n", printable(message, LineBreaks::kept));
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
  static_cast<void>(std::fflush(stderr));
}

Run::Run(const Launcher& launcher)
    : launcher_(launcher),
      janitor_(launcher.size > 1),
      interrupts_([this](const char* name) {
        if (launcher_.rank == 0) {
          if (stderr_is_watched(launcher_)) static_cast<void>(std::fputs("\r\x1b[K", stderr));
          print_error(fmt::format("interrupted by {}; no results were written", name));
        }
        janitor_.finish();
      }),
      mpi_(launcher) {}

void Run::complain(const std::string& message) const {
  print_error(launcher_.size == 1 ? message : fmt::format("node {}: {}", launcher_.rank, message));
}

void Run::leave(int status) {
  janitor_.finish();
  static_cast<void>(std::fflush(nullptr));
  ::_exit(status);
}

}  // namespace heddle
