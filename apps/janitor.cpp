#include "apps/janitor.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"

namespace heddle {

Janitor::Janitor() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(ErrorCode::internal,
                fmt::format("no pipe for the cleaning process: {}", std::strerror(errno)));
  }
  child_ = ::fork();
  if (child_ == 0) {
    ::close(ends[1]);
    serve(ends[0]);
  }
  const int error = errno;
  ::close(ends[0]);
  pipe_ = ends[1];
  if (child_ < 0) {
    ::close(pipe_);
    throw Error(ErrorCode::internal, fmt::format("no cleaning process: {}", std::strerror(error)));
  }
}

Janitor::~Janitor() {
  finish();
}

/// The child. Messages are '+' or '-', the path, and a zero byte.
void Janitor::serve(int pipe) {
  ::setsid();  // signals to the parent's group are not meant for it
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) std::signal(signal, SIG_IGN);
  ::prctl(PR_SET_NAME, "heddle-cleanup");
  static_cast<void>(::chdir("/"));
  // The launcher waits for the end of its processes' output and control connections.
  ::dup2(pipe, 0);
  ::syscall(SYS_close_range, 1U, ~0U, 0U);

  std::set<std::string> paths;
  std::string message;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = ::read(0, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    for (const char c : std::string_view(buffer.data(), static_cast<std::size_t>(count))) {
      if (c != '\0') {
        message.push_back(c);
      } else if (!message.empty()) {
        if (message[0] == '+') {
          paths.insert(message.substr(1));
        } else {
          paths.erase(message.substr(1));
        }
        message.clear();
      }
    }
  }
  for (const std::string& path : paths) ::unlink(path.c_str());
  ::_exit(0);
}

void Janitor::tell(char what, const std::string& path) {
  std::string message = what + path + '\0';
  for (std::size_t done = 0; done < message.size() && pipe_ >= 0;) {
    const ssize_t count = ::write(pipe_, message.data() + done, message.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // somebody killed the child: the list here still works
    done += static_cast<std::size_t>(count);
  }
}

void Janitor::add(const std::string& path) {
  const std::string name = std::filesystem::absolute(path).string();
  const std::lock_guard lock(mutex_);
  if (pipe_ < 0) throw Error(ErrorCode::interrupted, "the process is ending");
  if (paths_.insert(name).second) tell('+', name);
}

void Janitor::remove(const std::string& path) {
  const std::string name = std::filesystem::absolute(path).string();
  const std::lock_guard lock(mutex_);
  if (paths_.erase(name) > 0) tell('-', name);
}

void Janitor::finish() noexcept {
  const std::lock_guard lock(mutex_);
  if (pipe_ < 0) return;
  for (const std::string& path : paths_) ::unlink(path.c_str());
  ::close(std::exchange(pipe_, -1));
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace heddle
