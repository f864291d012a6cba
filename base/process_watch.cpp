#include "base/process_watch.hpp"

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <poll.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

namespace heddle {
namespace {

/// The letter of /proc/PID/stat: R, S, T, Z and others; 0 if there is no such file.
char state_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // "1234 (name) T ...", where the name may contain ')'.
  const std::size_t state = text.rfind(')') + 2;
  return state < text.size() ? text[state] : '\0';
}

}  // namespace

ProcessWatch::ProcessWatch(pid_t process)
    : process_(process),
      file_(static_cast<int>(::syscall(SYS_pidfd_open, process, 0))),
      had_ended_(file_ < 0 && has_ended(process)) {}

ProcessWatch::~ProcessWatch() {
  if (file_ >= 0) ::close(file_);
}

bool ProcessWatch::has_ended() const {
  if (had_ended_) return true;
  if (file_ < 0) return has_ended(process_);  // before Linux 5.3
  pollfd process{file_, POLLIN, 0};
  return ::poll(&process, 1, 0) > 0;
}

bool ProcessWatch::has_ended(pid_t process) {
  const char state = state_of(process);
  if (state == 'Z' || state == 'X') return true;
  return ::kill(process, 0) != 0 && errno == ESRCH;
}

bool ProcessWatch::is_stopped() const {
  const char state = state_of(process_);
  return (state == 'T' || state == 't') && !has_ended();
}

}  // namespace heddle
