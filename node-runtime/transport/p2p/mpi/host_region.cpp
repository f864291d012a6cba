#include "node-runtime/transport/p2p/mpi/host_region.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "base/error.hpp"
#include "base/process_limits.hpp"
#include "base/units.hpp"

namespace heddle::p2p {
namespace {

/// Room for the cookie; rings and window begin at whole pages.
constexpr std::size_t page_bytes = 4096;

std::size_t pages(std::size_t bytes) {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

std::size_t window_begin(const HostRegion::Name& name) {
  return page_bytes + pages(name.writers * sizeof(NoteRingMemory));
}

std::string last_error() {
  return std::generic_category().message(errno);
}

}  // namespace

HostRegion::HostRegion(std::size_t writers, std::size_t window_bytes)
    : name_{::getpid(), -1, 0, writers, window_bytes},
      fd_(::memfd_create("heddle-messages", MFD_CLOEXEC)),
      bytes_(window_begin(name_) + pages(window_bytes)) {
  try {
    if (fd_ < 0 || ::ftruncate(fd_, static_cast<off_t>(bytes_)) != 0 ||
        ::getrandom(&name_.cookie, sizeof name_.cookie, 0) != sizeof name_.cookie) {
      throw Error(ErrorCode::usage,
                  fmt::format("{}: {}", memory_refused("messages", bytes_).what(), last_error()));
    }
    name_.fd = fd_;
    map();
    std::memcpy(base_, &name_.cookie, sizeof name_.cookie);
  } catch (...) {
    if (fd_ >= 0) ::close(fd_);
    throw;
  }
}

HostRegion::HostRegion(const Name& name)
    : name_(name), bytes_(window_begin(name) + pages(name.window_bytes)) {
  const std::string path = fmt::format("/proc/{}/fd/{}", name.pid, name.fd);
  // O_NONBLOCK: should the number now belong to a pipe, opening must not wait for its other end.
  fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) {
    throw Error(ErrorCode::communication,
                fmt::format("opening {} failed: {}; the processes have to run as the same user, in "
                            "one PID namespace",
                            path, last_error()));
  }
  try {
    struct stat status {};
    if (::fstat(fd_, &status) != 0 || status.st_size != static_cast<off_t>(bytes_)) {
      throw Error(
          ErrorCode::communication,
          fmt::format("{} is something else: the processes are in different PID namespaces", path));
    }
    map();
    std::uint64_t cookie = 0;
    std::memcpy(&cookie, base_, sizeof cookie);
    if (cookie != name.cookie) {
      ::munmap(base_, bytes_);
      throw Error(
          ErrorCode::communication,
          fmt::format("{} is another memory: the processes are in different PID namespaces", path));
    }
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

void HostRegion::map() {
  void* base = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (base == MAP_FAILED) {
    throw Error(ErrorCode::communication, fmt::format("mapping {} for messages was refused: {}",
                                                      format_bytes(bytes_), last_error()));
  }
  base_ = static_cast<std::byte*>(base);
}

HostRegion::~HostRegion() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
  if (fd_ >= 0) ::close(fd_);
}

NoteRingMemory* HostRegion::ring(std::size_t writer) const {
  return reinterpret_cast<NoteRingMemory*>(base_ + page_bytes) + writer;
}

std::span<std::byte> HostRegion::window() const {
  return {base_ + window_begin(name_), name_.window_bytes};
}

}  // namespace heddle::p2p
