#include "base/child_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process_limits.hpp"

namespace heddle {

Conversation::~Conversation() {
  ::close(socket_);
}

bool Conversation::send(std::span<const std::byte> message) const {
  ssize_t sent = 0;
  do {
    sent = ::send(socket_, message.data(), message.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(message.size());
}

std::optional<std::size_t> Conversation::receive(std::span<std::byte> to,
                                                 std::chrono::milliseconds limit) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + limit;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd entry{socket_, POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    const ssize_t received = ::recv(socket_, to.data(), to.size(), 0);
    if (received < 0 && errno == EINTR) continue;
    // Messages are never empty: 0 bytes means that the other end is closed.
    if (received <= 0) return std::nullopt;
    return static_cast<std::size_t>(received);
  }
}

ChildProcess::ChildProcess(std::string_view purpose,
                           const std::function<void(const Conversation&)>& life) {
  const auto refuse = [&](int reason) {
    throw thread_refused(fmt::format("a child to {}", purpose), std::strerror(reason));
  };
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) refuse(errno);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ < 0) {
    const int reason = errno;
    for (const int end : ends) ::close(end);
    refuse(reason);
  }
  if (process_ == 0) {
    // Later siblings inherit the parent's socket ends, so a closed socket does not show its death.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::close(ends[0]);
    try {
      life(Conversation(ends[1]));
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  conversation_.emplace(ends[0]);
}

ChildProcess::~ChildProcess() {
  // The child has nothing to clean up and may hang. Its id stays ours until waitpid().
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace heddle
