#include "node-runtime/trace/atomic_file.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"

namespace heddle::trace {

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_path_(fmt::format("{}.{}.heddle-part", path_, ::getpid())) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path_, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw Error(ErrorCode::usage,
                fmt::format("cannot write the trace '{}': the name belongs to something that is "
                            "no file",
                            path_));
  }
  buffer_.reserve(buffer_bytes);
  // What a dead process of the same number left is overwritten.
  file_ = ::open(temporary_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) {
    throw Error(ErrorCode::usage, fmt::format("cannot write the trace '{}': {}", path_,
                                              std::generic_category().message(errno)));
  }
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) ::close(file_);
  if (!committed_) ::unlink(temporary_path_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > buffer_bytes) {
    write_through(buffer_);
    buffer_.clear();
  }
  if (bytes.size() > buffer_bytes) {
    write_through(bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void AtomicFile::commit() {
  write_through(buffer_);
  buffer_.clear();
  if (::close(std::exchange(file_, -1)) != 0) fail(errno);
  if (std::rename(temporary_path_.c_str(), path_.c_str()) != 0) fail(errno);
  committed_ = true;
}

void AtomicFile::write_through(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) fail(errno);
    if (written > 0) bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::fail(int error) const {
  throw Error(ErrorCode::internal, fmt::format("cannot write the trace '{}': {}", path_,
                                               std::generic_category().message(error)));
}

}  // namespace heddle::trace
