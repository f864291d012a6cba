#include "apps/crash_handlers.hpp"

#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

namespace heddle {
namespace {

/// Sanitizers' handlers stay.
bool is_of_ucx(const struct sigaction& action) {
  const void* handler = (action.sa_flags & SA_SIGINFO) != 0
                            ? reinterpret_cast<const void*>(action.sa_sigaction)
                            : reinterpret_cast<const void*>(action.sa_handler);
  Dl_info found{};
  return ::dladdr(handler, &found) != 0 && found.dli_fname != nullptr &&
         std::filesystem::path(found.dli_fname).filename().string().starts_with("libucs");
}

}  // namespace

void remove_crash_handlers() {
  if (std::getenv("UCX_HANDLE_ERRORS") != nullptr) return;
  for (const int signal : {SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV}) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && is_of_ucx(action)) {
      std::signal(signal, SIG_DFL);
    }
  }
}

}  // namespace heddle
