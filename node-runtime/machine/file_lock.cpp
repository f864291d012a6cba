#include "node-runtime/machine/file_lock.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

/// When a holder dies, the kernel reports the closing just before it drops the lock; a waiter that
/// was faster than that looks again after this time.
constexpr std::chrono::milliseconds second_look{100};

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

/// False when the file was removed (by its last holder) or replaced after we opened it.
bool is_still_at(int file, const std::filesystem::path& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(file, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/// Returns after somebody closed the file, after `second_look`, or at the deadline.
void wait_for_change(int watch, Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  const auto wait = std::clamp(left, std::chrono::milliseconds(0), second_look);
  pollfd entry{watch, POLLIN, 0};
  if (::poll(&entry, 1, static_cast<int>(wait.count())) <= 0) return;
  std::array<char, 4096> events{};
  while (::read(watch, events.data(), events.size()) > 0) {
  }
}

}  // namespace

std::optional<FileLock> FileLock::acquire(const std::filesystem::path& path,
                                          std::chrono::milliseconds patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  while (true) {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (file.get() < 0) {
      throw Error(ErrorCode::usage, fmt::format("cannot make the lock file {}: {}", path.string(),
                                                std::strerror(errno)));
    }
    // Watched before the first look, so that no closing in between is missed. Without a watch (the
    // system limits their number) the second looks remain.
    const Descriptor watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (watch.get() >= 0) ::inotify_add_watch(watch.get(), path.c_str(), IN_CLOSE | IN_DELETE_SELF);
    while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) {
        throw Error(ErrorCode::usage,
                    fmt::format("cannot lock {}: {}", path.string(), std::strerror(errno)));
      }
      if (Clock::now() >= deadline) return std::nullopt;
      wait_for_change(watch.get(), deadline);
    }
    if (is_still_at(file.get(), path)) return FileLock(path, file.release());
  }
}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

FileLock::~FileLock() {
  if (file_ < 0) return;
  // Removed while still held: whoever opened it before notices in is_still_at().
  ::unlink(path_.c_str());
  ::flock(file_, LOCK_UN);
  ::close(file_);
}

}  // namespace heddle
