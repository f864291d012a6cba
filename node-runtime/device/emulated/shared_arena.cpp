#include "node-runtime/device/emulated/shared_arena.hpp"

#include <cerrno>
#include <climits>
#include <ctime>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/futex.h>
#include <new>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/units.hpp"

namespace heddle {
namespace {

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::string last_error() {
  return std::generic_category().message(errno);
}

}  // namespace

Mapping::Mapping(int fd, std::uint64_t offset, std::uint64_t bytes, bool writable,
                 std::string_view what) {
  const std::uint64_t begin = offset / page_bytes() * page_bytes();
  mapped_bytes_ = round_up(offset - begin + bytes, page_bytes());
  base_ = ::mmap(nullptr, mapped_bytes_, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                 MAP_SHARED | MAP_NORESERVE, fd, static_cast<off_t>(begin));
  if (base_ == MAP_FAILED) {
    const std::string reason = last_error();
    base_ = nullptr;
    throw Error(ErrorCode::communication, fmt::format("{}: mapping {} was refused: {}", what,
                                                      format_bytes(mapped_bytes_), reason));
  }
  address_ = static_cast<std::byte*>(base_) + (offset - begin);
}

Mapping::~Mapping() {
  if (base_ != nullptr) ::munmap(base_, mapped_bytes_);
}

SharedArena::SharedArena(std::uint64_t data_bytes, std::uint32_t event_capacity,
                         const std::string& name)
    : fd_(::memfd_create(name.c_str(), MFD_CLOEXEC)) {
  if (fd_ < 0) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: creating shared memory failed: {}", name, last_error()));
  }
  try {
    const std::uint64_t events_offset = round_up(sizeof(ArenaHeader), page_bytes());
    const std::uint64_t data_offset =
        round_up(events_offset + event_capacity * sizeof(EventSlot), page_bytes());
    const std::uint64_t bytes = data_offset + round_up(data_bytes, page_bytes());
    if (::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) {
      throw Error(ErrorCode::internal, fmt::format("{}: shared memory of {} was refused: {}", name,
                                                   format_bytes(bytes), last_error()));
    }
    mapping_ = std::make_unique<Mapping>(fd_, 0, bytes, true, name);
    std::byte* base = mapping_->address();
    header_ = new (base) ArenaHeader;
    if (::getrandom(header_->uuid.bytes.data(), header_->uuid.bytes.size(), 0) !=
        static_cast<ssize_t>(header_->uuid.bytes.size())) {
      throw Error(ErrorCode::internal,
                  fmt::format("{}: no random bytes for its identity: {}", name, last_error()));
    }
    header_->event_capacity = event_capacity;
    header_->events_offset = events_offset;
    header_->data_offset = data_offset;
    header_->data_bytes = data_bytes;
    slots_ = reinterpret_cast<EventSlot*>(base + events_offset);
    data_ = base + data_offset;
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

SharedArena::~SharedArena() {
  close();
  ::close(fd_);
}

std::uint32_t SharedArena::acquire_slot() {
  const std::scoped_lock lock(mutex_);
  std::uint32_t index = 0;
  if (!free_slots_.empty()) {
    index = free_slots_.back();
    free_slots_.pop_back();
  } else if (slots_used_ < header_->event_capacity) {
    index = slots_used_++;
    new (&slots_[index]) EventSlot{};
  } else {
    throw Error(ErrorCode::internal,
                fmt::format("all {} events of an emulated device are in use "
                            "(EmulatedOptions::event_capacity): destroy some or allow more",
                            header_->event_capacity));
  }
  EventSlot& s = slots_[index];
  // A new event starts with a complete record, whose number exceeds that of the slot's last
  // failure. Relaxed: passing the event to another thread synchronises.
  const std::uint64_t number = s.submitted.load(std::memory_order_relaxed) + 1;
  s.submitted.store(number, std::memory_order_relaxed);
  s.completed.store(number, std::memory_order_relaxed);
  for (auto& word : s.message) word.store(0, std::memory_order_relaxed);
  s.generation.fetch_add(1, std::memory_order_release);
  return index;
}

void SharedArena::release_slot(std::uint32_t index) {
  const std::scoped_lock lock(mutex_);
  slots_[index].generation.fetch_add(1, std::memory_order_release);
  free_slots_.push_back(index);
}

void SharedArena::discard(std::uint64_t offset, std::uint64_t bytes) const {
  const std::uint64_t begin = round_up(header_->data_offset + offset, page_bytes());
  const std::uint64_t end = (header_->data_offset + offset + bytes) / page_bytes() * page_bytes();
  if (begin >= end) return;
  // Best effort: if refused, the pages stay until they are reused.
  static_cast<void>(::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(begin), static_cast<off_t>(end - begin)));
}

PeerArena::PeerArena(pid_t pid, int fd, const DeviceUuid& uuid, std::string_view what)
    : pid_(pid), path_(fmt::format("/proc/{}/fd/{}", pid, fd)) {
  if (pid == ::getpid()) {
    throw Error(ErrorCode::communication,
                fmt::format("{}: the handle comes from this process; use the address or the "
                            "event itself",
                            what));
  }
  // O_NONBLOCK: if the descriptor number now names a pipe, open() must not wait for its other end.
  fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) {
    const bool gone = errno == ENOENT || errno == ESRCH;
    throw Error(ErrorCode::communication,
                fmt::format("{}: opening {} failed: {}{}", what, path_, last_error(),
                            gone ? "; the exporting process has ended, has destroyed the device, "
                                   "or lives on another machine or in another PID namespace"
                                 : "; both processes must run as the same user, with access to "
                                   "each other's /proc entries"));
  }
  try {
    struct stat status {};
    const bool known = ::fstat(fd_, &status) == 0;
    file_device_ = status.st_dev;
    file_inode_ = status.st_ino;
    file_bytes_ = static_cast<std::uint64_t>(status.st_size);
    const bool plausible = known && S_ISREG(status.st_mode) && file_bytes_ >= page_bytes();
    if (plausible) header_ = std::make_unique<Mapping>(fd_, 0, sizeof(ArenaHeader), false, what);
    if (!plausible || header().magic != ArenaHeader::expected_magic || !(header().uuid == uuid)) {
      throw Error(ErrorCode::communication,
                  fmt::format("{}: {} is not the memory of device {}; the exporting process has "
                              "ended, or lives on another machine or in another PID namespace",
                              what, path_, to_string(uuid)));
    }
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

PeerArena::~PeerArena() {
  ::close(fd_);
}

const ArenaHeader& PeerArena::header() const {
  return *std::launder(reinterpret_cast<const ArenaHeader*>(header_->address()));
}

bool PeerArena::is_alive() const {
  // Pairs with the release in SharedArena::close().
  if (header().closed.load(std::memory_order_acquire) != 0) return false;
  // A process that has ended has no descriptors; one that reuses its id, or the descriptor, has
  // another file there.
  struct stat status {};
  return ::stat(path_.c_str(), &status) == 0 && status.st_dev == file_device_ &&
         status.st_ino == file_inode_;
}

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::chrono::nanoseconds timeout) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  struct timespec limit {};
  limit.tv_sec = static_cast<time_t>(seconds.count());
  limit.tv_nsec = static_cast<long>((timeout - seconds).count());
  // Not FUTEX_PRIVATE: works across processes, unlike std::atomic::wait.
  ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, &limit, nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace heddle
