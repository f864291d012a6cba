#include "algorithms/matrix/mapped_file.hpp"

#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"

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
  const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) refuse_with_errno(path_);
  void* address = MAP_FAILED;
  std::size_t size = 0;
  int error = 0;
  if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    size = static_cast<std::size_t>(status.st_size);
    address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  }
  error = errno;
  ::close(file);
  if (address == MAP_FAILED) {
    refuse(path_, fmt::format("mapping it failed: {}", std::generic_category().message(error)));
  }
  address_ = address;
  content_ = {static_cast<const char*>(address), size};
}

MappedFile::~MappedFile() {
  ::munmap(address_, content_.size());
}

void MappedFile::expect_sequential_reading() const {
  ::madvise(address_, content_.size(), MADV_SEQUENTIAL);
}

}  // namespace heddle
