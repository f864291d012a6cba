#include "algorithms/matrix/mapped_file.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/process_limits.hpp"

namespace heddle {

namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw Error(ErrorCode::usage, fmt::format("cannot read '{}': {}", printable(path), reason));
}

[[noreturn]] void refuse_with_errno(const std::string& path) {
  refuse(path, std::generic_category().message(errno));
}

std::size_t size_of_regular_file(const std::string& path, const struct stat& status) {
  if (S_ISDIR(status.st_mode)) refuse(path, "it is a folder, not a file; name a file in it");
  if (!S_ISREG(status.st_mode))
    refuse(path, "it is not a regular file; copy what it gives into one");
  if (status.st_size == 0) refuse(path, "the file is empty; write it again");
  return static_cast<std::size_t>(status.st_size);
}

/// When the content changed last.
std::int64_t change_of(const struct stat& status) {
  return static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  struct stat status {};
  // Looked at before it is opened: opening a named pipe would wait for its writer.
  if (::stat(path_.c_str(), &status) != 0) {
    if (errno == ENOENT) {
      refuse(path_,
             "there is no such file; names are relative to the folder where heddle was started");
    }
    refuse_with_errno(path_);
  }
  size_of_regular_file(path_, status);
  file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) refuse_with_errno(path_);
  void* address = MAP_FAILED;
  std::size_t size = 0;
  if (::fstat(file_, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    size = static_cast<std::size_t>(status.st_size);
    changed_ns_ = change_of(status);
    address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file_, 0);
  }
  if (address == MAP_FAILED) {
    const int error = errno;
    ::close(file_);
    if (error == ENOMEM) throw memory_refused(fmt::format("a view of '{}'", path_), size);
    refuse(path_, fmt::format("mapping it failed: {}", std::generic_category().message(error)));
  }
  address_ = address;
  content_ = {static_cast<const char*>(address), size};
  guard_.emplace(address, size);
}

MappedFile::~MappedFile() {
  guard_.reset();
  ::munmap(address_, content_.size());
  ::close(file_);
}

void MappedFile::check_unchanged() const {
  constexpr const char* cure = "nothing may write to it until the run has ended";
  struct stat status {};
  if (::fstat(file_, &status) != 0) refuse_with_errno(path_);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size != content_.size()) {
    refuse(path_,
           fmt::format("it became {} while it was read: it had {} bytes and has {} now; {}",
                       size < content_.size() ? "shorter" : "longer", content_.size(), size, cure));
  }
  if (change_of(status) != changed_ns_) {
    refuse(path_, fmt::format("it was changed while it was read; {}", cure));
  }
  if (is_broken()) {
    refuse(path_,
           "part of it could not be delivered by the disk or the network file system (the system "
           "log may say why)");
  }
}

void MappedFile::expect_sequential_reading() const {
  ::madvise(address_, content_.size(), MADV_SEQUENTIAL);
}

}  // namespace heddle
