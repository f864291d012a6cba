#include "tests/system/process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace heddle::testing {
namespace {

/// Parents by process, of all processes of the machine.
pid_t parent_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return 0;
  return static_cast<pid_t>(std::strtol(text.c_str() + end_of_name + 4, nullptr, 10));
}

std::string name_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

}  // namespace

void pause_briefly() {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void adopt_orphans() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

std::vector<pid_t> processes_named(const std::string& name) {
  std::vector<pid_t> found;
  const pid_t me = ::getpid();
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {  // adopted ones that have ended
  }
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto process =
        static_cast<pid_t>(std::strtol(entry.path().filename().c_str(), nullptr, 10));
    if (process <= 0 || process == me || name_of(process) != name) continue;
    pid_t ancestor = process;
    while (ancestor > 1 && ancestor != me) ancestor = parent_of(ancestor);
    if (ancestor == me) found.push_back(process);
  }
  return found;
}

Process::Process(const std::vector<std::string>& words, const std::string& folder,
                 std::chrono::seconds time_max)
    : deadline_(std::chrono::steady_clock::now() + time_max) {
  std::array<int, 2> out{};
  std::array<int, 2> error{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(error.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipes");
  }
  std::vector<std::string> copies = words;
  std::vector<char*> arguments;
  arguments.reserve(copies.size() + 1);
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  id_ = ::fork();
  if (id_ == 0) {
    ::setsid();
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, 0);
    ::dup2(out[1], 1);
    ::dup2(error[1], 2);
    if (::chdir(folder.c_str()) == 0) ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(error[1]);
  out_ = out[0];
  error_ = error[0];
}

Process::~Process() {
  if (!reaped_) {
    ::kill(-id_, SIGKILL);
    reap();
  }
  for (const int file : {out_, error_}) {
    if (file >= 0) ::close(file);
  }
}

void Process::signal(int number) const {
  ::kill(id_, number);
}

bool Process::read_more() {
  std::array<pollfd, 2> files{{{out_, POLLIN, 0}, {error_, POLLIN, 0}}};
  if (out_ < 0 && error_ < 0) return false;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline_ - std::chrono::steady_clock::now());
  if (left.count() <= 0 ||
      ::poll(files.data(), files.size(), static_cast<int>(left.count())) == 0) {
    ended_.timed_out = true;
    return false;
  }
  for (std::size_t f = 0; f < files.size(); ++f) {
    if (files[f].fd < 0 || files[f].revents == 0) continue;
    std::array<char, 65536> buffer{};
    const ssize_t count = ::read(files[f].fd, buffer.data(), buffer.size());
    if (count > 0) {
      (f == 0 ? ended_.out : ended_.error).append(buffer.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      ::close(files[f].fd);
      (f == 0 ? out_ : error_) = -1;
    }
  }
  return true;
}

bool Process::wait_for_output(const std::string& text) {
  do {
    if (ended_.out.find(text) != std::string::npos) return true;
    if (ended_.error.find(text) != std::string::npos) return true;
  } while (read_more());
  return false;
}

void Process::reap() {
  int status = 0;
  while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  ended_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Ended Process::wait() {
  while (read_more()) {
  }
  if (ended_.timed_out) ::kill(-id_, SIGKILL);
  if (!reaped_) reap();
  return ended_;
}

}  // namespace heddle::testing
