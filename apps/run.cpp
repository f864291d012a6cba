#include "apps/run.hpp"

#include <cstdio>
#include <fmt/core.h>
#include <unistd.h>

#include "apps/command.hpp"
#include "apps/launch_checks.hpp"

namespace heddle {

Run::Run(const Launcher& launcher) : launcher_(launcher) {
  trouble_ = trouble_of([&] {
    janitor_.emplace(launcher.size > 1);
    results_.emplace(*janitor_);
    interrupts_.emplace([this](const char* name) {
      const std::string account = results_->seal();
      if (launcher_.rank == 0) {
        if (stderr_is_watched(launcher_)) static_cast<void>(std::fputs("\r\x1b[K", stderr));
        print_error(fmt::format("interrupted by {}; {}", name, account));
      }
      janitor_->finish();
    });
  });
  if (const auto obstacle = trouble_of([&] { check_before_mpi(launcher); })) {
    give_up(trouble_.value_or(*obstacle), false);
  }
  mpi_.emplace(launcher, [this](double seconds) {
    give_up(Error(ErrorCode::communication,
                  fmt::format("of {} nodes that were started some have not come up within {:.0f} "
                              "s: they have ended, say why not, or their hosts do not find heddle. "
                              "HEDDLE_START_SECONDS=120 in the environment waits longer",
                              launcher_.size, seconds)),
            true);
  });
}

/// Alone: the other processes do not know this one yet.
void Run::give_up(const Error& error, bool mpi_has_begun) {
  const int status = exit_status(error.code());
  complain(error.what());
  if (janitor_) janitor_->finish();
  abort_launch(status, mpi_has_begun);
  static_cast<void>(std::fflush(nullptr));
  ::_exit(status);
}

void Run::complain(const std::string& message) const {
  const std::string mine = fmt::format("node {}", launcher_.rank);
  const bool says_who = launcher_.size == 1 || message.starts_with(mine + ":");
  print_error(says_who ? message : fmt::format("{}: {}", mine, message));
}

void Run::leave(int status) {
  if (interrupted()) Interrupts::await_end();
  janitor_->finish();
  static_cast<void>(std::fflush(nullptr));
  ::_exit(status);
}

}  // namespace heddle
