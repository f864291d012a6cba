#include "apps/janitor.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"
#include "base/process_limits.hpp"
#include "base/standard_streams.hpp"

namespace heddle {
namespace {

/// Longest time from the parent's closed files to its end.
constexpr int parent_time_max_ms = 5000;
/// How long the launcher is kept from noticing the end of a process.
constexpr int others_time_ms = 500;
/// Longest time of a launcher from a lost connection to its wait for the exit status.
constexpr int fetching_time_max_ms = 200;

/// Descriptor of the launcher's process manager; -1 without one.
int launcher_connection() {
  const char* text = std::getenv("PMI_FD");
  return text == nullptr ? -1 : static_cast<int>(std::strtol(text, nullptr, 10));
}

void close_all_but(const std::set<int>& kept) {
  unsigned first = 0;
  for (const int file : kept) {
    if (file < 0) continue;
    const auto next = static_cast<unsigned>(file);
    if (next > first) ::syscall(SYS_close_range, first, next - 1, 0U);
    first = next + 1;
  }
  ::syscall(SYS_close_range, first, ~0U, 0U);
}

/// Closes the launcher's connection after `parent` has ended, and the outputs after the launcher
/// has collected the exit status; see the class. Bounded for other launchers.
void outlive(int parent, bool has_others) {
  pollfd ended{parent, POLLIN, 0};
  ::poll(&ended, 1, parent_time_max_ms);
  const int connection = launcher_connection();
  if (connection < 0) return;
  if (has_others) ::poll(nullptr, 0, others_time_ms);
  ::close(connection);
  constexpr timespec pause{0, 1'000'000};
  for (int i = 0; i < fetching_time_max_ms; ++i) {
    if (::syscall(SYS_pidfd_send_signal, parent, 0, nullptr, 0U) != 0)
      return;  // has ended and been waited for
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace

Janitor::Janitor(bool has_others) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(ErrorCode::internal,
                fmt::format("no pipe for the cleaning process: {}", std::strerror(errno)));
  }
  const auto parent = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  child_ = ::fork();
  if (child_ == 0) {
    ::close(ends[1]);
    serve(ends[0], parent, has_others);
  }
  const int error = errno;
  ::close(ends[0]);
  if (parent >= 0) ::close(parent);
  pipe_ = ends[1];
  if (child_ < 0) {
    ::close(pipe_);
    throw thread_refused("the cleaning process", std::strerror(error));
  }
}

Janitor::~Janitor() {
  finish();
  {
    const std::lock_guard lock(mutex_);
    tell('.', "");
    ::close(std::exchange(pipe_, -1));
  }
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

/// The child. Messages are '+' or '-', the path and a zero byte; '.' when the parent waits.
/// `parent` becomes readable when the parent ends.
void Janitor::serve(int pipe, int parent, bool has_others) {
  ::setsid();  // does not receive signals of the parent's group
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) std::signal(signal, SIG_IGN);
  ::prctl(PR_SET_NAME, "heddle-cleanup");
  [[maybe_unused]] const int moved = ::chdir("/");  // only to keep no file system busy
  close_all_but({pipe, parent, 1, 2, launcher_connection()});
  open_standard_streams();

  std::set<std::string> paths;
  std::string message;
  bool is_awaited = false;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = ::read(pipe, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    for (const char c : std::string_view(buffer.data(), static_cast<std::size_t>(count))) {
      if (c != '\0') {
        message.push_back(c);
      } else if (!message.empty()) {
        if (message[0] == '+') paths.insert(message.substr(1));
        if (message[0] == '-') paths.erase(message.substr(1));
        is_awaited = is_awaited || message[0] == '.';
        message.clear();
      }
    }
  }
  for (const std::string& path : paths) ::unlink(path.c_str());
  if (!is_awaited && parent >= 0) outlive(parent, has_others);
  ::_exit(0);
}

void Janitor::tell(char what, const std::string& path) {
  std::string message = what + path + '\0';
  for (std::size_t done = 0; done < message.size() && pipe_ >= 0;) {
    const ssize_t count = ::write(pipe_, message.data() + done, message.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // the child was killed: this process still has the list
    done += static_cast<std::size_t>(count);
  }
}

void Janitor::add(const std::string& path) {
  const std::string name = std::filesystem::absolute(path).string();
  const std::lock_guard lock(mutex_);
  if (is_finished_) throw Error(ErrorCode::interrupted, "the process is ending");
  if (paths_.insert(name).second) tell('+', name);
}

void Janitor::remove(const std::string& path) {
  const std::string name = std::filesystem::absolute(path).string();
  const std::lock_guard lock(mutex_);
  if (paths_.erase(name) > 0) tell('-', name);
}

void Janitor::finish() noexcept {
  const std::lock_guard lock(mutex_);
  is_finished_ = true;
  for (const std::string& path : paths_) ::unlink(path.c_str());
}

}  // namespace heddle
