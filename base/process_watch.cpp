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

ProcessWatch::ProcessWatch(pid_t process)
    : process_(process),
      file_(static_cast<int>(::syscall(SYS_pidfd_open, process, 0))),
      had_ended_(file_ < 0 && errno == ESRCH) {}

ProcessWatch::~ProcessWatch() {
  if (file_ >= 0) ::close(file_);
}

bool ProcessWatch::has_ended() const {
  if (had_ended_) return true;
  if (file_ >= 0) {
    pollfd process{file_, POLLIN, 0};
    return ::poll(&process, 1, 0) > 0;
  }
  // Before Linux 5.3, without pidfd: a zombie still counts as alive.
  return ::kill(process_, 0) != 0 && errno == ESRCH;
}

bool ProcessWatch::is_stopped() const {
  std::ifstream file("/proc/" + std::to_string(process_) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // "1234 (name) T ...", where the name may contain ')'.
  const std::size_t state = text.rfind(')') + 2;
  return state < text.size() && (text[state] == 'T' || text[state] == 't') && !has_ended();
}

}  // namespace heddle
